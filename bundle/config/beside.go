package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
)

// modelFiles are the names, beside the shards, that checkpoints of the
// transformers library use and a runtime reads.
var modelFiles = []string{
	"config.json", "generation_config.json", "model.safetensors.index.json",
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "merges.txt", "vocab.txt",
	"special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
	"preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json",
}

// IsModelFile reports whether a weights block takes a file of this name: a
// model's configuration or tokenizer. Shards are not asked for here.
func IsModelFile(base string) bool { return slices.Contains(modelFiles, base) }

// rootFileNames are the files of a submission's root that no other block takes.
var rootFileNames = []string{
	serveScript, "architecture.json", "STARTING_ARTIFACT.json", "backbone_contract.json", "README.md", "LICENSE",
}

// serveScript is what a grader starts.
const serveScript = "serve.sh"

// maxScript bounds a serve.sh that is looked through for names, in bytes.
const maxScript = 1 << 20

// sort tells the names beside the weights apart: what a server is made of, which
// the bundle takes, and the rest. Programs are taken, and what serve.sh names.
// Hidden ones and bundle.hcl are neither.
func (f *folder) sort(tree fs.FS, entries []fs.DirEntry) error {
	script := ""
	if isRegular(tree, serveScript) {
		data, err := readBounded(tree, serveScript, maxScript)
		if err != nil {
			return err
		}
		script = string(data)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, "."), name == "bundle.hcl", f.takenElsewhere(name):
		case entry.IsDir() && f.aboveWeights(name):
		case entry.IsDir() && isProgramFolder(tree, name, script):
			f.programs = append(f.programs, name)
		case entry.IsDir():
			f.left = append(f.left, name+"/")
		case entry.Type().IsRegular() && isBesideWeights(name, script) && !strings.ContainsAny(name, `*?[\`):
			f.rootFiles = append(f.rootFiles, name)
		default:
			f.left = append(f.left, name)
		}
	}
	return nil
}

// takenElsewhere reports whether another block takes a name at the root.
func (f *folder) takenElsewhere(name string) bool {
	flat := slices.ContainsFunc(f.weights, func(w weightFolder) bool { return w.path == "." })
	switch name {
	case manifest.QuantizationPath:
		return true
	case "DATA.md":
		return f.data
	case "provenance":
		return f.logs
	case "wheels":
		return f.wheels > 0
	}
	return flat && (IsModelFile(name) || strings.HasSuffix(name, ".safetensors"))
}

// aboveWeights reports whether weights lie in a folder of the root or below it.
func (f *folder) aboveWeights(name string) bool {
	return slices.ContainsFunc(f.weights, func(w weightFolder) bool { return w.path == name || strings.HasPrefix(w.path, name+"/") })
}

// isProgramFolder reports whether a folder holds programs, is named code and not
// empty, or is one that serve.sh names. A virtual environment does not survive
// being moved.
func isProgramFolder(tree fs.FS, name, script string) bool {
	if isRegular(tree, path.Join(name, "pyvenv.cfg")) || name == "__pycache__" {
		return false
	}
	inside := escapeGlob(name)
	return holds(tree, inside+"/*.py") > 0 || holds(tree, inside+"/*.sh") > 0 || name == "code" && holds(tree, "code/*") > 0 ||
		strings.Contains(script, name+"/") && holds(tree, inside+"/*") > 0
}

func isBesideWeights(name, script string) bool {
	return slices.Contains(rootFileNames, name) || path.Ext(name) == ".py" || path.Ext(name) == ".sh" || strings.Contains(script, name)
}

// serves reports whether the folder starts a server of its own.
func (f *folder) serves() bool { return slices.Contains(f.rootFiles, serveScript) }

// notNative says why the bundle's own server does not serve the folder's model;
// "" where it does.
func (f *folder) notNative() string {
	if len(f.weights) != 1 || len(f.weights[0].architectures) == 0 {
		return ""
	}
	return NotNative(f.weights[0].architectures[0])
}

// notesOfLeft is how many names that are left out are listed.
const notesOfLeft = 12

// notes say what the written bundle.hcl leaves out, and what to write there to
// take it.
func (f *folder) notes() []string {
	var all []string
	if unused, why := f.unstarted(), f.notNative(); why != "" && !f.serves() {
		all = append(all, "there is no serve.sh, and "+why, "  write a serve.sh that starts a server of your own on port 8000, and run slipway init again")
	} else if !f.serves() && len(unused) > 0 {
		all = append(all, fmt.Sprintf("nothing starts %s: there is no serve.sh, so that the bundle's own server answers", strings.Join(unused, ", ")),
			"  to serve with it: write a serve.sh that starts it on port 8000, and run slipway init again")
	}
	for i, name := range f.left {
		if i == notesOfLeft {
			all = append(all, fmt.Sprintf("left out: %d more", len(f.left)-i))
			break
		}
		target := "."
		switch {
		case strings.HasSuffix(name, "/"):
			target = strings.TrimSuffix(name, "/")
		case IsModelFile(name):
			target = "weights"
		}
		all = append(all, fmt.Sprintf("left out: %s; to take it: files %s { from = %s }", name, quote(target), quote(strings.TrimSuffix(name, "/"))))
	}
	return all
}

// unstarted are the programs that only a serve.sh could start.
func (f *folder) unstarted() []string {
	var all []string
	for _, name := range f.rootFiles {
		if path.Ext(name) == ".py" || path.Ext(name) == ".sh" {
			all = append(all, name)
		}
	}
	for _, name := range f.programs {
		all = append(all, name+"/")
	}
	return all
}
