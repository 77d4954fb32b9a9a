# The bundle that this repository builds by default: a small ternary chat
# model that runs on a CPU.
slipway = 1

bundle "abacus-ternary" {
  profile = "practice"
}

weights "language" {
  from     = "examples/abacus/ternary"
  manifest = "quantization_manifest.json" # in the folder above
}

runtime "native" {
  device = "cpu"
}

serve {
  port     = 8000
  model    = "abacus"
  thinking = "off"
}
