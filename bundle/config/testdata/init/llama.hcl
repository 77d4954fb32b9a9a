# Written by slipway init from what lies in this folder. Paths are relative to it.
slipway = 1

bundle "llama" {
  profile = "practice" # its questions are the example's: name your task (drafter, ternary-chat, vision-chat, or a file: docs/profile.md)
}

# 1 safetensors file; config.json: LlamaForCausalLM
weights "language" {
  from = "."
}

# single files that stand beside this one
files "." {
  from    = "."
  include = ["server.py"]
}

# no serve.sh here, and the bundled runtime computes Qwen3ForCausalLM, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration: not LlamaForCausalLM.
# Write one that starts a server of your own on port 8000, and run slipway init again.
serve {
  port     = 8000 # where it listens
  thinking = "off" # answers without a thought first
}
