package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/internal/generate/broken"
	"slipway/verify/boot/ask"
	"slipway/verify/report"
)

// TestOwnContinuations measures a drafter along a person's own continuations. It
// drafts eight ids, all of them the most frequent word; the fifth of 18 is another
// here, so that a walk takes steps of 5, 9 and 4: tau is 6.
func TestOwnContinuations(t *testing.T) {
	folder, submission := drafter(t)
	for _, test := range []struct {
		flags  []string
		code   int
		status report.Status
		says   string
	}{
		{[]string{"--profile", "without.hcl", "--tau", "5.9"}, 0, report.Pass, "tau 6.0000 (36 tokens in 6 steps), 6.0000 averaged over prompts, 0 empty drafts; the floor is 5.9000"},
		{[]string{"--profile", "without.hcl", "--tau", "6.1"}, 3, report.Fail, "the drafts are accepted less than the floor"},
		{[]string{"--profile", "floor.hcl"}, 0, report.Pass, "the floor is 5.8000"},
	} {
		result, code, stderr := rehearseFlags(t, folder, submission, here(t, append(test.flags, "--continuations", "own.jsonl")...))
		g, _ := result.Report.Gate("quality")
		if code != test.code || g.Status != test.status {
			t.Errorf("%v: exit code %d, gate quality ends as %s: %s", test.flags, code, g.Status, stderr)
		}
		says(t, g, test.says)
		if q := result.Report.Measured.Quality; q.Tau != 6 || q.Steps != 6 {
			t.Errorf("%v: measured %+v", test.flags, q)
		}
		if failed := result.Report.Failed(); code == 3 && (len(failed) != 1 || failed[0] != "quality") {
			t.Errorf("%v: failed %v", test.flags, failed)
		}
	}
}

// A task with a floor and no continuations takes no drafter for a good one, asks it
// what it can answer, and says what decides it.
func TestDrafterWithoutContinuations(t *testing.T) {
	folder, submission := drafter(t)
	result, code, stderr := rehearseFlags(t, folder, submission, here(t, "--profile", "floor.hcl"))
	for gate, want := range map[string]report.Status{"first-request": report.Pass, "batch": report.Pass, "deadline": report.Undecided, "quality": report.Undecided} {
		if g, _ := result.Report.Gate(gate); g.Status != want {
			t.Errorf("gate %s ends as %s:\n%s", gate, g.Status, findingsText(g))
		}
	}
	if verdict := result.Report.Failed(); code != 3 || len(verdict) > 0 || !strings.Contains(stderr, "slipway rehearse: gates undecided: quality\n") {
		t.Errorf("exit code %d, failed %v: %s", code, verdict, stderr)
	}
}

// Ids of another vocabulary than the submission's are found before it is started.
func TestContinuationsBeyondVocabulary(t *testing.T) {
	folder, submission := drafter(t)
	if err := os.WriteFile(filepath.Join(folder, "other.jsonl"), []byte(`{"id":"1","prompt":[1,2],"continuation":[3,70000]}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), Environment{
		Args:   []string{"rehearse", "--bare", "--profile", filepath.Join(folder, "floor.hcl"), "--continuations", filepath.Join(folder, "other.jsonl"), submission},
		Stdout: &stdout, Stderr: &stderr, TempDir: t.TempDir(), Path: "/usr/bin:/bin", Version: "test",
	})
	if code != 1 || !strings.Contains(stderr.String(), "other.jsonl: line 1: id 70000 is beyond vocab_size ") || strings.Contains(stdout.String(), "serve.sh") {
		t.Errorf("exit code %d, %s%s", code, &stdout, &stderr)
	}
}

// A drafter's own drafts are those of a later start of it, and others are not.
func TestGoldenDrafts(t *testing.T) {
	folder, submission := drafter(t)
	var stdout, stderr bytes.Buffer
	golden := filepath.Join(folder, "golden.jsonl")
	code := Run(t.Context(), Environment{
		Args:   []string{"weights", "golden", submission, "--continuations", filepath.Join(folder, "own.jsonl"), "--max-tokens", "8", "--out", golden},
		Stdout: &stdout, Stderr: &stderr, TempDir: t.TempDir(), Path: "/usr/bin:/bin", Version: "test",
	})
	if code != 0 || stdout.String() != "wrote 2 reference drafts to "+golden+"\n" {
		t.Fatalf("exit code %d, %s%s", code, &stdout, &stderr)
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	drafts, err := ask.ReadDraftReferences(data)
	if err != nil || len(drafts) != 2 || len(drafts[0].Draft) != 8 {
		t.Fatalf("%s: %v", data, err)
	}
	drafts[1].Draft[7] = drafts[0].Draft[7]
	lines := ""
	for _, d := range drafts {
		line, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		lines += string(line) + "\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "other.jsonl"), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct {
		code   int
		status report.Status
		same   int
		says   string
	}{
		"golden.jsonl": {0, report.Pass, 2, "2 of 2 golden drafts are given too, compared id by id"},
		"other.jsonl":  {3, report.Fail, 1, "the drafts are not those of the golden file"},
	} {
		result, code, stderr := rehearseFlags(t, folder, submission, here(t, "--profile", "floor.hcl", "--continuations", "own.jsonl", "--golden", file))
		g, _ := result.Report.Gate("quality")
		if code != want.code || g.Status != want.status || result.Report.Measured.Quality.Golden.Same != want.same {
			t.Errorf("%s: exit code %d, gate quality ends as %s: %s", file, code, g.Status, stderr)
		}
		says(t, g, want.says)
		if last := result.Report.Trust[len(result.Report.Trust)-1]; last.Input != "golden drafts "+filepath.Join(folder, file) {
			t.Errorf("%s: trusted last: %s", file, last.Input)
		}
	}
	// What is of another task is not compared.
	result := filepath.Join(folder, "answers.jsonl")
	if err := os.WriteFile(result, []byte(`{"id":"1","prompt":[1],"answer":"x","tokens":[2],"logprobs":[],"top":[],"finish_reason":"stop"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	code = Run(t.Context(), Environment{Args: []string{"rehearse", "--profile", filepath.Join(folder, "floor.hcl"), "--golden", result, submission}, Stdout: &stdout, Stderr: &stderr, TempDir: t.TempDir(), Version: "test"})
	if code != 1 || !strings.Contains(stderr.String(), "answers.jsonl as golden drafts: line 1") || !strings.Contains(stderr.String(), "slipway weights golden --continuations FILE writes them") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

// drafter writes a sound drafter, with profiles that have no examples, one of them
// a floor, and continuations of its own.
func drafter(t *testing.T) (folder, submission string) {
	t.Helper()
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("REQUIRE_SANDBOX") == "1" {
			t.Fatal("the server is of Python: ", err)
		}
		t.Skip("the server is of Python: ", err)
	}
	set, err := broken.Load(os.DirFS(filepath.Join("..", "..", "examples", "broken")))
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	written, err := set.Write(folder, set.Clean("majority-draft.hcl"), false)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.ReadFile(written.Profile)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(profile), "quality {")
	text = strings.Replace(text, "  gates = [", "  may_undecided = [\"install\", \"startup\", \"deadline\", \"opened-files\", \"quality\"]\n  gates = [", 1)
	text = strings.NewReplacer("= 120", "= 3600", "start_seconds   = 8", "start_seconds   = 60", "request_seconds = 5", "request_seconds = 60").Replace(text) // times are this machine's
	for name, data := range map[string][]byte{"without.hcl": []byte(text), "floor.hcl": []byte(text + "quality {\n  tau = 5.8\n}\n"), "own.jsonl": ownContinuations(t, folder)} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder, written.Folder
}

// here are flags with --bare where there is no sandbox.
func here(t *testing.T, flags ...string) []string {
	if canSandbox(t) {
		return flags
	}
	return append(flags, "--bare")
}

// ownContinuations are the first two of the profile's with another fifth id.
func ownContinuations(t *testing.T, folder string) (lines []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "majority.continuations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ask.ReadContinuations(data, 0)
	if err != nil || len(all) < 2 {
		t.Fatal(len(all), err)
	}
	for i, c := range all[:2] {
		c.Continuation[4] = all[1-i].Continuation[17]
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines
}
