package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/internal/generate/broken"
	"slipway/verify"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
)

var replayBare = flag.Bool("replay-bare", false, "replay examples/broken without a sandbox, as on a machine that gives none")

// required says that this machine is to have what the replay needs.
var required = os.Getenv("REQUIRE_SANDBOX") == "1"

// TestBroken replays examples/broken: every case fails at its gate and at no
// other, says what its case says, and its fixed twin passes them all. With
// -short, only those of failed submissions are replayed, without their twins.
func TestBroken(t *testing.T) {
	if _, err := os.Stat(python); err != nil {
		if required {
			t.Fatal(err)
		}
		t.Skip("the servers are of Python: ", err)
	}
	set, err := broken.Load(os.DirFS(filepath.Join("..", "..", "examples", "broken")))
	if err != nil {
		t.Fatal(err)
	}
	r := replay{set: set, sandboxed: canSandbox(t), turns: make(chan struct{}, 2)}
	if !r.sandboxed {
		r.turns = make(chan struct{}, 1) // without one, all servers want the same port
	}
	for i := range set.Cases {
		c := &set.Cases[i]
		if testing.Short() && !c.Failed() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) { r.fault(t, c) })
	}
	for i := range set.Cases {
		c := &set.Cases[i]
		if testing.Short() || !c.OwnTwin() {
			continue
		}
		t.Run(c.Name+".fixed", func(t *testing.T) { r.twin(t, c) })
	}
	for _, profile := range []string{"majority.hcl", "majority-draft.hcl", "majority-image.hcl"} {
		t.Run(profile, func(t *testing.T) { r.twin(t, set.Clean(profile)) })
	}
}

// python is the interpreter that submissions find: in the sandbox, homes are
// hidden, and with them interpreters that were installed there.
const python = "/usr/bin/python3"

type replay struct {
	set       *broken.Set
	sandboxed bool
	turns     chan struct{}
}

func canSandbox(t *testing.T) bool {
	if *replayBare {
		return false
	}
	s, err := sandbox.Open(t.Context(), sandbox.Options{Submission: t.TempDir()})
	if errors.Is(err, sandbox.ErrUnsupported) {
		if required {
			t.Fatal(err)
		}
		t.Log("without a sandbox: ", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return true
}

// fault holds the report of a faulty submission against its case.
func (r *replay) fault(t *testing.T, c *broken.Case) {
	for _, program := range c.Needs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the fault does not show here: ", err)
		}
	}
	for _, name := range c.Lacks {
		if exec.Command(python, "-c", "import "+name).Run() == nil {
			t.Skip("the fault does not show here: there is ", name)
		}
	}
	if c.Sandboxed && !r.sandboxed {
		t.Skip("the fault does not show without a sandbox")
	}
	result := r.rehearse(t, c, false)
	if failed := result.Failed(); !slices.Equal(failed, []string{c.Gate}) {
		t.Errorf("gates that fail: %v, not %s alone", failed, c.Gate)
		for _, id := range append(failed, c.Gate) {
			g, _ := result.Gate(id)
			t.Logf("gate %s ends as %s:\n%s", g.ID, g.Status, findingsText(g))
		}
	}
	g, _ := result.Gate(c.Gate)
	for _, text := range c.Says {
		says(t, g, text)
	}
	for _, saying := range c.Observed {
		if saying.Sandboxed && !r.sandboxed {
			continue
		}
		g, _ := result.Gate(saying.Gate)
		if explained := "gate " + c.Gate + " says what can be why"; g.Status != report.Undecided ||
			!strings.Contains(g.Notes[0], explained) && !strings.Contains(g.Notes[0], "see gate startup") {
			t.Errorf("gate %s ends as %s and is not explained:\n%s", g.ID, g.Status, findingsText(g))
		}
		says(t, g, saying.Text)
	}
}

// says wants a text in a gate's findings or notes, in whatever case.
func says(t *testing.T, g report.GateResult, text string) {
	t.Helper()
	if all := findingsText(g); !strings.Contains(strings.ToLower(all), strings.ToLower(text)) {
		t.Errorf("gate %s does not say %q:\n%s", g.ID, text, all)
	}
}

// twin wants every gate passed, and no warning but of times, which are this
// machine's.
func (r *replay) twin(t *testing.T, c *broken.Case) {
	for _, g := range r.rehearse(t, c, true).Gates {
		undecided := g.Status == report.Undecided && (r.sandboxed || !verify.Dynamic(g.ID))
		warns := len(g.Findings) > 0 && g.ID != "startup" && g.ID != "deadline"
		if g.Status == report.Fail || undecided || warns {
			t.Errorf("gate %s ends as %s:\n%s", g.ID, g.Status, findingsText(g))
		}
	}
}

// rehearse rehearses a submission, at most two at a time: the machines that
// check this have two processors.
func (r *replay) rehearse(t *testing.T, c *broken.Case, fixed bool) *report.Report {
	t.Parallel()
	r.turns <- struct{}{}
	defer func() { <-r.turns }()
	written, err := r.set.Write(t.TempDir(), c, fixed)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"rehearse", "--json", "--profile", written.Profile, written.Folder}
	if !r.sandboxed {
		args = append(args, "--bare")
	}
	var stdout, stderr bytes.Buffer
	code := Run(context.Background(), Environment{
		Args: args, Stdout: &stdout, Stderr: &stderr,
		TempDir: t.TempDir(), Path: "/usr/bin:/bin", Version: "test",
	})
	var result rehearsed
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		t.Fatalf("exit code %d, %v:\n%s", code, err, &stderr)
	}
	return result.Report
}

func findingsText(g report.GateResult) string {
	var out strings.Builder
	for _, f := range g.Findings {
		out.WriteString("  " + strings.Join([]string{string(f.Level), f.Path, f.Tensor, f.Problem, "want " + f.Want, "got " + f.Got, "hint " + f.Hint}, " | ") + "\n")
	}
	for _, note := range g.Notes {
		out.WriteString("  note | " + note + "\n")
	}
	return out.String()
}
