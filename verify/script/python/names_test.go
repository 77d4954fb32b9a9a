package python

import "testing"

func TestIsModelName(t *testing.T) {
	for _, name := range []string{"Qwen/Qwen3-0.6B", "facebook/opt-125m", "openai/whisper", "meta-llama/Llama-3.2-1B", "sentence-transformers/all-MiniLM-L6-v2", "Qwen/{n}", "bigscience/bloom_7b1"} {
		if !IsModelName(name) {
			t.Errorf("%q is no model name", name)
		}
	}
	for _, text := range []string{"application/json", "text/event-stream", "image/png", "/models/a", "./a", "../a/b", "a/b/c", "weights/model.safetensors", "config/a.json",
		"12/2026", "HTTP/1.1", "Mozilla/5.0", "Europe/Berlin", "tmp/a-1", "v1/models", "int8/int4", "fp8/bf16", "n/a", "a / b", "and/or else", "https://a/b", "", "Qwen3-0.6B", "1/2"} {
		if IsModelName(text) {
			t.Errorf("%q is a model name", text)
		}
	}
}
