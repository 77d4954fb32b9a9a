schema = 1

profile "practice" {
  description = "A small chat model, asked the questions of the example, to try every step on a machine without a GPU."
  max_bytes   = 0          # no limit
  vision_mtp  = "may_omit"
  image       = "grader.image.json"

  gates = [
    "paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "ternary", "stored",
    "data", "lookup", "text-only", "script", "secrets", "config", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
  may_undecided = [
    "text-only", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
}

ternary {
  fraction_above = "95/100"
  stored_at_most = "11/10"
  counting       = "observed"
  group_minimum  = 32
  formats        = ["packed_2bit", "literal"]
  when_declared  = true # a drafter is not ternary and has no manifest to say so
}

load {
  endpoint        = "/v1/chat/completions"
  concurrency     = 16
  max_tokens      = 64
  temperature     = 0
  start_seconds   = 60
  request_seconds = 60
  total_seconds   = 900
  port            = 8000
  attempts        = 3
  graded_requests = 900
}

quality {
  questions = "abacus.questions.jsonl"
  accuracy  = 0.8 # the shipped models reach 0.89 and 0.88
}
