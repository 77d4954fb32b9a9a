package boot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/sandbox"
	"slipway/verify/image"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// The intervals are those of R's binom.confint(method = "wilson").
func TestWilson(t *testing.T) {
	for _, test := range []struct {
		right, n  int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {134, 150, 0.8338, 0.9333}} {
		low, high := wilson(test.right, test.n)
		if math.Abs(low-test.low) > 5e-5 || math.Abs(high-test.high) > 5e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", test.right, test.n, low, high, test.low, test.high)
		}
	}
}

// What a probe came to, of a server that answers, sends elsewhere, or never answers:
// the wait for that one ends when it was asked.
func TestProbeText(t *testing.T) {
	const long = time.Minute
	for _, test := range []struct {
		what, before string
		health       func(w http.ResponseWriter, r *http.Request, over func())
		took         time.Duration
		want         string
	}{
		{"loading", "connection refused", func(w http.ResponseWriter, _ *http.Request, _ func()) { w.WriteHeader(http.StatusServiceUnavailable) }, long, "HTTP 503"},
		{"moved", "", func(w http.ResponseWriter, r *http.Request, _ func()) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, long, "HTTP 307"},
		{"hangs", "connection refused", func(_ http.ResponseWriter, r *http.Request, over func()) { over(); <-r.Context().Done() }, long,
			"not answered when the time was over; the one before: connection refused"},
		{"hangs from the first one on", "", func(_ http.ResponseWriter, r *http.Request, over func()) { over(); <-r.Context().Done() }, long, "not answered when the time was over"},
		{"was hardly asked", "HTTP 503", func(_ http.ResponseWriter, r *http.Request, over func()) { over(); <-r.Context().Done() }, time.Millisecond, "HTTP 503"},
		{"closes", "HTTP 503", func(http.ResponseWriter, *http.Request, func()) { panic(http.ErrAbortHandler) }, long, "the connection was closed without a reply"},
	} {
		t.Run(test.what, func(t *testing.T) {
			waiting, over := context.WithCancel(t.Context())
			defer over()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { test.health(w, r, over) })
			mux.HandleFunc("GET /elsewhere", func(http.ResponseWriter, *http.Request) {})
			server := httptest.NewServer(mux)
			defer server.Close()
			status, err := ask.Endpoint{URL: server.URL}.Health(waiting)
			if got := probeText(test.before, status, err, waiting.Err() != nil, test.took); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestParses(t *testing.T) {
	for _, test := range []struct {
		answer, expected string
		want             bool
	}{
		{"B", "D", true}, {"B.", "D", false}, {"The answer is B", "D", false}, {"", "D", false},
		{"-12", "139", true}, {"twelve", "139", false}, {"1.5", "2.25", true}, {"30 83 95", "1 2", true}, {"30", "1 2", true}, {"30, 83", "1 2", false},
		{"n o o m", "d n i w", true}, {"noom", "d n i w", false}, {"moon", "wind", true},
		{"whatever", "x = 3 + y", true}, {"", "x = 3 + y", false}, {"Oh well", "a long answer in free words", true},
	} {
		if got := ask.Parses(test.answer, test.expected); got != test.want {
			t.Errorf("%q as %q: %v", test.answer, test.expected, got)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		question ask.Question
		want     int
	}{
		{ask.Question{Question: "Which?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer with the letter.", Answer: "B"}, 4},
		{ask.Question{Question: "Which?\n(A) 1\n(B) 2", Answer: "A"}, 2},
		{ask.Question{Question: "Which?\nA. 1\nB. 2", Answer: "C"}, 0},
		{ask.Question{Question: "Which letter follows C?", Answer: "D"}, 0},
		{ask.Question{Question: "Which?", Answer: "D", Choices: []string{"a", "b", "c", "d", "e"}}, 5},
		{ask.Question{Question: "A. 1\nB. 2\nAdd them.", Answer: "3"}, 0},
	} {
		if got := test.question.Options(); got != test.want {
			t.Errorf("%+v: %d, want %d", test.question, got, test.want)
		}
	}
}

func TestWithoutRepeats(t *testing.T) {
	kept, repeats := ask.WithoutRepeats([]ask.Question{{ID: "1", Question: "What is 2?"}, {ID: "2", Question: "what  is\n2? "}, {ID: "3", Question: "What is 3?"}})
	if len(kept) != 2 || repeats != 1 || kept[1].ID != "3" {
		t.Errorf("%v, %d", kept, repeats)
	}
}

func TestLateRemedy(t *testing.T) {
	for _, tc := range []struct {
		ports  []int
		status int
		want   string
	}{
		{nil, 0, ""},
		{[]int{8000}, 503, ""},
		{[]int{8000}, 404, "answer GET /health"},
		{[]int{8080, 9000}, 0, "listen on port 8000, where the grader asks: it listens on 8080 9000"},
		{[]int{}, 0, "bind the port first"},
	} {
		if got := lateRemedy(tc.ports, 8000, tc.status); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%v, %d: %q", tc.ports, tc.status, got)
		}
	}
}

// Windows of 76 tokens begin where the conversations do, end where they do, and
// are spread in between; short continuations are walked whole.
func TestWindows(t *testing.T) {
	var long []ask.Continuation
	for i := range 40 {
		c := ask.Continuation{ID: fmt.Sprint(i), Prompt: []int32{-1}}
		for token := range int32(276) {
			c.Continuation = append(c.Continuation, token)
		}
		long = append(long, c)
	}
	sample := ask.Windows(long, 32)
	if len(sample) != 32 {
		t.Fatalf("%d windows", len(sample))
	}
	total := 0
	for i, c := range sample {
		begin := 200 * i / 31
		total += len(c.Continuation)
		if len(c.Prompt) != 1+begin || len(c.Continuation) != 76 || int(c.Continuation[0]) != begin {
			t.Errorf("window %d begins at %d after %d tokens", i, c.Continuation[0], len(c.Prompt))
		}
	}
	if total != 2432 || len(long[5].Prompt) != 1 || len(long[5].Continuation) != 276 {
		t.Errorf("%d tokens", total)
	}
	if whole := ask.Windows(long[:1], 0); len(whole) != 1 || len(whole[0].Continuation) != 76 {
		t.Errorf("one long continuation: %v", whole)
	}
	short := []ask.Continuation{{Continuation: make([]int32, 152)}, {Continuation: make([]int32, 152)}}
	if whole := ask.Windows(short, 1); len(whole) != 2 || len(whole[0].Continuation) != 152 {
		t.Errorf("short continuations: %d", len(whole))
	}
}

// The lines are those that the failures were reported with.
func TestCauses(t *testing.T) {
	for log, want := range map[string]string{
		"OSError: /dev/shm/pylibs/torch/lib/libtorch_global_deps.so: failed to map segment from shared object":                     "mount without exec",
		"usage: dequant_export.py [-h]\ndequant_export.py: error: unrecognized arguments: --skip-mv":                               "does not know an argument that serve.sh gives it: --skip-mv",
		"ValueError: Using a `device_map`, `tp_plan`, ... requires `accelerate`. You can install it with `pip install accelerate`": "accelerate",
		"ImportError: apply_chat_template requires jinja2 to be installed.":                                                        "jinja2",
		"ModuleNotFoundError: No module named 'uvicorn'":                                                                           "the module uvicorn is missing",
		"ImportError: libGL.so.1: cannot open shared object file: No such file or directory":                                       "the library libGL.so.1 is missing",
		"OSError: [Errno 28] No space left on device":                                                                              "a folder is full",
		"[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use":                           "the port is taken",
		"ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by x.so)":                          "GLIBC_2.38 is missing",
		"FileNotFoundError: [Errno 2] No such file or directory: 'ninja'":                                                          "ninja is missing",
		"RuntimeError: Failed to find C compiler. Please specify via CC environment variable":                                      "no C compiler",
		"error: externally-managed-environment":                                                                                    "pip may not install",
		"ERROR: No matching distribution found for setuptools>=40.8.0":                                                             "no wheel of setuptools",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB":                                                      "memory is too small",
		"runtime: --device cuda: load the CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory":    "needs a GPU",
		"runtime: --device cuda: cuInit: CUDA_ERROR_NO_DEVICE (100)":                                                               "needs a GPU",
		"RuntimeError: Found no NVIDIA driver on your system.":                                                                     "needs a GPU",
		"/bin/bash^M: bad interpreter: No such file or directory":                                                                  "line ends of Windows",
		"serve.sh: line 3: vllm: command not found":                                                                                "the program vllm is missing",
		"sh: 1: uvicorn: not found": "the program uvicorn is missing",
		"/submission/serve.sh: line 6: /submission/venv/bin/serve: cannot execute: required file not found":                             "the first line of /submission/venv/bin/serve names",
		"serve.sh cannot be executed: start /submission/serve.sh in the sandbox: start /submission/serve.sh: no such file or directory": "serve.sh's first line names is not there",
		"requests.exceptions.ConnectionError: Temporary failure in name resolution":                                                     "asks the network",
	} {
		if c, _, ok := findCause("loading\n" + log + "\n"); !ok || !strings.Contains(c.means, want) || c.remedy == "" {
			t.Errorf("%s: %q, want %q", log, c.means, want)
		}
	}
	for _, log := range []string{"", "loading weights\nready", "warning: /proc/x: Permission denied" + strings.Repeat("\nloading", 9) + "\nKeyError: 'x'"} {
		if c, _, ok := findCause(log); ok {
			t.Errorf("%q: %q", log, c.means)
		}
	}
}

func TestSanitised(t *testing.T) {
	got := sanitised("a\x1b[31mb\r\n 10%\r 20%\n\tc\n\n")
	if got != "a\\x1b[31mb\n 10%\n 20%\n    c" {
		t.Errorf("%q", got)
	}
	if got := sanitised(strings.Repeat("x", 10000)); len(got) != 4<<10 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestMachine(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: A Processor\n",
		"proc/meminfo": "MemTotal:        8388608 kB\n",
		"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := describeMachine(root)
	if !strings.HasPrefix(m.text, "A Processor, ") || !strings.HasSuffix(m.text, ", 8.0 GiB of memory, 1 x NVIDIA H100 80GB HBM3") || m.bytesPerSecond != 3.35e12 {
		t.Errorf("%+v", m)
	}
	if m := describeMachine(t.TempDir()); m.text == "" || m.card != "" {
		t.Errorf("of nothing: %+v", m)
	}
	for card, want := range map[string]float64{
		"NVIDIA H200": 4.8e12, "NVIDIA H100 PCIe": 2.0e12, "NVIDIA H100 NVL": 3.9e12, "NVIDIA A100-SXM4-80GB": 2.039e12, "NVIDIA A100-SXM4-40GB": 1.555e12,
		"NVIDIA L4": 300e9, "NVIDIA L40S": 864e9, "NVIDIA GeForce RTX 4090": 1.008e12, "Tesla T4": 320e9, "Something else": 0,
	} {
		if got := bandwidthOf(card); got != want {
			t.Errorf("%s: %g, want %g", card, got, want)
		}
	}
}

// What was measured on one accelerator says something of another; what was
// measured without one says only that it may be faster.
func TestDeadline(t *testing.T) {
	h100 := &profiles.Device{Name: "H100", BytesPerSecond: 3.35e12}
	for name, test := range map[string]struct {
		seconds float64
		device  *profiles.Device
		here    accelerator
		status  report.Status
		say     string
	}{
		"in time":                         {489.6, nil, accelerator{}, "", "4.6 s of the first request + 489.6 s * 900/150 requests = 2942 s of 3600 s, a margin of 18%"},
		"too late":                        {700, nil, accelerator{}, report.Fail, "takes longer than it may"},
		"too late on a faster card":       {489.6, h100, accelerator{"NVIDIA H200", 4.8e12}, report.Fail, "scaled by 1.43"},
		"in time on a slower card":        {700, h100, accelerator{"NVIDIA L4", 300e9}, "", "scaled by 0.0896"},
		"in time without":                 {489.6, h100, accelerator{}, "", "not scaled to H100"},
		"too late without":                {700, h100, accelerator{}, report.Undecided, "run it there"},
		"in time on an unknown card":      {100, h100, accelerator{"Unheard of", 0}, report.Undecided, "the bandwidth of one of them is unknown"},
		"too late on the grader's device": {700, h100, accelerator{"NVIDIA H100 80GB HBM3", 3.35e12}, report.Fail, "takes longer than it may"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Rehearsal{Profile: profiles.Profile{Device: test.device, Load: profiles.Load{TotalSeconds: 3600, GradedRequests: 900}}}
			o := &observed{rehearsal: r, replied: true, accelerator: test.here, Measured: &report.Measured{
				First: []report.Reply{{Took: 4.6}}, Batch: &report.Batch{Requests: 150, Concurrency: 16, Seconds: test.seconds, Tokens: 1},
			}}
			v := o.judgeDeadline()
			result := report.GateResult{Findings: v.Findings, Notes: v.Notes}
			status := v.Status
			for _, f := range v.Findings {
				if f.Level == report.Error {
					status = report.Fail
				}
			}
			if text := findings(result); status != test.status || !strings.Contains(text, test.say) {
				t.Errorf("%q, want %q that says %q:\n%s", status, test.status, test.say, text)
			}
		})
	}
}

// 99.5 s of 2432 tokens are 1819 s of 44314, with 6.1 s of the first request.
func TestDeadlineOfDrafts(t *testing.T) {
	r := &Rehearsal{Profile: profiles.Profile{Load: profiles.Load{TotalSeconds: 10800, GradedTokens: 44314}}}
	o := &observed{rehearsal: r, replied: true, drafts: &ask.Acceptance{}, Measured: &report.Measured{
		First: []report.Reply{{Took: 6.1}}, Batch: &report.Batch{Requests: 2180, Concurrency: 32, Seconds: 99.5, Tokens: 2432},
	}}
	v := o.judgeDeadline()
	if math.Abs(o.Projection.Seconds-1819.1) > 0.05 || len(v.Findings) > 0 || !strings.Contains(v.Notes[1], "took 99.5 s of a budget of 593 s") {
		t.Errorf("%+v, %+v", o.Projection, v)
	}
}

// Of 150 requests 50 failed: 900 take nine times what the other 100 took. Of a
// failed draft a token is left that nobody drafted.
func TestDeadlineWithFailures(t *testing.T) {
	r := &Rehearsal{Profile: profiles.Profile{Load: profiles.Load{TotalSeconds: 3600, GradedRequests: 900, GradedTokens: 1000}}}
	o := &observed{rehearsal: r, Measured: &report.Measured{First: []report.Reply{{Took: 4}}, Batch: &report.Batch{Requests: 150, Failed: 50, Seconds: 200, Tokens: 250}}}
	if p, ok := o.project(); !ok || p.Seconds != 4+200*9 || !strings.Contains(p.Formula, "900/100 requests") {
		t.Errorf("%+v", p)
	}
	o.drafts = &ask.Acceptance{}
	if p, ok := o.project(); !ok || p.Seconds != 200*5+4 || !strings.Contains(p.Formula, "1000/200 tokens") {
		t.Errorf("drafts: %+v", p)
	}
}

// A load that was broken off when its time was over fails gate deadline alone, if
// all that failed was broken off.
func TestBrokenOff(t *testing.T) {
	late := lateLoad{60e9}
	answer := func(failed ...error) (all []ask.Answer) {
		for _, err := range failed {
			all = append(all, ask.Answer{Failed: err, Content: "x"})
		}
		return all
	}
	for name, test := range map[string]struct {
		answers  []ask.Answer
		drafts   *ask.Acceptance
		failed   int
		batch    report.Status // "": fails
		deadline bool          // fails
	}{
		"the rest":         {answer(nil, late, fmt.Errorf("read the reply: %w", late)), nil, 2, report.Undecided, true},
		"all":              {answer(late, late, late), nil, 3, "", false},
		"one failed":       {answer(nil, late, errors.New("HTTP 500")), nil, 2, "", true},
		"drafts":           {nil, &ask.Acceptance{}, 1, report.Undecided, true},
		"too many drafts":  {nil, &ask.Acceptance{}, 2, "", true},
		"not a single one": {nil, &ask.Acceptance{}, 3, "", false},
	} {
		r := &Rehearsal{Profile: profiles.Profile{Load: profiles.Load{TotalSeconds: 60, GradedRequests: 300, GradedTokens: 300}}}
		o := &observed{rehearsal: r, replied: true, answers: test.answers, drafts: test.drafts, late: late.Error(), Measured: &report.Measured{
			First: []report.Reply{{Took: 1}}, Batch: &report.Batch{Requests: 3, Concurrency: 1, Failed: test.failed, Tokens: 3, Seconds: 60}}}
		batch, deadline := o.judgeBatch(), o.judgeDeadline()
		if batch.Status != test.batch || batch.Failed() != (test.batch == "") || deadline.Failed() != test.deadline {
			t.Errorf("%s: batch %+v, deadline %+v", name, batch, deadline)
		}
	}
}

// Weights larger than the grader's accelerator are warned of.
func TestDeadlineMemory(t *testing.T) {
	for size, warned := range map[int64]bool{80: false, 81: true} {
		o := &observed{rehearsal: &Rehearsal{
			Profile: profiles.Profile{Device: &profiles.Device{Name: "a card", MemoryBytes: 100}}, Unused: map[string]bool{"vision.safetensors": true},
			Files: []manifest.File{{Path: "a.safetensors", Size: 20}, {Path: "b.safetensors", Size: size}, {Path: "vision.safetensors", Size: 500}, {Path: "x.txt", Size: 500}},
		}}
		var v verdict
		o.judgeMemory(&v)
		if warned != (len(v.Findings) == 1 && strings.Contains(v.Findings[0].Got, "101 bytes")) || warned == (len(v.Notes) == 1) {
			t.Errorf("%d: %+v", size, v)
		}
	}
}

// One answer is never more than half of what is asked with zero weights.
func TestDifferentAnswers(t *testing.T) {
	for text, want := range map[string]int{"BBBBBBBBBBBBBBBB": 0, "ABBBBBBBBBBBBBBB": 2, "AAAABBBBBBBBBB": 8, "ABCDABCDABCDABCDABCD": 16, "": 0} {
		var answers []ask.Answer
		for i, letter := range text {
			answers = append(answers, ask.Answer{Question: ask.Question{ID: fmt.Sprint(i), Answer: string(letter)}, Content: string(letter) + "\n"})
		}
		answers = append(answers, ask.Answer{Question: ask.Question{Answer: "A"}, Content: "B"})
		if chosen := differentAnswers(answers); len(chosen) != want {
			t.Errorf("%s: %d, want %d", text, len(chosen), want)
		}
	}
}

func TestCopyWithZeros(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	for name, text := range map[string]string{"a.safetensors": testWeights, "sub/x.txt": "text", "unlisted": "", "runtime/selftest.json": `[{"prompt":[1],"tokens":[2]}]`} {
		target := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	files := []manifest.File{{Path: "a.safetensors"}, {Path: "sub/x.txt"}, {Path: "runtime/selftest.json"}}
	if err := copyWithZeros(from, to, files); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a.safetensors": testWeights[:len(testWeights)-8] + strings.Repeat("\x00", 8), "sub/x.txt": "text"} {
		data, err := os.ReadFile(filepath.Join(to, name))
		info, _ := os.Stat(filepath.Join(to, name))
		if err != nil || string(data) != want || info.Mode() != 0o755 {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(to, "runtime/selftest.json")); err != nil || string(data) != "[]\n" {
		t.Errorf("the known answers are %q, which zeros do not give: %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(to, "unlisted")); err == nil {
		t.Error("what no list has is copied")
	}
	if err := copyWithZeros(from, filepath.Join(t.TempDir(), "copy"), files[1:]); !errors.Is(err, errNoWeights) {
		t.Errorf("without weights: %v", err)
	}
}

// tracedObserved is of a server that opened what it should.
func tracedObserved(more ...sandbox.Opened) *observed {
	return &observed{
		rehearsal: &Rehearsal{Files: []manifest.File{{Path: "weights/a.safetensors"}, {Path: "weights/vision.safetensors"}}, Unused: map[string]bool{"weights/vision.safetensors": true}},
		Measured:  &report.Measured{}, replied: true, at: "/submission", homeFolder: homeInside, address: "192.0.2.2",
		trace: &sandbox.Trace{
			Opened: append([]sandbox.Opened{
				{Path: "/submission/weights/a.safetensors", Exists: true}, {Path: "/etc/ld.so.cache", Exists: true}, {Path: "/usr/lib/x.so", Exists: true},
				{Path: "/tmp/cache/model.bin", Exists: true, Written: true}, {Path: "/tmp/home/.cache/x", Written: true, Exists: true}, {Path: "/root/.local/lib/python3.12/site-packages"},
				{Path: "/grader/env/lib/python3.12/site-packages/torch/lib/libtorch.so", Exists: true}, {Path: "/grader/env/pyvenv.cfg", Exists: true},
				{Path: "/usr/lib/python3/dist-packages/distutils-precedence.pth", Exists: true}, {Path: "/grader/env/lib/python3.12/site-packages/x.pth", Exists: true}, {Path: "/dev/null", Written: true, Exists: true},
				{Path: "/usr/share/icu/data.bin", Exists: true}, {Path: "/opt/venv/lib/libx.so", Exists: true},
			}, more...),
			Programs:    []sandbox.Program{{Path: "/grader/env/bin/python3"}},
			Connections: []sandbox.Connection{{Address: "127.0.0.1:8000"}, {Address: "[::1]:80"}, {Address: "192.0.2.2:8000"}, {Address: "8.8.8.8:80"}},
		},
	}
}

func TestOpenedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*observed)
		level  report.Level // "": no finding
		say    string
	}{
		"clean":             {func(*observed) {}, "", ""},
		"weights elsewhere": {opening(sandbox.Opened{Path: "/data/model.safetensors", Exists: true}), report.Error, "looks like weights outside"},
		"weights in packages": {opening(sandbox.Opened{Path: "/usr/lib/python3/dist-packages/x/model.bin", Exists: true}), report.Error,
			"looks like weights outside"},
		"weights in the system": {opening(sandbox.Opened{Path: "/usr/share/model.safetensors", Exists: true}), report.Error, "looks like weights outside"},
		"sought weights":        {opening(sandbox.Opened{Path: "/workspace/output/model.safetensors"}), report.Warning, "looks for weights outside"},
		"a file elsewhere":      {opening(sandbox.Opened{Path: "/workspace/answers.json", Exists: true}), report.Error, "no part of the system"},
		"a cache":               {opening(sandbox.Opened{Path: "/srv/hf/.cache/config.json", Exists: true}), report.Error, "no part of the system"},
		"an unlisted file":      {opening(sandbox.Opened{Path: "/submission/other.json", Exists: true}), report.Error, "does not list"},
		"a sought file":         {opening(sandbox.Opened{Path: "/submission/other.json"}), "", ""},
		"a write":               {opening(sandbox.Opened{Path: "/submission/log.txt", Written: true}), report.Warning, "writes outside"},
		"a connection":          {connecting("93.184.216.34:443"), report.Error, "connects to 93.184.216.34:443"},
		"a name server":         {connecting("10.0.0.2:53"), report.Warning, "asks for the address of some name"},
		"an unresolved name":    {func(o *observed) { o.Log = "x: Temporary failure in name resolution" }, report.Error, "looks for another machine by name"},
		"no weights":            {func(o *observed) { o.trace.Opened = o.trace.Opened[1:] }, report.Error, "none of the submission's 2 weight files"},
		"half the weights":      {func(o *observed) { o.rehearsal.Unused = nil }, report.Error, "has not opened this weight file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := tracedObserved()
			test.change(o)
			v := o.judgeOpened()
			text := findings(report.GateResult{Findings: v.Findings})
			switch {
			case test.level == "" && len(v.Findings) > 0, test.level != "" && len(v.Findings) != 1:
				t.Errorf("findings:\n%s", text)
			case test.level != "" && (v.Findings[0].Level != test.level || !strings.Contains(text, test.say)):
				t.Errorf("want %s that says %q:\n%s", test.level, test.say, text)
			}
		})
	}
}

// A trace that had no room for all shows no more than what is in it.
func TestTraceTooLong(t *testing.T) {
	o := tracedObserved()
	o.trace.Dropped = 1
	o.trace.Opened = o.trace.Opened[1:]
	if v := o.judgeOpened(); v.Status != report.Undecided || len(v.Findings) > 0 || !strings.Contains(v.Notes[0], "than a trace holds") {
		t.Errorf("%s: %v %v", v.Status, v.Findings, v.Notes)
	}
	opening(sandbox.Opened{Path: "/data/model.safetensors", Exists: true})(o)
	if v := o.judgeOpened(); len(v.Findings) != 1 {
		t.Errorf("what is in it: %v", v.Findings)
	}
}

// Where there is nothing to open, nothing shows what answers.
func TestOpenedFilesWithoutWeights(t *testing.T) {
	o := tracedObserved()
	o.rehearsal.Files = []manifest.File{{Path: "serve.sh"}}
	o.trace.Opened = o.trace.Opened[1:]
	if v := o.judgeOpened(); v.Status != report.Undecided || len(v.Findings) > 0 || !strings.Contains(v.Notes[0], "no .safetensors file") {
		t.Errorf("%s: %v %v", v.Status, v.Findings, v.Notes)
	}
}

func opening(opened sandbox.Opened) func(*observed) {
	return func(o *observed) { o.trace.Opened = append(o.trace.Opened, opened) }
}

func connecting(address string) func(*observed) {
	return func(o *observed) {
		o.trace.Connections = append(o.trace.Connections, sandbox.Connection{Address: address})
	}
}

// A compiler that the grader's machine lacks fails the gate, others warn.
func TestCompilerStarted(t *testing.T) {
	for _, test := range []struct {
		program string
		image   *image.Image
		level   report.Level
	}{
		{"/usr/lib/gcc/cc1", nil, report.Warning},
		{"/usr/lib/gcc/cc1", &image.Image{Programs: map[string]bool{"gcc": true}}, report.Warning},
		{"/usr/lib/gcc/cc1", &image.Image{Programs: map[string]bool{"gcc": false}}, report.Error},
		{"/usr/bin/ninja", &image.Image{Programs: map[string]bool{"ninja": false}}, report.Error},
		{"/submission/bin/ptxas", &image.Image{Programs: map[string]bool{"ptxas": false}}, ""},
		{"/usr/bin/gcc", &image.Image{Programs: map[string]bool{"gcc": false}}, ""}, // asked for a library's name, as ctypes does
	} {
		o := &observed{rehearsal: &Rehearsal{}, trace: &sandbox.Trace{Programs: []sandbox.Program{{Path: test.program}, {Path: test.program}}}, at: "/submission"}
		o.rehearsal.Profile.Image = test.image
		var v verdict
		o.judgeCompilers(&v)
		if test.level == "" && len(v.Findings) > 0 || test.level != "" && (len(v.Findings) != 1 || v.Findings[0].Level != test.level) {
			t.Errorf("%s: %+v, want %q", test.program, v.Findings, test.level)
		}
	}
}

// PATH in a sandbox leaves out what is hidden and keeps what every machine has.
func TestPath(t *testing.T) {
	r := &Rehearsal{Path: "/root/bin:relative:/opt/cuda/bin:/usr/bin:", Hide: []string{"/root"}}
	if got := r.path(&sandboxPlace{}); got != "/opt/cuda/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin" {
		t.Error(got)
	}
	if got := r.path(&barePlace{}); got != r.Path {
		t.Error(got)
	}
}

// A probe's line is whole wherever the end of a log is shown: it can be read again.
func TestLastLinesKeepsProbes(t *testing.T) {
	described := &image.Image{Schema: 1, Distributions: map[string]string{}}
	for i := range 40 {
		described.Distributions[fmt.Sprintf("package-%d", i)] = "1.0"
	}
	line, err := described.Line(image.LineLimit)
	if err != nil {
		t.Fatal(err)
	}
	shown := lastLines(sanitised("starting\n" + strings.Repeat("x", 400) + "\n" + line + "\n"))
	if !strings.Contains(shown, line) || strings.Contains(shown, strings.Repeat("x", 200)) {
		t.Errorf("%s", shown)
	}
	if learned := image.Learn(shown); len(learned.Image.Distributions) != 40 {
		t.Errorf("learned %v", learned.Image)
	}
}
