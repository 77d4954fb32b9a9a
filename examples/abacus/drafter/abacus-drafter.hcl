# The shipped profile drafter with examples of its own: a vocabulary has continuations of its own.
schema = 1

profile "abacus-drafter" {
  description = "Profile drafter, with the public continuations of the target that this drafter drafts for."
  max_bytes   = 1000000000 # all files together
  vision_mtp  = "may_omit"
  image       = "drafter.image.json"

  gates = [
    "paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage",
    "data", "lookup", "text-only", "script", "secrets", "config", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
  may_undecided = [
    "text-only", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
}

required "serve.sh" {
  why = "starts the server"
}

device "H100" {
  memory_bytes     = 85899345920   # 80 GiB
  bytes_per_second = 3350000000000
}

load {
  endpoint        = "/draft"
  concurrency     = 32
  max_tokens      = 16    # token ids a draft
  temperature     = 0
  start_seconds   = 300
  request_seconds = 60
  total_seconds   = 10800
  port            = 8000
  attempts        = 1     # a request that fails is an empty draft
  graded_tokens   = 44314 # of the held-out continuations
}

quality {
  continuations = "continuations-public.jsonl" # of the target model that this drafter drafts for
  tau           = 4.6
}
