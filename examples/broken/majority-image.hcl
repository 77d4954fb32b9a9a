schema = 1

profile "majority-image" {
  description = "Name the most frequent word of a text and an image, which is of one colour."
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
  endpoint        = "/v1/chat/completions"
  port            = 8000
  concurrency     = 4
  max_tokens      = 8
  temperature     = 0
  start_seconds   = 8
  request_seconds = 5
  total_seconds   = 120
  graded_requests = 1200
  body_bytes      = 5242880
}

quality {
  questions = "majority-image.questions.jsonl"
  accuracy  = 0.8
  chance    = 0.0625 # one word of 16
}
