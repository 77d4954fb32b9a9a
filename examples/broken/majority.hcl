schema = 1

profile "majority" {
  description = "Name the most frequent word: a task small enough to replay what goes wrong with submissions."
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
}

quality {
  questions = "majority.questions.jsonl"
  accuracy  = 0.9
  chance    = 0.0625 # one word of 16
}
