# The bundle of drafter/ for a GPU: slipway rehearse --gpu examples/abacus/drafter-cuda.hcl
slipway = 1

bundle "abacus-drafter-cuda" {
  profile = "drafter/abacus-drafter.hcl"
}

weights "language" {
  from = "drafter"
}

runtime "native" {
  device = "cuda"
}

serve {
  model = "abacus-drafter"
}
