package page

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest/content"
	"slipway/verify"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// profile asks for the gates that the abacus model's report is made of. Gates
// that need the submission to run are decided by measuredGates.
func profile() profiles.Profile {
	return profiles.Profile{
		Name: "practice", VisionMTP: profiles.MayOmit, MaxBytes: 2_000_000,
		Gates: []string{"paths", "digests", "files", "declared", "size", "safetensors", "index", "coverage", "ternary", "stored", "config",
			"startup", "first-request", "batch", "deadline", "still-healthy", "opened-files", "quality"},
		MayUndecided: []string{"opened-files"},
		Ternary: &profiles.Ternary{
			FractionAbove: profiles.Ratio{Numerator: 95, Denominator: 100}, StoredAtMost: profiles.Ratio{Numerator: 11, Denominator: 10},
			Counting: report.CountObserved, GroupMinimum: 32,
		},
		Load: profiles.Load{StartSeconds: 60, TotalSeconds: 900},
	}
}

func run(t *testing.T, folder string, p profiles.Profile) *report.Report {
	t.Helper()
	tree, err := content.OpenFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	r, err := verify.Run(t.Context(), tree, verify.Options{Profile: p, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// passing is the report of a real model, with plausible measurements.
func passing(t *testing.T) *report.Report {
	t.Helper()
	r := run(t, "../../examples/abacus/ternary", profile())
	r.Decide(measuredGates(), rehearsed())
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

func measuredGates() []report.GateResult {
	results := []report.GateResult{{ID: "opened-files", Status: report.Undecided, Notes: []string{"could not be decided: tracing needs a capability that this user lacks"}}}
	for _, id := range []string{"startup", "first-request", "batch", "deadline", "still-healthy"} {
		results = append(results, report.GateResult{ID: id, Status: report.Pass})
	}
	return append(results, report.GateResult{ID: "quality", Status: report.Pass, Findings: []report.Finding{{
		Level: report.Warning, Problem: "the interval of the accuracy reaches below the floor", Want: "at least 0.85", Got: "0.8338 to 0.9334",
		Hint: "measure more questions, or leave more room",
	}}, Notes: []string{"134 of 150 right"}})
}

func rehearsed() *report.Measured {
	m := &report.Measured{
		Machine: "Linux, 2 cores of Intel Xeon, 7.6 GB of memory, no accelerator",
		Conditions: []report.Condition{
			{Name: "no network", Held: true, Detail: "loopback alone"}, {Name: "read-only submission", Held: true},
			{Name: "small TMPDIR", Held: true, Detail: "64 MB, noexec"}, {Name: "memory limit", Detail: "no control group can be made here"},
		},
		Starts: []report.Start{
			{What: "first", Healthy: 0.412, Stopped: 0.021, Phases: []report.Phase{
				{Name: "serve.sh", At: 0.004}, {Name: "program runtime/serve", At: 0.019}, {Name: "port 8000 bound", At: 0.052},
				{Name: "first weight file opened", At: 0.061}, {Name: "/health 200", At: 0.412},
			}},
			{What: "again, from another folder, as another user", Healthy: 0.387, Stopped: 0.018},
		},
		First:      []report.Reply{{Request: "POST /v1/chat/completions", Status: 200, Took: 0.043}},
		Batch:      &report.Batch{Requests: 150, Concurrency: 16, Repeats: 3, Tokens: 2317, Seconds: 9.81},
		Projection: &report.Projection{Formula: "0.043 s + 9.81 s * 900/150", Seconds: 58.9, Limit: 900},
		Trace: &report.Trace{
			Opened:   []report.Access{{Path: "float-00001.safetensors"}, {Path: "ternary-00001.safetensors"}, {Path: "tokenizer.json"}, {Path: "/tmp/copy", Written: true}},
			Programs: []string{"/bin/sh serve.sh", "runtime/serve --port 8000"},
		},
		Quality: &report.Quality{
			Questions: 150, Right: 134, Parsed: 149, Truncated: 1, Accuracy: 0.8933, Low: 0.8338, High: 0.9334, Chance: 0.0067, Floor: 0.85,
			Alone: &report.Agreement{Compared: 32, Same: 32, Share: 1}, Golden: &report.Agreement{Compared: 20, Same: 19, Share: 0.95, First: "question 7: 598, of the base 989"},
		},
		Log: "serve: loading ternary-00001.safetensors\nserve: listening on 0.0.0.0:8000\nserve: healthy\n",
	}
	for i := range 150 { // a skewed, deterministic spread
		m.Batch.Latencies = append(m.Batch.Latencies, 0.35+0.9*math.Pow(float64(i)/149, 3))
	}
	return m
}

// nasty is text that would break a page: markup, a bidirectional override, a
// control character, invalid UTF-8 and a name without a place to break it.
const nasty = "</style><script>alert(1)</script>\"'><img src=//evil.example/x onerror=alert(2)>\u202egnp.exe\x1b[31m\xff `|*_"

// hostile is a failing report that somebody made to break the page.
func hostile(t *testing.T) *report.Report {
	t.Helper()
	folder := filepath.Join(t.TempDir(), `<script>alert("name")<`+strings.Repeat("long", 30))
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, `"><script>alert(1)<`+strings.Repeat("x", 200)+".safetensors"), []byte("no header"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := run(t, folder, profile())
	var many report.GateResult
	many.ID, many.Status = "files", report.Fail
	for i := range 10_000 {
		many.Findings = append(many.Findings, report.Finding{
			Level: report.Error, Path: fmt.Sprintf("weights/%s/%d%s", strings.Repeat("unbroken", 30), i, nasty), Tensor: "مرحبا.שלום.layers." + strings.Repeat("7", 80),
			Problem: "שלום מרחבא " + nasty, Want: strings.Repeat("w", 300), Got: nasty, Hint: "هذا نص عربي " + nasty,
		})
	}
	for i := range r.Gates {
		if r.Gates[i].ID == "files" {
			r.Gates[i] = many
		}
	}
	r.Decide([]report.GateResult{{ID: "startup", Status: report.Fail, Findings: []report.Finding{{Level: report.Error, Problem: "the server ended before it was healthy", Got: nasty, Hint: nasty}}}}, hostileMeasured())
	for i := range 300 {
		r.Tensors = append(r.Tensors, report.Tensor{Name: fmt.Sprintf("model.layers.%d.%s", i, nasty), Kind: "packed_2bit", Shape: []int64{1 << 40, 1}, Histogram: &[4]int64{3, 4, 5, int64(i % 2)}, NonFinite: 3})
	}
	for i := range 5000 {
		r.SelfDeclared = append(r.SelfDeclared, report.Claim{Source: nasty, Name: fmt.Sprint(i), Value: strings.Repeat("v", 4000)})
	}
	return r
}

func hostileMeasured() *report.Measured {
	m := rehearsed()
	m.Machine, m.Shrunk = nasty, "a twin of 2 layers was started: "+nasty
	m.Log = strings.Repeat(nasty+"\n", 3000)
	m.Starts = []report.Start{{What: nasty, Exit: "exit status 1: " + nasty, Left: []string{nasty}}}
	for i := range 3000 {
		m.Starts[0].Phases = append(m.Starts[0].Phases, report.Phase{Name: nasty, At: float64(i)})
	}
	m.First = []report.Reply{{Request: nasty, Took: 1, Problem: nasty, Excerpt: nasty}}
	m.Trace.Connected = []string{"203.0.113.7:443 " + nasty}
	m.Quality.Accuracy, m.Quality.Right, m.Quality.Low, m.Quality.High = 0.1, 15, 0.06, 0.16
	m.Projection.Seconds = 4000
	return m
}
