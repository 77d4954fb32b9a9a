# Written by slipway init from what lies in this folder. Paths are relative to it.
slipway = 1

bundle "two" {
  profile = "practice" # its questions are the example's: name your task (drafter, ternary-chat, vision-chat, or a file: docs/profile.md)
}

# 1 safetensors file; config.json: Qwen3ForCausalLM
weights "language" {
  from     = "weights/language"
  manifest = "quantization_manifest.json" # how each tensor is stored; stands in that folder
}

# 1 safetensors file
weights "vision" {
  from = "weights/vision"
}

# no serve.sh here: the server that is bundled; "cuda" never falls back to the CPU
runtime "native" {
  device = "cpu"
}

serve {
  port     = 8000 # where it listens
  thinking = "off" # answers without a thought first
}

# how the weights were made
provenance {
  data = "DATA.md"
}
