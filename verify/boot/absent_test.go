//go:build unix

package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"slipway/verify/boot/installed"
	"slipway/verify/boot/sandbox"
	"slipway/verify/image"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// packagesOf makes a Python's folders with packages, and returns that of its
// programs and that of the packages.
func packagesOf(t *testing.T) (bin, packages string) {
	t.Helper()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packages = filepath.Join(at, "lib/python3.11/site-packages")
	for name, text := range map[string]string{
		"example_gone-1.0.dist-info/RECORD":   "gone/__init__.py,,\ngone_alone.py,,\n",
		"gone/__init__.py":                    "",
		"gone_alone.py":                       "",
		"example_there-1.0.dist-info/RECORD":  "there/__init__.py,,\n",
		"there/__init__.py":                   "",
		"example_silent-1.0.dist-info/RECORD": "silent/__init__.py,,\n",
		"silent/__init__.py":                  "",
		"stray.py":                            "",
	} {
		file := filepath.Join(packages, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(at, "bin"), packages
}

var exampleImage = image.Image{Schema: 1, Distributions: map[string]string{"example-there": ""}, Absent: []string{"example-gone"}}

func TestAbsentHere(t *testing.T) {
	bin, packages := packagesOf(t)
	below := func(all []string) (names []string) {
		for _, path := range all {
			if name, is := strings.CutPrefix(path, packages+"/"); is {
				names = append(names, name)
			}
		}
		return names
	}
	complete := exampleImage
	complete.Complete = true
	for _, test := range []struct {
		what  string
		image *image.Image
		want  []string
	}{
		{"no image", nil, nil},
		{"an image that says nothing", &image.Image{Schema: 1}, nil},
		{"absent", &exampleImage, []string{"example_gone-1.0.dist-info", "gone", "gone_alone.py"}},
		{"not listed where all are", &complete, []string{"example_gone-1.0.dist-info", "example_silent-1.0.dist-info", "gone", "gone_alone.py", "silent"}},
	} {
		r := &Rehearsal{Path: bin, Profile: profiles.Profile{Image: test.image}}
		if got := below(r.absentHere().paths); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}

func TestJudgePackages(t *testing.T) {
	defer func(old []string) { scratch = old }(scratch)
	scratch = nil // where tests write
	_, packages := packagesOf(t)
	for _, test := range []struct {
		opened       string
		image        *image.Image
		fault, noted string
	}{
		{packages + "/gone/__init__.py", &exampleImage, "example-gone", ""},
		{packages + "/__pycache__/gone_alone.cpython-311.pyc", &exampleImage, "example-gone", ""},
		{packages + "/gone/__init__.py", nil, "", ""},
		{packages + "/example_gone-1.0.dist-info/METADATA", &exampleImage, "", ""},
		{packages + "/there/__init__.py", &exampleImage, "", ""},
		{packages + "/silent/__init__.py", &exampleImage, "", "example-silent"},
		{packages + "/stray.py", &exampleImage, "", "module stray"},
		{"/submission/lib/python3.11/site-packages/gone/__init__.py", &exampleImage, "", ""},
		{"/usr/lib/python3.11/json/__init__.py", &exampleImage, "", ""},
	} {
		o := &observed{rehearsal: &Rehearsal{Profile: profiles.Profile{Image: test.image}}, at: "/submission", homeFolder: "/tmp/home",
			trace: &sandbox.Trace{Opened: []sandbox.Opened{{Path: test.opened, Exists: true}, {Path: test.opened + "x"}}}}
		var v verdict
		o.judgePackages(&v)
		fault, noted := "", strings.Join(v.Notes, "\n")
		if len(v.Findings) == 1 {
			fault = v.Findings[0].Problem
		}
		if len(v.Findings) > 1 || (fault == "") != (test.fault == "") || !strings.Contains(fault, test.fault) || (noted == "") != (test.noted == "") || !strings.HasSuffix(noted, test.noted) {
			t.Errorf("%s: fault %q, note %q, want %q, %q", test.opened, fault, noted, test.fault, test.noted)
		}
	}
}

func TestJudgePython(t *testing.T) {
	for _, test := range []struct {
		opened, image string
		warned        bool
	}{
		{"/usr/lib/python3.11/encodings/__init__.py", "3.11", false},
		{"/usr/lib/python3.11/encodings/__init__.py", "3.11.4", false},
		{"/usr/lib/python3.1/encodings/__init__.py", "3.11.4", true},
		{"/usr/lib64/python3.12/encodings/__pycache__/__init__.cpython-312.pyc", "3.11", true},
		{"/submission/python/lib/python3.12/encodings/__init__.py", "3.11", false},
		{"/usr/lib/python3.12/json/__init__.py", "3.11", false},
	} {
		o := &observed{rehearsal: &Rehearsal{Profile: profiles.Profile{Image: &image.Image{Python: &image.Python{Version: test.image}}}}, at: "/submission", homeFolder: "/tmp/home",
			trace: &sandbox.Trace{Opened: []sandbox.Opened{{Path: test.opened, Exists: true}, {Path: test.opened + "x", Exists: true}}}}
		var v verdict
		o.judgePython(&v)
		if (len(v.Findings) == 1) != test.warned || v.Failed() {
			t.Errorf("%s for Python %s: %+v", test.opened, test.image, v.Findings)
		}
	}
}

// What this machine's Python has and the image has not is not found, by any name.
func TestAbsentPackages(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip(err)
	}
	name, module := "", ""
	for _, folder := range packageFolders([]string{"/usr/bin"}) {
		packages := installed.Read(folder)
		for _, distribution := range packages.Distributions() {
			for _, path := range packages.Only(func(name string) bool { return name == distribution }) {
				if _, err := os.Stat(filepath.Join(folder, path, "__init__.py")); err == nil && !strings.Contains(path, "/") {
					name, module = distribution, path
				}
			}
		}
	}
	if name == "" {
		t.Skip("this machine's Python has no package")
	}
	s := testSubmission{script: fmt.Sprintf("python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"%s\") is None)' && SERVER\necho there is no %s", module, module)}
	inBoth(t, func(t *testing.T, bare bool) {
		if bare {
			t.Skip("nothing is left out of this machine as it is")
		}
		for what, image := range map[string]*image.Image{"mentioned": {Distributions: map[string]string{name: ""}}, "absent": {Absent: []string{name}}, "not listed where all are": {Complete: true}} {
			s.profile = func(p *profiles.Profile) { p.Image = image }
			measured, gates := run(t, s.rehearsal(t, false))
			want := []string{"startup"}
			if what == "mentioned" {
				want = nil
			}
			if got := failing(gates); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q fail, want %q: %s", name, what, got, want, findings(gates["startup"]))
			}
			held := slices.ContainsFunc(measured.Conditions, func(c report.Condition) bool {
				return c.Name == withoutAbsent && c.Held && strings.Contains(c.Detail, name)
			})
			if held != (want != nil) {
				t.Errorf("%s, %s: conditions %+v", name, what, measured.Conditions)
			}
		}
	})
}

// What this machine cannot do is held against no submission.
func TestMachineFault(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("start: %w: setgroups: %w", sandbox.ErrNotStarted, syscall.EPERM): true,
		&os.PathError{Op: "fork/exec", Path: "/x", Err: syscall.EAGAIN}:              true,
		&os.PathError{Op: "fork/exec", Path: "/x", Err: syscall.ENOENT}:              false,
		&os.PathError{Op: "start", Path: "/x", Err: syscall.EACCES}:                  false,
	} {
		if got := machineFault(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
	r := &Rehearsal{Profile: chatProfile()}
	o := &observed{rehearsal: r, Measured: &report.Measured{}, trace: &sandbox.Trace{}, first: startOutcome{problem: "this machine cannot start it: setgroups: operation not permitted", machines: true}}
	for _, g := range o.decide() {
		if g.Status == report.Fail || g.ID == "startup" && (g.Status != report.Undecided || !strings.Contains(g.Notes[0], "setgroups")) {
			t.Errorf("%s: %+v", g.ID, g)
		}
	}
}
