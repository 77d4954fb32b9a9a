package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
)

const (
	pinnedConfig = `{"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": {"hidden_size": 2560, "num_hidden_layers": 32}}`
	smallConfig  = `{"architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2}`
	tinyManifest = `{"base_model": null, "base_revision": null, "tensors": {"a": {"kind": "float", "shape": [1], "file": "a.safetensors", "tensor": "a"}}}`
	basedOn      = `{"base_model": "own/base", "base_revision": "00112233445566778899aabbccddeeff00112233", "tensors": {"a": {"kind": "float", "shape": [1], "file": "a.safetensors", "tensor": "a"}}}`
)

// folders are small folders by name: paths and contents.
var folders = map[string]map[string]string{
	"Qwen Ternary": { // a submission's layout
		"weights/model-00001-of-00002.safetensors": "", "weights/model-00002-of-00002.safetensors": "",
		"weights/model.safetensors.index.json": "{}", "weights/config.json": pinnedConfig,
		"quantization_manifest.json": tinyManifest, "serve.sh": "#!/bin/sh\n", "README.md": "",
		"code/server.py": "", "wheels/a-1-py3-none-any.whl": "", "DATA.md": "", "provenance/download.log": "",
		".git/objects/x.safetensors": "",
	},
	"flat":  {"model.safetensors": "", "config.json": smallConfig},
	"based": {"model.safetensors": "", "config.json": smallConfig, "quantization_manifest.json": basedOn},
	"two": {
		"weights/language/a.safetensors": "", "weights/language/config.json": smallConfig, "weights/language/quantization_manifest.json": tinyManifest,
		"weights/vision/a.safetensors": "", "DATA.md": "",
	},
	"own server": { // beside the weights, with what else lies there
		"model.safetensors": "", "config.json": smallConfig, "serve.sh": "exec python3 server.py --requirements requirements.txt --templates prompts/a.txt\n",
		"server.py": "", "start.sh": "", "requirements.txt": "", "prompts/a.txt": "", "app/util.py": "", "app/__pycache__/util.pyc": "",
		"notes.txt": "", "data/train.jsonl": "", "venv/pyvenv.cfg": "", "venv/a.py": "", ".env": "", "strange[1].py": "",
	},
	"llama":    {"model.safetensors": "", "config.json": `{"architectures": ["LlamaForCausalLM"]}`, "server.py": ""},
	"no start": {"weights/model.safetensors": "", "config.json": smallConfig, "server.py": "", "code/more.py": ""},
	`od"d${x}`: {`we"ights/%{a}/m[1].safetensors`: "", `we"ights/%{a}/m[1].safetensors.index.json`: "{}"},
}

// folderNotes are what init says of them beside the text.
var folderNotes = map[string][]string{
	"own server": {
		`left out: data/; to take it: files "data" { from = "data" }`,
		`left out: notes.txt; to take it: files "." { from = "notes.txt" }`,
		`left out: strange[1].py; to take it: files "." { from = "strange[1].py" }`,
		`left out: venv/; to take it: files "venv" { from = "venv" }`,
	},
	"llama": {
		"there is no serve.sh, and the bundled runtime computes Qwen3ForCausalLM, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration: not LlamaForCausalLM",
		"  write a serve.sh that starts a server of your own on port 8000, and run slipway init again",
	},
	"no start": {
		"nothing starts server.py, code/: there is no serve.sh, so that the bundle's own server answers",
		"  to serve with it: write a serve.sh that starts it on port 8000, and run slipway init again",
		`left out: config.json; to take it: files "weights" { from = "config.json" }`,
	},
}

func makeFolder(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, content := range files {
		writeFiles(t, dir, []string{file}, content)
	}
	return dir
}

func TestInit(t *testing.T) {
	for name, files := range folders {
		t.Run(name, func(t *testing.T) {
			dir := makeFolder(t, name, files)
			text, notes, err := Init(dir)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "init/"+bundleName(name)+".hcl", string(text))
			if got, want := strings.Join(notes, "\n"), strings.Join(folderNotes[name], "\n"); got != want {
				t.Errorf("notes:\n%s\nwant:\n%s", got, want)
			}
			if _, err := os.Stat(filepath.Join(dir, "bundle.hcl")); err == nil {
				t.Fatal("Init wrote bundle.hcl")
			}
			writeFiles(t, dir, []string{"bundle.hcl"}, string(text))
			if _, err := LoadBundle(filepath.Join(dir, "bundle.hcl")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInitRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"empty", nil, "no *.safetensors file in it or in the folders below it, 3 deep; seen: nothing, it is empty"},
		{"no weights", map[string]string{"config.json": smallConfig, "model.bin": ""}, "seen: config.json, model.bin"},
		{"too deep", map[string]string{"a/b/c/d/x.safetensors": ""}, "no *.safetensors"},
		{"broken config", map[string]string{"x.safetensors": "", "config.json": "{"}, "read config.json: "},
		{"config of another kind", map[string]string{"x.safetensors": "", "config.json": `{"hidden_size": "big"}`}, "read config.json: hidden_size: "},
		{"broken manifest", map[string]string{"w/x.safetensors": "", "w/quantization_manifest.json": "{}"}, "read w/quantization_manifest.json: "},
		{"two manifests", map[string]string{"w/x.safetensors": "", "w/quantization_manifest.json": tinyManifest, "quantization_manifest.json": tinyManifest}, "beside this file; remove one of them"},
		{"unusable path", map[string]string{"w:1/x.safetensors": ""}, "contains a colon"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, _, err := Init(makeFolder(t, "m", test.files))
			if err == nil || !strings.Contains(err.Error(), test.want) || text != nil {
				t.Errorf("got %q, %v; want %q", text, err, test.want)
			}
		})
	}
	if _, _, err := Init(makeFolder(t, "m", nil)); manifest.Hint(err) == "" {
		t.Error("no hint")
	}
	if _, _, err := Init(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("absent folder: no error")
	}
}

func TestBundleName(t *testing.T) {
	for folder, want := range map[string]string{"Qwen Ternary": "qwen-ternary", "a_b.c-1": "a_b.c-1", "--": "model", "/": "model", "Größe": "gr--e", ".x": "x", strings.Repeat("a", 200): strings.Repeat("a", 128)} {
		if got := bundleName(folder); got != want {
			t.Errorf("%q: %q, want %q", folder, got, want)
		}
	}
}
