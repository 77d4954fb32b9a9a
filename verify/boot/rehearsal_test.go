//go:build unix

package boot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/verify"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
	"slipway/verify/boot/sandbox"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// testQuestions are n of which a server that repeats the last word is right,
// with four options each.
func testQuestions(n int) []byte {
	var lines strings.Builder
	for i := range n {
		letter := "BCD"[i%3]
		fmt.Fprintf(&lines, `{"id":"%d","question":"%sWhich is number %d?\nA. w\nB. x\nC. y\nD. z\nSay %c","answer":"%c"}`+"\n", i, strings.Repeat("So ", i), i, letter, letter)
	}
	return []byte(lines.String())
}

// testContinuations are counted up in runs of five: the server's drafts are right
// for four ids, and the target adds the fifth.
func testContinuations(n int) []byte {
	var lines strings.Builder
	for i := range n {
		prompt := strings.Repeat("9,", i) + "0"
		fmt.Fprintf(&lines, `{"id":"%d","prompt":[%s],"continuation":[1,2,3,4,50,51,52,53,54,90]}`+"\n", i, prompt)
	}
	return []byte(lines.String())
}

func chatProfile() profiles.Profile {
	return profiles.Profile{
		Load: profiles.Load{Endpoint: ask.ChatPath, Concurrency: 8, MaxTokens: 64, StartSeconds: 20, RequestSeconds: 20, TotalSeconds: 60,
			Port: 8000, Attempts: 1, GradedRequests: 100},
		Quality: &profiles.Quality{Questions: testQuestions(40), Accuracy: 0.5},
	}
}

func draftProfile() profiles.Profile {
	p := chatProfile()
	p.Load.Endpoint, p.Load.MaxTokens, p.Load.GradedRequests, p.Load.GradedTokens = ask.DraftPath, 4, 0, 1000
	p.Quality = &profiles.Quality{Continuations: testContinuations(12), Tau: 3}
	return p
}

// testWeights are of one tensor of eight bytes.
const testWeights = "\x38\x00\x00\x00\x00\x00\x00\x00" + `{"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}   ` + "\x01\x02\x03\x04\x05\x06\x07\x08"

// testSubmission is a folder with a server of one fault.
type testSubmission struct {
	fault   string
	script  string // serve.sh; "": starts the server
	mode    os.FileMode
	profile func(*profiles.Profile)
	drafts  bool
	change  func(*Rehearsal)
}

func (s testSubmission) rehearsal(t *testing.T, bare bool) *Rehearsal {
	t.Helper()
	folder := t.TempDir()
	work := t.TempDir()
	r := &Rehearsal{Folder: folder, Work: work, Profile: chatProfile(), Bare: bare, Path: "/usr/local/bin:/usr/bin:/bin"}
	if s.drafts {
		r.Profile = draftProfile()
	}
	if bare {
		r.Profile.Load.Port = testPort(t)
	}
	script := s.script
	if script == "" {
		script = "SERVER"
	}
	script = strings.ReplaceAll(script, "SERVER", `BOOT_TEST_SERVER="plain`+s.fault+`" exec "$SUBMISSION_DIR/server" --port `+fmt.Sprint(r.Profile.Load.Port))
	mode := s.mode
	if mode == 0 {
		mode = 0o755
	}
	files := map[string]string{"weights/model.safetensors": testWeights, serveScript: "#!/bin/sh\n" + script + "\n"}
	if s.fault == "one shard" {
		files["weights/other.safetensors"] = testWeights
	}
	for name, text := range files {
		target := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(folder, 0o755), os.Chmod(filepath.Join(folder, serveScript), mode)); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, filepath.Join(folder, "server"))
	for _, name := range append(slices.Sorted(maps.Keys(files)), "server") {
		r.Files = append(r.Files, manifest.File{Path: name})
	}
	if s.profile != nil {
		s.profile(&r.Profile)
	}
	if s.change != nil {
		s.change(r)
	}
	return r
}

func testPort(t *testing.T) int {
	t.Helper()
	port, err := local.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// inBoth runs a test in a sandbox, where this system lets us have one, and
// without.
func inBoth(t *testing.T, test func(t *testing.T, bare bool)) {
	t.Run("bare", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the same tests run in a sandbox")
		}
		test(t, true)
	})
	t.Run("sandbox", func(t *testing.T) {
		opened, err := sandbox.Open(t.Context(), sandbox.Options{Submission: t.TempDir()})
		if errors.Is(err, sandbox.ErrUnsupported) {
			if os.Getenv("REQUIRE_SANDBOX") == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		test(t, false)
	})
}

func run(t *testing.T, r *Rehearsal) (*report.Measured, map[string]report.GateResult) {
	t.Helper()
	measured, results, err := r.Run(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest.Hint(err))
	}
	gates := map[string]report.GateResult{}
	for _, result := range results {
		if _, known := verify.Lookup(result.ID); !known || !verify.Dynamic(result.ID) {
			t.Errorf("there is no dynamic gate %q", result.ID)
		}
		if result.Status == report.Undecided && len(result.Notes) == 0 {
			t.Errorf("%s is undecided and does not say why", result.ID)
		}
		gates[result.ID] = result
	}
	if len(gates) != 8 {
		t.Errorf("%d gates", len(gates))
	}
	return measured, gates
}

func failing(gates map[string]report.GateResult) (ids []string) {
	for id, g := range gates {
		if g.Status == report.Fail {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func findings(g report.GateResult) string {
	var text strings.Builder
	for _, f := range g.Findings {
		fmt.Fprintf(&text, "%s: %s %s (want %s, got %s): %s\n", f.Level, f.Path, f.Problem, f.Want, f.Got, f.Hint)
	}
	return text.String() + strings.Join(g.Notes, "\n")
}

// waitingTexts are what is told of waits.
type waitingTexts struct {
	mu sync.Mutex
	strings.Builder
}

func (w *waitingTexts) add(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w, format+"\n", args...)
}

// The clean twin of every fault.
func TestCleanSubmission(t *testing.T) {
	for _, drafts := range []bool{false, true} {
		t.Run(fmt.Sprintf("drafts=%v", drafts), func(t *testing.T) {
			inBoth(t, func(t *testing.T, bare bool) {
				r := testSubmission{drafts: drafts}.rehearsal(t, bare)
				var told waitingTexts
				r.Waiting = told.add
				measured, gates := run(t, r)
				for _, want := range []string{"start (first): waiting for /health: ", "s of 20 s; the last probe: ", map[bool]string{true: "drafts asked for along 12", false: "of 40 questions asked, 8 at a time: "}[drafts]} {
					if !strings.Contains(told.String(), want) {
						t.Errorf("nobody is told %q: %s", want, &told)
					}
				}
				for id, g := range gates {
					want := report.Pass
					switch {
					case bare && (id == "startup" || id == "opened-files"):
						want = report.Undecided
					case id == "install":
						want = report.NotApplicable
					}
					if g.Status != want {
						t.Errorf("%s: %s\n%s", id, g.Status, findings(g))
					}
					if len(g.Findings) > 0 {
						t.Errorf("%s: findings\n%s", id, findings(g))
					}
				}
				if len(measured.Starts) != 4 || measured.Starts[3].What != withZeroWeights || measured.Starts[0].Healthy == 0 || measured.Starts[0].Stopped == 0 || len(measured.First) != firstRequests {
					t.Errorf("measured %+v", measured)
				}
				if measured.Projection == nil || measured.Projection.Limit != 60 || measured.Quality == nil || measured.Batch.Failed != 0 || measured.Batch.Concurrency != 8 {
					t.Errorf("measured %+v", measured)
				}
				if (measured.Trace == nil) != bare || len(measured.Conditions) == 0 || !strings.Contains(measured.Log, "listening on") {
					t.Errorf("measured %+v", measured)
				}
				if q := measured.Quality; drafts && (q.Tau != 5 || q.Steps != 24) || !drafts && (q.Right != 40 || q.Parsed != 40 || q.Chance != 0.25) {
					t.Errorf("quality %+v", q)
				}
			})
		})
	}
}

// Each fault fails its gate, and no other.
func TestFaults(t *testing.T) {
	short := func(p *profiles.Profile) { p.Load.StartSeconds = 1.5 }
	for name, test := range map[string]struct {
		testSubmission
		gate    string
		say     []string // in its findings and notes
		sandbox bool     // can be seen there alone
	}{
		"unknown argument": {testSubmission{script: "echo 'usage: dequant.py [-h]'; echo 'dequant.py: error: unrecognized arguments: --skip-mv' >&2; exit 2"},
			"startup", []string{"does not know an argument that serve.sh gives it: --skip-mv", "exit status 2", "of different versions", "usage: dequant.py"}, false},
		"noexec": {testSubmission{script: "echo 'OSError: /dev/shm/pylibs/torch/lib/libtorch_global_deps.so: failed to map segment from shared object'; exit 1"},
			"startup", []string{"mount without exec", "never /dev/shm"}, false},
		"accelerate": {testSubmission{script: "echo 'ValueError: Using a `device_map`, `tp_plan` requires `accelerate`. You can install it'; exit 1"},
			"startup", []string{"accelerate is missing", "vendor the wheel"}, false},
		"module":         {testSubmission{script: `echo "ModuleNotFoundError: No module named 'uvicorn'"; exit 1`}, "startup", []string{"the module uvicorn is missing"}, false},
		"program":        {testSubmission{script: "exec absent-program --port 8000"}, "startup", []string{"the program absent-program is missing", "exit status 127"}, false},
		"no name":        {testSubmission{fault: "names, and ends"}, "startup", []string{"it asks the network, and there is none"}, true},
		"silent":         {testSubmission{script: "exit 0"}, "startup", []string{"ended before it was healthy: exit status 0", "it printed nothing"}, false},
		"never":          {testSubmission{fault: "never", profile: short}, "startup", []string{"did not answer 200 within 1.5s"}, false},
		"no port":        {testSubmission{script: "echo loading; exec sleep 1000", profile: short}, "startup", []string{"connection refused", "loading"}, false},
		"loopback":       {testSubmission{fault: "loopback"}, "startup", []string{"listens on 127.0.0.1 only", "bind it to 0.0.0.0"}, true},
		"state":          {testSubmission{fault: "state"}, "startup", []string{"started again, at once", "another server runs"}, true},
		"forgets":        {testSubmission{fault: "forgets"}, "startup", []string{"started again, at once", "answers otherwise when it is started again"}, true},
		"forgets drafts": {testSubmission{fault: "forgets", drafts: true}, "startup", []string{"answers otherwise when it is started again"}, true},
		"500":            {testSubmission{fault: "500"}, "first-request", []string{"500 Internal Server Error"}, false},
		"500, three times": {testSubmission{fault: "500", profile: func(p *profiles.Profile) { p.Load.Attempts = 3 }},
			"first-request", []string{"3 tries failed", "500 Internal Server Error"}, false},
		"dies": {testSubmission{fault: "dies"}, "first-request", []string{"the server ended: exit status 3", "EngineCore"}, false},
		"traceback": {testSubmission{fault: "traceback"}, "first-request",
			[]string{"the last exception in its log: TypeError: unhashable type: 'list'", "send it to a server that you started: curl -sS -i http://127.0.0.1:", `{"content":"Which is number 0?`}, false},
		"no path":      {testSubmission{fault: "no path"}, "first-request", []string{"404 Not Found", "answer POST /v1/chat/completions"}, false},
		"thinks aside": {testSubmission{fault: "thinks aside"}, "first-request", []string{"what the model said is in a field for thoughts", "turn thinking off"}, false},
		"null":         {testSubmission{fault: "null"}, "first-request", []string{"content is absent or null"}, false},
		"no JSON":      {testSubmission{fault: "no JSON"}, "first-request", []string{"malformed reply: it is no JSON from byte 0 on"}, false},
		"tokens":       {testSubmission{fault: "fewer than none"}, "first-request", []string{"usage.completion_tokens is -5"}, false},
		"endless":      {testSubmission{fault: "endless"}, "first-request", []string{"longer than 4194304 bytes"}, false},
		"elsewhere":    {testSubmission{fault: "asks elsewhere"}, "first-request", []string{"307 Temporary Redirect"}, false},
		"silent mind":  {testSubmission{fault: "thinks silently"}, "first-request", []string{"content is empty and finish_reason is length"}, false},
		"short draft":  {testSubmission{fault: "short", drafts: true}, "first-request", []string{"the draft has 3 ids, not 4"}, false},
		"500 later":    {testSubmission{fault: "500 later"}, "batch", []string{"40 of 40 requests failed at 8 at a time", "500 Internal Server Error"}, false},
		"drafts later": {testSubmission{fault: "500 later", drafts: true}, "batch", []string{"requests failed at 8 at a time"}, false},
		"dies later":   {testSubmission{fault: "dies later"}, "batch", []string{"the server ended: exit status 3", "EngineCore"}, false},
		"slow": {testSubmission{profile: func(p *profiles.Profile) { p.Load.GradedRequests = 1 << 28 }},
			"deadline", []string{"takes longer than it may", "268435456/40 requests"}, false},
		"ignores SIGTERM": {testSubmission{fault: "ignores", change: func(r *Rehearsal) { r.patience = 100 * time.Millisecond }},
			"still-healthy", []string{"s after SIGTERM something still runs", "exec as the last command"}, false},
		"a child stays": {testSubmission{fault: "child", change: func(r *Rehearsal) { r.patience = 100 * time.Millisecond }},
			"still-healthy", []string{"after SIGTERM something still runs", "process"}, false},
		"a daemon stays": {testSubmission{fault: "daemon", change: func(r *Rehearsal) { r.patience = 100 * time.Millisecond }},
			"still-healthy", []string{"after SIGTERM something still runs", "process"}, false},
		"not forwarded": {testSubmission{script: "(SERVER)\ntrue", change: func(r *Rehearsal) { r.patience = 100 * time.Millisecond }},
			"still-healthy", []string{"after SIGTERM something still runs", "port"}, false},
		"sick":              {testSubmission{fault: "sick"}, "still-healthy", []string{"GET /health after the load: HTTP 503"}, false},
		"no weights":        {testSubmission{fault: "no weights"}, "opened-files", []string{"none of the submission's 1 weight file"}, true},
		"one shard":         {testSubmission{fault: "one shard"}, "opened-files", []string{"weights/model.safetensors the server has not opened"}, true},
		"network":           {testSubmission{fault: "network"}, "opened-files", []string{"connects to 198.51.100.7:443"}, true},
		"names":             {testSubmission{fault: "names"}, "opened-files", []string{"looks for another machine by name"}, true},
		"a table":           {testSubmission{fault: "table"}, "opened-files", []string{"the answers stay right when all weights are zero", "16 of 16 right answers stay", "a table, or another model"}, false},
		"a table of drafts": {testSubmission{fault: "table", drafts: true}, "opened-files", []string{"the drafts stay as good", "48 of 48 accepted ids stay"}, false},
		"guesses":           {testSubmission{fault: "guesses"}, "quality", []string{"worse than the floor, and by more than luck", "0 right of 40, accuracy 0.0000, 95% interval 0.0000 to 0.0876", "at chance"}, false},
		"guesses, no floor": {testSubmission{fault: "guesses", profile: func(p *profiles.Profile) { p.Quality.Accuracy = 0 }},
			"quality", []string{"cannot be told from guessing"}, false},
		"random":        {testSubmission{fault: "random"}, "quality", []string{"0% parse", "forgotten tied head"}, false},
		"thinks":        {testSubmission{fault: "thinks"}, "quality", []string{"100% are cut off", "thought that eats the budget"}, false},
		"pads":          {testSubmission{fault: "pads"}, "quality", []string{"answered well alone", "padding on the left"}, false},
		"random drafts": {testSubmission{fault: "random", drafts: true}, "quality", []string{"tau 1.0000", "near-random"}, false},
		"pads drafts":   {testSubmission{fault: "pads", drafts: true}, "quality", []string{"answered well alone", "padding on the left"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, bare bool) {
				if bare && test.sandbox {
					t.Skip("needs a sandbox")
				}
				_, gates := run(t, test.rehearsal(t, bare))
				if got := failing(gates); !slices.Equal(got, []string{test.gate}) {
					t.Errorf("failed: %v, want %v", got, test.gate)
				}
				text := findings(gates[test.gate])
				for _, say := range test.say {
					if !strings.Contains(text, say) {
						t.Errorf("does not say %q:\n%s", say, text)
					}
				}
			})
		})
	}
}

// Warnings that fail nothing.
func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		testSubmission
		gate, say string
		sandbox   bool
	}{
		"retried": {testSubmission{fault: "second try", profile: func(p *profiles.Profile) { p.Load.Attempts = 2 }}, "batch", "had to be sent more than once", false},
		"babbles": {testSubmission{fault: "babbles"}, "batch", "40 of 40 answers have more tokens than max_tokens allows", false},
		"hard-coded folder": {testSubmission{script: `[ "$SUBMISSION_DIR" = /submission ] || { echo "/submission/x: No such file or directory"; exit 1; }` + "\nSERVER"},
			"startup", "started again, from another folder", true},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, bare bool) {
				if bare && test.sandbox {
					t.Skip("needs a sandbox")
				}
				_, gates := run(t, test.rehearsal(t, bare))
				if got := failing(gates); len(got) > 0 {
					t.Errorf("failed: %v", got)
				}
				if text := findings(gates[test.gate]); !strings.Contains(text, "warning: "+serveScript) || !strings.Contains(text, test.say) {
					t.Errorf("does not say %q:\n%s", test.say, text)
				}
			})
		})
	}
}

// A server that loses one of its processes answers again or ends; one that goes
// on and does not answer is warned of.
func TestLostProcess(t *testing.T) {
	inBoth(t, func(t *testing.T, bare bool) {
		if bare {
			t.Skip("nothing is killed there")
		}
		for fault, want := range map[string]string{
			"": "gone ", "a worker": "it answered again after", "a worker it ends with": "later: exit status 4", "a worker it needs": "it neither answers again nor ends",
		} {
			r := testSubmission{fault: fault}.rehearsal(t, bare)
			if fault == "a worker it needs" {
				r.Profile.Load.StartSeconds = 6 // which it waits out
			}
			_, gates := run(t, r)
			g := gates["still-healthy"]
			if text := findings(g); g.Status != report.Pass || !strings.Contains(text, want) || strings.Contains(text, "warning: ") != (fault == "a worker it needs") || strings.Contains(text, "was killed") != (fault != "") {
				t.Errorf("%s: %s, want %q:\n%s", fault, g.Status, want, text)
			}
		}
	})
}

// What nobody can know stays undecided.
func TestUndecided(t *testing.T) {
	for name, test := range map[string]struct {
		testSubmission
		gate, say string
	}{
		"no graded load": {testSubmission{profile: func(p *profiles.Profile) { p.Load.GradedRequests = 0 }}, "deadline", "does not say how large the graded load is"},
		"slower machine": {testSubmission{profile: func(p *profiles.Profile) {
			p.Load.GradedRequests, p.Device = 1<<28, &profiles.Device{Name: "H100", BytesPerSecond: 3.35e12}
		}}, "deadline", "without the accelerator that the profile has"},
		"no examples": {testSubmission{profile: func(p *profiles.Profile) { p.Quality = nil }}, "quality", "no public examples"},
		"no GPU": {testSubmission{script: "echo 'RuntimeError: Found no NVIDIA driver on your system.'; exit 1"},
			"startup", "the server needs a GPU"},
		"shrunk": {testSubmission{change: func(r *Rehearsal) { r.Shrunk = "a tiny twin was started" }}, "quality", "a tiny twin was started"},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, bare bool) {
				_, gates := run(t, test.rehearsal(t, bare))
				if got := failing(gates); len(got) > 0 {
					t.Errorf("failed: %v\n%s", got, findings(gates[got[0]]))
				}
				if g := gates[test.gate]; g.Status != report.Undecided || !strings.Contains(g.Notes[0], test.say) {
					t.Errorf("%s: %s\n%s", test.gate, g.Status, findings(g))
				}
			})
		})
	}
}

// A start under less than the grader's conditions decides nothing if it goes well.
func TestConditionsNotHeld(t *testing.T) {
	measured, gates := run(t, testSubmission{change: func(r *Rehearsal) { r.Memory, r.CPUs, r.NoExec = 1<<30, 1, true }}.rehearsal(t, true))
	startup := gates["startup"]
	if startup.Status != report.Undecided || !strings.Contains(startup.Notes[0], "; not held here: own network, loopback only, read-only submission, small /dev/shm, small /tmp, another user, CPU limit, memory limit, noexec submission") {
		t.Errorf("%s: %q", startup.Status, startup.Notes)
	}
	if i := slices.IndexFunc(measured.Conditions, func(c report.Condition) bool { return c.Name == sandbox.CleanEnvironment }); i < 0 || !measured.Conditions[i].Held {
		t.Errorf("conditions %+v", measured.Conditions)
	}
	held := &report.Measured{Conditions: []report.Condition{{Name: sandbox.OwnNetwork, Held: true}, {Name: sandbox.AnotherUser, Held: true, Detail: "a number only"}, {Name: sandbox.Traced}}}
	if missing := (&observed{Measured: held}).missing(); missing != nil {
		t.Errorf("missing: %v", missing)
	}
	held.Conditions = append(held.Conditions, report.Condition{Name: sandbox.MemoryLimit})
	if missing := (&observed{Measured: held}).missing(); !slices.Equal(missing, []string{sandbox.MemoryLimit}) {
		t.Errorf("missing: %v", missing)
	}
}

// A start that zero weights keep from coming is no finding, and is told.
func TestZeroWeightsDoNotStart(t *testing.T) {
	inBoth(t, func(t *testing.T, bare bool) {
		r := testSubmission{fault: "wants weights"}.rehearsal(t, bare)
		measured, gates := run(t, r)
		if got := failing(gates); len(got) > 0 || len(measured.Starts) != 4 || measured.Starts[3].Healthy != 0 {
			t.Errorf("failed: %v; starts %+v", got, measured.Starts)
		}
		if text := findings(gates["opened-files"]); !strings.Contains(text, "started with zero weights: it did not start") {
			t.Errorf("is not told: %s", text)
		}
		if left, _ := filepath.Glob(filepath.Join(r.Work, "zero*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// Of a tiny twin only the form of what it answers counts.
func TestShrunk(t *testing.T) {
	inBoth(t, func(t *testing.T, bare bool) {
		for _, fault := range []string{"thinks silently", "random", "pads"} {
			_, gates := run(t, testSubmission{fault: fault, change: func(r *Rehearsal) { r.Shrunk = "a tiny twin" }}.rehearsal(t, bare))
			if got := failing(gates); len(got) > 0 {
				t.Errorf("%s: failed: %v\n%s", fault, got, findings(gates[got[0]]))
			}
		}
		_, gates := run(t, testSubmission{fault: "null", change: func(r *Rehearsal) { r.Shrunk = "a tiny twin" }}.rehearsal(t, bare))
		if got := failing(gates); !slices.Equal(got, []string{"first-request"}) {
			t.Errorf("no content at all: failed: %v", got)
		}
	})
}

func TestGolden(t *testing.T) {
	own := ask.Reference{ID: "own", Question: "Say hello", Answer: "hello", Tokens: []int32{5, 7}}
	without := func(p *profiles.Profile) { p.Quality = nil }
	for name, test := range map[string]struct {
		golden  []ask.Reference
		profile func(*profiles.Profile)
		status  report.Status
		same    int
		say     string
	}{
		"by id":                {[]ask.Reference{{ID: "0", Answer: "B"}, {ID: "1", Answer: "C\n"}, {ID: "absent", Answer: "x"}}, nil, report.Pass, 2, "2 of 2 golden answers are given too, 0 of them compared by"},
		"another":              {[]ask.Reference{{ID: "0", Answer: "D"}, {ID: "1", Answer: "C\n"}}, nil, report.Fail, 1, `question 0: "B", and "D"`},
		"without a profile's":  {[]ask.Reference{own}, without, report.Undecided, 1, "1 of 1 golden answers are given too, 1 of them compared by"},
		"other ids":            {[]ask.Reference{{ID: "own", Question: "Say hello", Answer: "hello", Tokens: []int32{5, 8, 9}}}, without, report.Fail, 0, `"[5 7]", and "[5 8 9]"`},
		"other answer without": {[]ask.Reference{{ID: "own", Question: "Say hello", Answer: "bye"}}, without, report.Fail, 0, `"hello", and "bye"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := testSubmission{profile: test.profile}.rehearsal(t, true)
			r.Golden = test.golden
			measured, gates := run(t, r)
			if g := measured.Quality.Golden; g == nil || g.Same != test.same || gates["quality"].Status != test.status || !strings.Contains(findings(gates["quality"]), test.say) {
				t.Errorf("golden %+v, gate %+v", g, gates["quality"])
			}
		})
	}
	r := testSubmission{}.rehearsal(t, true)
	r.Golden = []ask.Reference{{ID: "absent", Answer: "x"}}
	if _, _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "none of the 1 has its question") {
		t.Errorf("nothing to compare: %v", err)
	}
	r = testSubmission{drafts: true}.rehearsal(t, true)
	r.Golden = []ask.Reference{own}
	if _, _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "answers are of a chat endpoint and drafts of /draft, and the profile asks /draft") {
		t.Errorf("drafts: %v", err)
	}
}

// A port that somebody has is this machine's fault, not the submission's.
func TestBarePortTaken(t *testing.T) {
	r := testSubmission{}.rehearsal(t, true)
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", r.Profile.Load.Port))
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close()
	if _, _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is taken on this machine") {
		t.Errorf("error %v", err)
	}
}

// writerFunc is a function that is written to.
type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// However far a rehearsal is when it is interrupted, it ends, says so, and the
// server is gone.
func TestInterrupted(t *testing.T) {
	for _, when := range []string{"listening on", "answering"} {
		t.Run(when, func(t *testing.T) {
			inBoth(t, func(t *testing.T, bare bool) {
				r := testSubmission{fault: "tells"}.rehearsal(t, bare)
				interrupted := errors.New("interrupted")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				r.Log = writerFunc(func(p []byte) (int, error) {
					if strings.Contains(string(p), when) {
						cancel(interrupted)
					}
					return len(p), nil
				})
				if measured, results, err := r.Run(ctx); !errors.Is(err, interrupted) || measured != nil || results != nil {
					t.Errorf("%v, %v, error %v", measured, results, err)
				}
				if bare {
					listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", r.Profile.Load.Port))
					if err != nil {
						t.Fatalf("the server lives: %v", err)
					}
					_ = listener.Close()
				}
			})
		})
	}
}
