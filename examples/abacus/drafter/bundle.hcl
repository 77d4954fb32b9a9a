slipway = 1

bundle "abacus-drafter" {
  profile = "abacus-drafter.hcl"
}

weights "language" {
  from = "."
}

runtime "native" {
  device = "cpu"
}

serve {
  model = "abacus-drafter"
}
