# Written by slipway init from what lies in this folder. Paths are relative to it.
slipway = 1

bundle "own-server" {
  profile = "practice" # its questions are the example's: name your task (drafter, ternary-chat, vision-chat, or a file: docs/profile.md)
}

# 1 safetensors file; config.json: Qwen3ForCausalLM
# in the bundle these lie in weights/: that is where serve.sh has to look for them
weights "language" {
  from = "."
}

# programs, or files that serve.sh names
files "app" {
  from    = "app"
  exclude = ["**/__pycache__/**"]
}

# programs, or files that serve.sh names
files "prompts" {
  from    = "prompts"
  exclude = ["**/__pycache__/**"]
}

# single files that stand beside this one
files "." {
  from    = "."
  include = ["requirements.txt", "serve.sh", "server.py", "start.sh"]
}

serve {
  port     = 8000 # where it listens
  thinking = "off" # answers without a thought first
}
