slipway = 1

bundle "abacus-ternary" {
  profile = "practice"
}

weights "language" {
  from     = "."
  manifest = "quantization_manifest.json"
}

runtime "native" {
  device = "cpu"
}

serve {
  model = "abacus"
}
