package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/verify/boot/sandbox"
)

// What is left out is not there, and what lies beside it is, at every depth.
func TestLeaveOut(t *testing.T) {
	// Of what any machine has: a folder of /usr/share, and one in another.
	var wide, deep string
	found, err := filepath.Glob("/usr/share/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		switch info, err := os.Lstat(path); {
		case err != nil || !info.IsDir():
		case deep == "":
			deep = path
		case filepath.Dir(path) != filepath.Dir(deep):
			wide = filepath.Dir(path)
		}
	}
	if wide == "" {
		t.Skip("too little below /usr/share")
	}
	list := func(left ...string) map[string]bool {
		s := open(t, sandbox.Options{User: 12345, LeaveOut: left})
		text, err := script(t, s, "ls -A /usr/share | sed 's,^,/usr/share/,'; ls -A "+filepath.Dir(deep)+" | sed 's,^,"+filepath.Dir(deep)+"/,'; cd /usr/share && { echo x 2>/dev/null >x && echo written; }; true")
		if err != nil {
			t.Fatal(err, text)
		}
		there := map[string]bool{}
		for line := range strings.Lines(text) {
			there[strings.TrimSpace(line)] = true
		}
		return there
	}
	all := list()
	less := list(wide, deep, "/usr/share/not-there-at-all", "/not/there")
	for path := range all {
		if left := path == wide || path == deep; less[path] == left {
			t.Errorf("%s is there: %v", path, less[path])
		}
	}
	if !all[wide] || !all[deep] || less["written"] || len(less) != len(all)-2 {
		t.Errorf("%s and %s are left out: %d of %d are there", wide, deep, len(less), len(all))
	}
}
