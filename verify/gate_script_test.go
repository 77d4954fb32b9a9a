package verify

import (
	"strings"
	"testing"

	"slipway/verify/image"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

const argparseServer = `import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.parse_args()
`

func TestScriptVectors(t *testing.T) {
	serve := func(line string) func(*fixture) {
		return func(f *fixture) {
			f.files["serve.sh"] = []byte("#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit 1\n" + line + "\n")
			f.files["code/server.py"] = []byte(argparseServer)
		}
	}
	noexec := func() profiles.Profile {
		p, yes := toyProfile(), true
		p.Image = &image.Image{Mounts: []image.Mount{{Path: "/dev/shm", NoExec: &yes}}}
		return p
	}
	port := func() profiles.Profile {
		p := toyProfile()
		p.Load.Port = 8000
		return p
	}
	runVectors(t, []vector{
		{name: "a server of the submission", alter: serve("exec python3 -u code/server.py --port 8000"), profile: port},
		{name: "unknown option", alter: serve("exec python3 -u code/server.py --skip-mv"), fails: []string{"script"}, names: "line 3: code/server.py: unrecognized arguments: --skip-mv"},
		{name: "another port", alter: serve("exec python3 -u code/server.py --port 8001"), profile: port, fails: []string{"script"}, names: "another port"},
		{name: "noexec mount", alter: serve("export LD_LIBRARY_PATH=/dev/shm/lib\nexec python3 -u code/server.py"), profile: noexec, fails: []string{"script"}, names: "/dev/shm is mounted noexec"},
		{name: "without exec", alter: serve("python3 -u code/server.py"), fails: []string{"script"}, names: "without exec"},
		{name: "buffered", alter: serve("exec python3 code/server.py"), warns: "script", names: "buffered"},
	})
}

// Without serve.sh there is nothing to decide; what cannot be followed to a
// server is not passed.
func TestScriptUndecided(t *testing.T) {
	f := newFixture()
	f.files["serve.sh"] = []byte("#!/bin/sh\n" + strings.Repeat("# a long script\n", 5000))
	g, _ := run(t, f.write(t), Options{Profile: toyProfile()}).Gate("script")
	if g.Status != report.Undecided || len(g.Notes) == 0 {
		t.Errorf("%+v", g)
	}
	delete(f.files, "serve.sh")
	if g, _ := run(t, f.write(t), Options{Profile: toyProfile()}).Gate("script"); g.Status != report.NotApplicable {
		t.Errorf("%+v", g)
	}
}

// Only text is kept, and no file of weights.
func TestIsText(t *testing.T) {
	for p, size := range map[string]int64{"serve.sh": 1 << 20, "code/server.py": 10, "bin/start": 1000} {
		if !isText(p, size) {
			t.Errorf("%s is not kept", p)
		}
	}
	for p, size := range map[string]int64{"serve.sh": 1<<20 + 1, "weights/model.safetensors": 10, "runtime/serve": 1 << 20, "wheels/x.whl": 10} {
		if isText(p, size) {
			t.Errorf("%s is kept", p)
		}
	}
}
