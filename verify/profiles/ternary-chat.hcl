schema = 1

profile "ternary-chat" {
  description = "A ternary quantization of Qwen3.5-4B behind a chat endpoint, graded on four text benchmarks."
  max_bytes   = 0          # no limit is known
  vision_mtp  = "may_omit" # absent, or unchanged and unused
  image       = "grader.image.json"

  gates = [
    "paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "components", "ternary",
    "stored", "origin", "data", "lookup", "text-only", "wheels", "script", "secrets", "config", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
  may_undecided = [
    "components", "origin", "text-only", "wheels", "rebuild",
    "install", "startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality",
  ]
}

base "language" {
  repository = "Qwen/Qwen3.5-4B"
  revision   = "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"
  contract   = "qwen3.5-4b.contract.json"
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
required "quantization_manifest.json" {
  why = "says how each tensor is stored"
}
required "DATA.md" {
  why = "lists the data sets, splits and recipes that were used"
}
required "provenance/*.log" {
  why = "shows how the weights were obtained"
}

ternary {
  fraction_above = "95/100"
  stored_at_most = "11/10"
  counting       = "observed"
  unreferenced   = "forbid" # every stored tensor serves an entry; a hidden copy cannot
  group_minimum  = 32
  formats        = ["packed_2bit", "literal"]
}

device "H100" {
  memory_bytes     = 85899345920   # 80 GiB
  bytes_per_second = 3350000000000
}

load {
  endpoint        = "/v1/chat/completions"
  concurrency     = 16
  max_tokens      = 4096
  temperature     = 0
  start_seconds   = 300
  request_seconds = 300
  total_seconds   = 82800
  port            = 8000
  attempts        = 3
}
