package verify

import (
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
)

func TestStrayFiles(t *testing.T) {
	for _, test := range []struct {
		path, head string
		size       int64
		want, at   string
	}{
		{path: ".git/objects/ab/cd", want: "a Git repository's own files", at: ".git/"},
		{path: "code/__pycache__/a.cpython-312.pyc", want: "Python's compiled files", at: "code/__pycache__/"},
		{path: "weights/checkpoint-500/trainer_state.json", want: "a training run's checkpoint", at: "weights/checkpoint-500/"},
		{path: "weights/optimizer.pt", want: "a training run's state", at: "weights/optimizer.pt"},
		{path: "code/.server.py.swp", want: "an editor's leavings", at: "code/.server.py.swp"},
		{path: "code/.env", want: "the settings of one machine, which often hold secrets", at: "code/.env"},
		{path: ".DS_Store", want: "a file manager's leavings", at: ".DS_Store"},
		{path: "core.123", head: "\x7fELF", want: "the memory of a program that crashed", at: "core.123"},
		{path: "provenance/a.log", size: maxLogBytes + 1, want: "a log that nobody reads: it has 67,108,865 bytes", at: "provenance/a.log"},

		{path: "provenance/a.log", size: maxLogBytes},
		{path: "core.py"}, {path: "core", head: "#!/bin/sh"}, {path: "code/runs/a.py"}, {path: ".gitattributes"}, {path: ".env.example"}, {path: "code/settings.env"}, {path: "code/checkpoint.py"},
		{path: "code/cache/a.py"}, {path: "weights/model.safetensors"}, {path: "checkpoints/a.json"},
	} {
		at, what := strayOf(content.TreeFile{File: manifest.File{Path: test.path, Size: test.size}}, []byte(test.head))
		if at != test.at || what != test.want {
			t.Errorf("%s: %q at %q, want %q at %q", test.path, what, at, test.want, test.at)
		}
	}
}

func TestStrayVectors(t *testing.T) {
	runVectors(t, []vector{
		{name: "Git's files", alter: func(f *fixture) { f.files[".git/config"], f.files[".git/HEAD"] = []byte("[core]"), []byte("ref: x") },
			warns: "files", names: ".git/"},
		{name: "training state", alter: func(f *fixture) { f.files["weights/trainer_state.json"] = []byte("{}") }, warns: "files", names: "weights/trainer_state.json"},
	})
}
