# Written by slipway init from what lies in this folder. Paths are relative to it.
slipway = 1

bundle "qwen-ternary" {
  profile = "ternary-chat" # config.json has the dimensions of Qwen/Qwen3.5-4B
}

# the starting model that the task pins; remove the block if yours is another
base "language" {
  repository = "Qwen/Qwen3.5-4B"
  revision   = "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"
}

# 2 safetensors files and their index; config.json: Qwen3_5ForConditionalGeneration
weights "language" {
  base     = "language"
  from     = "weights"
  manifest = "quantization_manifest.json" # how each tensor is stored; stands beside this file
}

# programs, or files that serve.sh names
files "code" {
  from    = "code"
  exclude = ["**/__pycache__/**"]
}

# 1 vendored wheel, as it is
files "wheels" {
  from    = "wheels"
  include = ["*.whl"]
}

# single files that stand beside this one
files "." {
  from    = "."
  include = ["README.md", "serve.sh"]
}

serve {
  port     = 8000 # where it listens
  thinking = "off" # answers without a thought first
}

# how the weights were made
provenance {
  data = "DATA.md"
  logs = ["provenance/*.log"]
}
