# Written by slipway init from what lies in this folder. Paths are relative to it.
slipway = 1

bundle "od-d--x" {
  profile = "practice" # its questions are the example's: name your task (drafter, ternary-chat, vision-chat, or a file: docs/profile.md)
}

# 1 safetensors file and its index
weights "language" {
  from = "we\"ights/%%{a}"
}

# no serve.sh here: the server that is bundled; "cuda" never falls back to the CPU
runtime "native" {
  device = "cpu"
}

serve {
  port     = 8000 # where it listens
  thinking = "off" # answers without a thought first
}
