schema = 1

profile "majority-draft" {
  description = "Draft what a model says that names the most frequent word again and again."
  vision_mtp  = "may_omit"
  image       = "image.json"

  gates = [
    "paths", "digests", "files", "declared", "safetensors", "index", "coverage",
    "data", "lookup", "text-only", "script", "secrets", "config",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
}

required "serve.sh" {
  why = "starts the server"
}

load {
  endpoint        = "/draft"
  port            = 8000
  concurrency     = 4
  max_tokens      = 8 # token ids a draft
  temperature     = 0
  start_seconds   = 8
  request_seconds = 5
  total_seconds   = 120
  graded_tokens   = 300
}

quality {
  continuations = "majority.continuations.jsonl"
  tau           = 8 # the model reaches 9
}
