package config

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/profiles"
)

// Init looks at a folder of weights and returns the text of a bundle.hcl for
// it, each line with the reason why it is there, and notes, a line each, on what
// the text leaves out and how to take it. The text loads with LoadBundle from
// that folder. A folder without *.safetensors files is an error that says where
// they were looked for. Nothing is written.
func Init(dir string) (text []byte, notes []string, err error) {
	found, err := inspect(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("inspect %s: %w", dir, err)
	}
	if len(found.weights) == 0 {
		if len(found.links) > 0 {
			return nil, nil, manifest.WithHint(fmt.Errorf("inspect %s: %s is a symbolic link", dir, found.links[0]), "a bundle holds no links; copy what it points to, with `cp -rL` for a whole folder")
		}
		err := fmt.Errorf("inspect %s: no *.safetensors file in it or in the folders below it, %d deep; seen: %s", dir, maxFolderDepth, found.seen())
		return nil, nil, manifest.WithHint(err, "name the folder that holds the weights, or one above it")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	text = found.write(bundleName(filepath.Base(absolute)))
	if _, err := ParseBundle(text, filepath.Join(dir, "bundle.hcl")); err != nil {
		return nil, nil, fmt.Errorf("write bundle.hcl for %s: %w", dir, err)
	}
	return text, found.notes(), nil
}

// bundleName makes a bundle's name of a folder's: lower case, what a name may
// not hold replaced by '-'.
func bundleName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(folder))
	name = strings.Trim(name[:min(len(name), 128)], "._-")
	if name == "" {
		return "model"
	}
	return name
}

func (f *folder) write(name string) []byte {
	w := &hclWriter{}
	w.comment("Written by slipway init from what lies in this folder. Paths are relative to it.")
	w.line("slipway = %d", version)
	w.open(`bundle %s`, quote(name))
	if f.isPinned() {
		w.line(`profile = %s # config.json has the dimensions of %s`, quote(f.pinned.profile), f.pinned.base.Repository)
	} else {
		w.line(`profile = "practice" # its questions are the example's: name your task (%s, or a file: docs/profile.md)`, strings.Join(tasks(), ", "))
	}
	w.close()
	repository, revision, reason := f.base()
	if repository != "" {
		w.comment(reason)
		w.open(`base "language"`)
		w.line("repository = %s", quote(repository))
		w.line("revision   = %s", quote(revision))
		w.close()
	}
	for i, weights := range f.weights {
		f.writeWeights(w, weights, f.label(i), repository != "")
	}
	f.writeFiles(w)
	f.writeServing(w)
	f.writeProvenance(w)
	return w.bytes()
}

// tasks are the shipped profiles of tasks that somebody else grades.
func tasks() []string {
	return slices.DeleteFunc(profiles.Names(), func(name string) bool { return name == "practice" })
}

// label names a weights block: after its folder where there are several.
func (f *folder) label(i int) string {
	if len(f.weights) == 1 {
		return "language"
	}
	label := bundleName(path.Base(f.weights[i].path))
	for j := range i {
		if bundleName(path.Base(f.weights[j].path)) == label {
			return fmt.Sprintf("%s-%d", label, i+1)
		}
	}
	return label
}

func (f *folder) writeWeights(w *hclWriter, weights weightFolder, label string, based bool) {
	what := fmt.Sprintf("%d safetensors %s", weights.shards, plural(weights.shards, "file", "files"))
	if weights.index {
		what += plural(weights.shards, " and its index", " and their index")
	}
	if len(weights.architectures) > 0 {
		what += "; config.json: " + strings.Join(weights.architectures, ", ")
	}
	w.comment(what)
	if f.serves() && len(f.weights) == 1 && weights.path != "weights" {
		w.comment("in the bundle these lie in weights/: that is where serve.sh has to look for them")
	}
	w.open("weights %s", quote(label))
	if based && label == "language" {
		w.line(`base = "language"`)
	}
	w.line("from = %s", quote(weights.path))
	switch {
	case weights.quantization:
		w.line("manifest = %s # how each tensor is stored; stands in that folder", quote(manifest.QuantizationPath))
	case f.quantization && len(f.weights) == 1:
		w.line("manifest = %s # how each tensor is stored; stands beside this file", quote(manifest.QuantizationPath))
	}
	w.close()
}

func (f *folder) writeFiles(w *hclWriter) {
	for _, name := range f.programs {
		w.comment("programs, or files that serve.sh names")
		w.open("files %s", quote(name))
		w.line("from = %s", quote(name))
		w.line(`exclude = ["**/__pycache__/**"]`)
		w.close()
	}
	if f.wheels > 0 {
		w.comment(fmt.Sprintf("%d vendored %s", f.wheels, plural(f.wheels, "wheel, as it is", "wheels, as they are")))
		w.open(`files "wheels"`)
		w.line(`from = "wheels"`)
		w.line(`include = ["*.whl"]`)
		w.close()
	}
	if len(f.rootFiles) > 0 {
		quoted := make([]string, len(f.rootFiles))
		for i, name := range f.rootFiles {
			quoted[i] = quote(name)
		}
		w.comment("single files that stand beside this one")
		w.open(`files "."`)
		w.line(`from = "."`)
		w.line("include = [%s]", strings.Join(quoted, ", "))
		w.close()
	}
}

// writeServing settles how the bundle answers. A folder with a serve.sh brings
// its own server.
func (f *folder) writeServing(w *hclWriter) {
	switch why := f.notNative(); {
	case f.serves():
	case why != "":
		w.comment("no serve.sh here, and " + why + ".")
		w.comment("Write one that starts a server of your own on port 8000, and run slipway init again.")
	default:
		w.comment("no serve.sh here: the server that is bundled; \"cuda\" never falls back to the CPU")
		w.open(`runtime "native"`)
		device := "cpu"
		if f.isPinned() {
			device = "cuda"
		}
		w.line("device = %s", quote(device))
		w.close()
	}
	w.open("serve")
	w.line("port = 8000 # where it listens")
	w.line(`thinking = "off" # answers without a thought first`)
	w.close()
}

func (f *folder) writeProvenance(w *hclWriter) {
	if !f.data && !f.logs {
		return
	}
	w.comment("how the weights were made")
	w.open("provenance")
	if f.data {
		w.line(`data = "DATA.md"`)
	}
	if f.logs {
		w.line(`logs = ["provenance/*.log"]`)
	}
	w.close()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// hclWriter writes blocks one level deep. Equals signs and comments of a
// block's lines are aligned where they are neighbours.
type hclWriter struct {
	out       bytes.Buffer
	lines     []string // of the open block
	commented bool     // the comment above belongs to the next block
}

func (w *hclWriter) bytes() []byte { return w.out.Bytes() }

func (w *hclWriter) comment(text string) {
	if w.out.Len() > 0 && !w.commented {
		w.out.WriteByte('\n')
	}
	// A comment ends with its line.
	fmt.Fprintf(&w.out, "# %s\n", printable(text))
	w.commented = true
}

func (w *hclWriter) open(format string, args ...any) {
	if !w.commented {
		w.out.WriteByte('\n')
	}
	w.commented = false
	fmt.Fprintf(&w.out, format+" {\n", args...)
	w.lines = []string{}
}

func (w *hclWriter) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.lines == nil {
		w.out.WriteString(text + "\n")
		w.commented = false
		return
	}
	w.lines = append(w.lines, text)
}

func (w *hclWriter) close() {
	width := 0
	for _, line := range w.lines {
		name, _, _ := strings.Cut(line, " ")
		width = max(width, len(name))
	}
	for _, line := range w.lines {
		name, rest, _ := strings.Cut(line, " ")
		fmt.Fprintf(&w.out, "  %-*s %s\n", width, name, strings.TrimLeft(rest, " "))
	}
	w.out.WriteString("}\n")
	w.lines = nil
}

// quote writes an HCL string.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", "$${", "%{", "%%{", "\n", `\n`, "\t", `\t`).Replace(text) + `"`
}
