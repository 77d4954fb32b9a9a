package report

import (
	"fmt"
	"strings"
	"testing"
)

// measuredText prints a report of measurements alone and returns that part.
func measuredText(t *testing.T, m *Measured) string {
	t.Helper()
	var whole strings.Builder
	if err := (&Report{Measured: m, Limits: Limits{StartSeconds: 60}}).WriteText(&whole); err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(whole.String(), "measured on this machine: ")
	if !found {
		t.Fatalf("no measurements in %s", whole.String())
	}
	return part
}

func TestTextOfMeasurements(t *testing.T) {
	got := measuredText(t, &Measured{
		Machine: "2 cores", Shrunk: "a twin of 2 layers was started",
		Conditions: []Condition{{Name: "no network", Held: true, Detail: "loopback alone"}, {Name: "other user", Held: true}, {Name: "memory limit", Detail: "no control group"}},
		Starts: []Start{
			{What: "first", Healthy: 1.234, Stopped: 0.02, Phases: []Phase{{"port 8000 bound", 0.5}, {"/health 200", 1.234}}},
			{What: "again, at once", Healthy: 0.234, Saved: 1},
			{What: "again", Exit: "exit status 1", Left: []string{"process 7 python3", "port 8000"}},
		},
		First:      []Reply{{Request: "POST /draft", Status: 500, Took: 0.1, Problem: "not 200", Excerpt: "jinja2"}, {Request: "POST /draft", Took: 60, Problem: "timed out"}},
		Batch:      &Batch{Requests: 20, Concurrency: 16, Repeats: 2, Failed: 1, Empty: 3, Tokens: 2000, Seconds: 12.5, Latencies: []float64{0.5, 1, 2, 10.5}},
		Projection: &Projection{Formula: "0.1 s + 12.5 s * 900/20", Seconds: 562.6, Limit: 3600, Device: "scaled by 4.8/1.9"},
		Trace:      &Trace{Opened: []Access{{Path: "a"}, {Path: "/tmp/b", Written: true}}, Programs: []string{"python3 server.py"}, Connected: []string{"192.0.2.1:443"}},
		Quality: &Quality{Questions: 100, Right: 26, Parsed: 90, Truncated: 8, Failed: 2, Accuracy: 0.26, Low: 0.1840, High: 0.3537, Chance: 0.25, Floor: 0.5,
			Alone: &Agreement{Compared: 10, Same: 9, Share: 0.9, First: "question 3"}},
		Log: "one\ntwo\n",
	})
	const want = `2 cores
  a twin of 2 layers was started
  held: no network (loopback alone), other user
  not held: memory limit: no control group
  start (first): healthy after 1.23 s of 60.0 s, stopped in 0.020 s
      0.500 s  port 8000 bound
       1.23 s  /health 200
  start (again, at once): healthy after 0.234 s of 60.0 s, 1.00 s sooner than the first
  start (again): never healthy, ended by itself: exit status 1
    left behind: process 7 python3, port 8000
  first requests: POST /draft: 500 after 0.100 s: not 200: jinja2
  first requests: POST /draft: no reply after 60.0 s: timed out
  batch: 20 requests, 16 at a time, in 12.5 s; 1 failed, 3 empty; 2 more left out as repeats
    2,000 tokens, 160.0 a second
    a request took 1.00 s (median), 10.5 s (95%), 10.5 s (longest)
  deadline: 0.1 s + 12.5 s * 900/20 = 563 s of 3,600 s
    scaled by 4.8/1.9
  trace: 2 files opened, 1 program started, 1 address beyond loopback tried
    wrote /tmp/b
    started python3 server.py
    tried to reach 192.0.2.1:443
  quality: 26 of 100 right = 0.2600, with 95% confidence 0.1840 to 0.3537; floor 0.5, chance 0.25
    90 in the form of an answer, 8 cut off at the token limit, 2 not answered
    9 of 10 the same in the batch as alone (0.9000)
      first difference: question 3
  the end of its log
    one
    two
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextOfDrafting(t *testing.T) {
	got := measuredText(t, &Measured{Quality: &Quality{Steps: 100, Tokens: 466, Tau: 4.66, PerPrompt: 4.7123, Floor: 4.6}})
	if want := "unknown\n  quality: tau 4.6600 (466 tokens in 100 steps), mean over prompts 4.7123; floor 4.6\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongMeasurementsAreCut(t *testing.T) {
	m := &Measured{Trace: &Trace{}, Starts: []Start{{What: "first"}}}
	for i := range 50 {
		m.Trace.Programs = append(m.Trace.Programs, fmt.Sprint("program ", i))
		m.Starts[0].Phases = append(m.Starts[0].Phases, Phase{"phase", float64(i)})
		m.Log += fmt.Sprintf("line %d\x1b\n", i)
	}
	got := measuredText(t, m)
	for _, want := range []string{"(30 lines before)\n    line 30\\x1b\n", "program 19\n  and 30 more\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "program 20") || strings.Contains(got, "line 29") || strings.Count(got, "phase") != findingsShown {
		t.Errorf("too much is shown:\n%s", got)
	}
}

func TestQuantile(t *testing.T) {
	b := &Batch{Latencies: []float64{1, 2, 3, 4}}
	for share, want := range map[float64]float64{0: 1, 0.25: 1, 0.5: 2, 0.51: 3, 0.95: 4, 1: 4} {
		if got := b.Quantile(share); got != want {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
	if got := (&Batch{}).Quantile(0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
}
