schema = 1

profile "vision-chat" {
  description = "An unchanged Maple with a vision encoder and a connector added, behind a chat endpoint, graded on questions with images."
  max_bytes   = 0       # no limit is known
  vision_mtp  = "added" # the base has none, and stays as it is
  image       = "grader.image.json"

  gates = [
    "paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "components",
    "origin", "data", "lookup", "wheels", "script", "secrets", "config", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
  may_undecided = [
    "components", "origin", "wheels", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
}

base "language" {
  repository = "deepgrove/maple-preview"
  revision   = "ac1ddd79d2b5cb4406f5d2bebdf95406ce505a07"
  contract   = "maple.contract.json"
}

required "serve.sh" {
  why = "the entry point that the grader runs"
}
required "architecture.json" {
  generated = true
  why       = "names the base model, its revision and the added components"
}
required "STARTING_ARTIFACT.json" {
  generated = true
  why       = "identifies the pinned starting artifact"
}
required "backbone_contract.json" {
  generated = true
  why       = "lists what the backbone must contain"
}
required "DATA.md" {
  why = "lists the data sets, splits and recipes that were used"
}
required "provenance/*.log" {
  why = "shows how the weights were obtained"
}

device "H100" {
  memory_bytes     = 85899345920   # 80 GiB
  bytes_per_second = 3350000000000
}

load {
  endpoint        = "/v1/chat/completions"
  concurrency     = 16
  max_tokens      = 4096    # as for the other chat task: this one's own is not known
  temperature     = 0
  start_seconds   = 300
  request_seconds = 300
  total_seconds   = 3600
  port            = 8000
  attempts        = 3
  graded_requests = 900
  body_bytes      = 5242880 # of base64, which images reach easily
}

quality {
  accuracy = 0.438 # what the base reaches from the text alone; the questions are whoever's that rehearses: rehearse --questions FILE
}
