schema = 1

profile "drafter" {
  description = "A small drafting model for a fixed target: 16 tokens a draft, 32 requests at a time."
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
  tau = 4.6 # along continuations of the target model, which each vocabulary has its own of: rehearse --continuations FILE
}
