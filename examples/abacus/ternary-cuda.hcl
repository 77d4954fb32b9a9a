# The bundle of ternary/ for a GPU: slipway rehearse --gpu examples/abacus/ternary-cuda.hcl
slipway = 1

bundle "abacus-ternary-cuda" {
  profile = "practice"
}

weights "language" {
  from     = "ternary"
  manifest = "quantization_manifest.json"
}

runtime "native" {
  device = "cuda"
}

serve {
  model = "abacus"
}
