package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/verify/report"
)

// A folder is handed in with the modes that it has.
func TestFilesThatTheGraderCannotRead(t *testing.T) {
	for _, tc := range []struct {
		name  string
		modes map[string]os.FileMode
		want  []string // path and what its warning says
	}{
		{"all for everybody", map[string]os.FileMode{"serve.sh": 0o755, "weights/config.json": 0o644}, nil},
		{"a file of one's own", map[string]os.FileMode{"weights/config.json": 0o600}, []string{"weights/config.json mode 0600: another user cannot read it; an artifact has it as 0644"}},
		{"a script of the group's", map[string]os.FileMode{"serve.sh": 0o750}, []string{"serve.sh mode 0750: another user cannot read it; an artifact has it as 0755"}},
		{"a script that only its owner starts", map[string]os.FileMode{"serve.sh": 0o744}, []string{"serve.sh mode 0744: another user cannot execute it; an artifact has it as 0755"}},
		{"a folder of one's own", map[string]os.FileMode{"weights": 0o700}, []string{"weights/ mode 0700: another user cannot enter it; an artifact has it as 0755"}},
		{"several", map[string]os.FileMode{"weights/config.json": 0o640, "weights/tokenizer.json": 0o640}, []string{"weights/config.json mode 0640: another user cannot read it; an artifact has it as 0644, a copied folder does not (and 1 more of that mode)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := newFixture().write(t)
			for name, mode := range tc.modes {
				if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
					t.Fatal(err)
				}
			}
			gate, _ := run(t, root, Options{Profile: toyProfile()}).Gate("paths")
			var got []string
			for _, f := range gate.Findings {
				if f.Level == report.Warning && f.Hint != "" {
					got = append(got, f.Path+" "+f.Problem)
				}
			}
			if len(got) != len(tc.want) || gate.Status != report.Pass {
				t.Fatalf("status %s, warnings %q, want %q", gate.Status, got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("warning %q, want %q", got[i], want)
				}
			}
		})
	}
}
