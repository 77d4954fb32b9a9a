package cli

import (
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
	if _, err := os.Stat(python); err != nil {
		t.Skip("the server is of Python: ", err)
	}
	set, err := broken.Load(os.DirFS(filepath.Join("..", "..", "examples", "broken")))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	written, err := set.Write(folder, set.Clean("majority-draft.hcl"), false)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.ReadFile(written.Profile)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(profile), "quality {")
	text = strings.Replace(text, "  gates = [", "  may_undecided = [\"install\", \"startup\", \"deadline\", \"opened-files\"]\n  gates = [", 1)
	text = strings.NewReplacer("= 120", "= 3600", "start_seconds   = 8", "start_seconds   = 60", "request_seconds = 5", "request_seconds = 60").Replace(text) // times are this machine's
	for name, data := range map[string][]byte{"without.hcl": []byte(text), "own.jsonl": ownContinuations(t, folder)} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for tau, want := range map[string]struct {
		code   int
		status report.Status
		says   string
	}{
		"5.9": {0, report.Pass, "tau 6.0000 (36 tokens in 6 steps), 6.0000 averaged over prompts, 0 empty drafts; the floor is 5.9000"},
		"6.1": {3, report.Fail, "the drafts are accepted less than the floor"},
	} {
		args := []string{"--profile", "without.hcl", "--continuations", "own.jsonl", "--tau", tau}
		if !canSandbox(t) {
			args = append(args, "--bare")
		}
		result, code, stderr := rehearseFlags(t, folder, written.Folder, args)
		g, _ := result.Report.Gate("quality")
		if code != want.code || g.Status != want.status {
			t.Errorf("--tau %s: exit code %d, gate quality ends as %s: %s", tau, code, g.Status, stderr)
		}
		says(t, g, want.says)
		if q := result.Report.Measured.Quality; q.Tau != 6 || q.Steps != 6 {
			t.Errorf("--tau %s: measured %+v", tau, q)
		}
		if failed := result.Report.Failed(); code == 3 && (len(failed) != 1 || failed[0] != "quality") {
			t.Errorf("--tau %s: failed %v", tau, failed)
		}
	}
}

// ownContinuations are the first two of the profile's with another fifth id.
func ownContinuations(t *testing.T, folder string) (lines []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "majority.continuations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ask.ReadContinuations(data)
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
