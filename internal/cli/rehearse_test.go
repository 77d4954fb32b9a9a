package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/internal/generate/broken"
	"slipway/verify/report"
)

// TestRehearseFlags rehearses a sound submission in the ways that the flags ask
// for.
func TestRehearseFlags(t *testing.T) {
	if _, err := os.Stat(python); err != nil {
		t.Skip("the server is of Python: ", err)
	}
	set, err := broken.Load(os.DirFS(filepath.Join("..", "..", "examples", "broken")))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	written, err := set.Write(folder, set.Clean("majority.hcl"), false)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.ReadFile(written.Profile)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(profile), "  gates = [", "  may_undecided = [\"install\", \"startup\", \"deadline\", \"opened-files\", \"quality\"]\n  gates = [", 1)
	text = strings.NewReplacer("= 120", "= 3600", "start_seconds   = 8", "start_seconds   = 60", "request_seconds = 5", "request_seconds = 60").Replace(text) // times are this machine's
	without := text[:strings.Index(text, "quality {")]
	own := `{"id":"1","question":"Most frequent: red blue red","answer":"red"}` + "\n" + `{"id":"2","question":"Most frequent: blue red blue","answer":"blue"}` + "\n"
	golden := strings.NewReplacer(`"question":`, `"prompt":[],"tokens":[],"logprobs":[],"top":[],"finish_reason":"stop","question":`).Replace(own)
	for name, data := range map[string]string{
		"lenient.hcl": text, "without.hcl": without, "floorless.hcl": strings.NewReplacer("accuracy ", "# accuracy ", "chance ", "# chance ").Replace(text), "own.jsonl": own, "golden.jsonl": golden,
		"other.jsonl": strings.ReplaceAll(golden, `"answer":"red"`, `"answer":"pink"`),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sandboxed := canSandbox(t)
	for name, test := range map[string]struct {
		args  []string
		bare  bool
		code  int
		gates map[string]report.Status
		level string // that would take what is undecided as it is
	}{
		"shrink":              {[]string{"--shrink", "--profile", "lenient.hcl"}, false, 3, map[string]report.Status{"batch": report.Pass, "deadline": report.Undecided, "quality": report.Undecided}, "static"},
		"shrink, static":      {[]string{"--shrink", "--require", "static", "--profile", "lenient.hcl"}, false, 0, map[string]report.Status{"quality": report.Undecided}, ""},
		"bare":                {[]string{"--bare", "--profile", "lenient.hcl"}, true, 0, map[string]report.Status{"startup": report.Undecided, "quality": report.Pass}, ""},
		"bare boot":           {[]string{"--bare", "--require", "boot", "--profile", "lenient.hcl"}, true, 3, map[string]report.Status{"startup": report.Undecided}, "quality"},
		"questions":           {[]string{"--profile", "without.hcl", "--questions", "own.jsonl", "--floor", "0.9"}, false, 0, map[string]report.Status{"quality": report.Pass}, ""},
		"no examples":         {[]string{"--profile", "without.hcl"}, false, 3, map[string]report.Status{"quality": report.Undecided}, "static"},
		"no floor":            {[]string{"--bare", "--profile", "floorless.hcl"}, true, 3, map[string]report.Status{"quality": report.Undecided}, "static"},
		"a floor given":       {[]string{"--bare", "--profile", "floorless.hcl", "--floor", "0.9"}, true, 0, map[string]report.Status{"quality": report.Pass}, ""},
		"no examples, static": {[]string{"--require", "static", "--profile", "without.hcl"}, false, 0, map[string]report.Status{"quality": report.Undecided}, ""},
		"golden":              {[]string{"--profile", "without.hcl", "--golden", "golden.jsonl"}, false, 3, map[string]report.Status{"quality": report.Undecided}, "static"},
		"other":               {[]string{"--profile", "without.hcl", "--golden", "other.jsonl"}, false, 3, map[string]report.Status{"quality": report.Fail}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if !sandboxed && !test.bare {
				t.Skip("needs a sandbox")
			}
			result, code, stderr := rehearseFlags(t, folder, written.Folder, test.args)
			if code != test.code {
				t.Errorf("exit code %d, not %d: %s", code, test.code, stderr)
			}
			_, level, _ := strings.Cut(stderr, "\n  the report says what decides them; --require ")
			if level, _, _ = strings.Cut(level, " takes them as they are\n"); level != test.level {
				t.Errorf("level %q, not %q: it says %s", level, test.level, stderr)
			}
			if want := map[bool]report.Status{true: report.Undecided, false: report.Fail}[test.level != ""]; test.code == 0 {
				if result.Verdict != report.Pass || result.Report.Ended != report.Pass {
					t.Errorf("verdict %q, %q", result.Verdict, result.Report.Ended)
				}
			} else if result.Verdict != want || result.Report.Ended != want {
				t.Errorf("verdict %q, %q, not %q", result.Verdict, result.Report.Ended, want)
			}
			for id, want := range test.gates {
				if g, _ := result.Report.Gate(id); g.Status != want {
					t.Errorf("gate %s ends as %s, not %s:\n%s", id, g.Status, want, findingsText(g))
				}
			}
		})
	}
}

// TestRehearseDocumentedProfile rehearses the same submission for the task of
// docs/profile.md.
func TestRehearseDocumentedProfile(t *testing.T) {
	if _, err := os.Stat(python); err != nil {
		t.Skip("the server is of Python: ", err)
	}
	if !canSandbox(t) {
		t.Skip("needs a sandbox")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "profile.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```hcl\n")
	text, _, found := strings.Cut(text, "```\n")
	if !found {
		t.Fatal("docs/profile.md has no profile")
	}
	set, err := broken.Load(os.DirFS(filepath.Join("..", "..", "examples", "broken")))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	written, err := set.Write(folder, set.Clean("majority.hcl"), false)
	if err != nil {
		t.Fatal(err)
	}
	questions, err := os.ReadFile(filepath.Join(filepath.Dir(written.Profile), "majority.questions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"my-task.hcl": text, "questions.jsonl": string(questions)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	result, code, stderr := rehearseFlags(t, folder, written.Folder, []string{"--profile", "my-task.hcl"})
	if quality, _ := result.Report.Gate("quality"); code != 0 || quality.Status != report.Pass {
		t.Errorf("exit code %d, quality %s:\n%s%s", code, quality.Status, findingsText(quality), stderr)
	}
	for _, g := range result.Report.Gates {
		if g.Status == report.Fail || g.Status == report.Undecided {
			t.Errorf("gate %s ends as %s:\n%s", g.ID, g.Status, findingsText(g))
		}
	}
	// Imports are tried for gate install alone.
	if !strings.Contains(stderr, "tried the imports of ") {
		t.Errorf("no imports were tried:\n%s", stderr)
	}
	text = strings.ReplaceAll(text, `"install", `, "")
	if err := os.WriteFile(filepath.Join(folder, "my-task.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, code, stderr := rehearseFlags(t, folder, written.Folder, []string{"--profile", "my-task.hcl"}); code != 0 || strings.Contains(stderr, "tried the imports of ") {
		t.Errorf("exit code %d, without gate install:\n%s", code, stderr)
	}
}

// rehearseFlags runs rehearse on a submission with files of a folder in the
// flags.
func rehearseFlags(t *testing.T, folder, submission string, flags []string) (result rehearsed, code int, complaint string) {
	t.Helper()
	args := []string{"rehearse", "--json"}
	for _, flag := range flags {
		if strings.HasSuffix(flag, ".hcl") || strings.HasSuffix(flag, ".jsonl") {
			flag = filepath.Join(folder, flag)
		}
		args = append(args, flag)
	}
	var stdout, stderr bytes.Buffer
	code = Run(context.Background(), Environment{
		Args: append(args, submission), Stdout: &stdout, Stderr: &stderr, TempDir: t.TempDir(), Path: "/usr/bin:/bin", Version: "test",
	})
	if strings.Contains(stderr.String(), "is taken on this machine") {
		t.Skip(stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		t.Fatalf("exit code %d, %v:\n%s", code, err, &stderr)
	}
	return result, code, stderr.String()
}
