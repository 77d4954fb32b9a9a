package verify

import (
	"strings"
	"testing"

	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// withVision stores one tensor of the vision tower or the MTP head.
func withVision(serve string, names ...string) func(*fixture) {
	return func(f *fixture) {
		f.noQuantization = false
		for _, name := range names {
			f.shards[floatShard][name] = &stored{safetensors.BF16, []int64{4}, make([]byte, 8)}
		}
		f.files["serve.sh"] = []byte("#!/bin/sh\n" + serve)
	}
}

func TestTextOnly(t *testing.T) {
	const vision, mtp = "model.visual.merger.norm.bias", "mtp.norm.weight"
	for _, test := range []struct {
		name  string
		alter func(*fixture)
		want  report.Status
		says  string
	}{
		{"nothing besides text", withVision("exec python3 -m vllm.entrypoints.openai.api_server --port 8000\n"), report.Pass, "no vision or MTP tensor is stored"},
		{"vision, with the flag", withVision("exec python3 -m vllm.entrypoints.openai.api_server --language-model-only\n", vision), report.Pass, "1 vision tensor is stored; the server is started with --language-model-only"},
		{"vision, without the flag", withVision("exec python3 -m vllm.entrypoints.openai.api_server\n", vision), report.Undecided, "the server is not started with --language-model-only"},
		{"flag that is off", withVision("exec python3 -m vllm.entrypoints.openai.api_server --language-model-only=false\n", vision), report.Undecided, "the server is not started with"},
		{"MTP and vision", withVision("exec python3 code/server.py\n", vision, mtp), report.Undecided, "1 vision tensor is stored, 1 MTP tensor is stored"},
		{"runtime that was not built here", withVision("exec ./runtime/serve\n", mtp), report.Undecided, ""},
		{"speculative decoding", withVision("exec python3 -m vllm.entrypoints.openai.api_server --speculative-config '{\"method\":\"mtp\"}'\n"), report.Fail, "line 2 starts the server with --speculative-config"},
		{"speculative tokens", withVision("exec python3 -m vllm.entrypoints.openai.api_server --num_speculative_tokens=2\n"), report.Fail, "--num_speculative_tokens=2"},
	} {
		f := newFixture()
		test.alter(f)
		profile := toyProfile()
		profile.VisionMTP = profiles.MayOmit
		r := run(t, f.write(t), Options{Profile: profile})
		g, _ := r.Gate("text-only")
		said := strings.Join(g.Notes, "\n")
		for _, finding := range g.Findings {
			said += "\n" + finding.Problem
		}
		if g.Status != test.want || !strings.Contains(said, test.says) {
			t.Errorf("%s: %s, want %s with %q\n%s", test.name, g.Status, test.want, test.says, said)
		}
	}
}

func TestIsSpeculative(t *testing.T) {
	for word, want := range map[string]bool{
		"--speculative-config": true, "--speculative_config={}": true, "--speculative-config.method": true, "--num-speculative-tokens": true,
		"--speculative-algorithm=EAGLE": true, "--port": false, "speculative": false, "--speculatively": false, "--mtproto": false,
	} {
		if got := isSpeculative(word); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}
