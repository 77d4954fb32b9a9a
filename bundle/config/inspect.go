package config

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/manifest"
	"slipway/verify/profiles"
)

// maxFolderDepth is how far below a folder weights are looked for, and
// maxConfigBytes what a config.json may have.
const (
	maxFolderDepth  = 3
	maxConfigBytes  = 4 << 20
	maxQuantization = 64 << 20
)

// folder is what Init saw.
type folder struct {
	entries      []string // names at the root, sorted
	weights      []weightFolder
	quantization bool     // a quantization manifest stands at the root
	programs     []string // folders at the root that hold what serves
	wheels       int      // *.whl files in wheels/
	data, logs   bool
	rootFiles    []string // that no block but files "." takes
	left         []string // names at the root that no block takes, folders with a slash

	baseModel, baseRevision string   // as the quantization manifest says
	links                   []string // shards that are symbolic links
	pinned                  pinned   // zero: no shipped profile pins such a model
}

// weightFolder is a folder with safetensors files directly in it.
type weightFolder struct {
	path          string // slash, relative; "." is the root
	shards        int
	index         bool
	quantization  bool
	architectures []string
	hidden        int64 // hidden_size of config.json
	layers        int64 // num_hidden_layers
}

func inspect(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tree := root.FS()
	f := &folder{}
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		f.entries = append(f.entries, entry.Name())
	}
	f.quantization = isRegular(tree, manifest.QuantizationPath)
	f.data = isRegular(tree, "DATA.md")
	f.wheels = holds(tree, "wheels/*.whl")
	f.logs = holds(tree, "provenance/*.log") > 0
	if err := f.findWeights(tree); err != nil {
		return nil, err
	}
	if err := f.sort(tree, entries); err != nil {
		return nil, err
	}
	if err := f.findPinned(); err != nil {
		return nil, err
	}
	return f, f.readQuantization(tree)
}

// findWeights lists the folders that hold safetensors files, hidden ones left
// out, and reads the config.json in them (or at the root).
func (f *folder) findWeights(tree fs.FS) error {
	shards := map[string]int{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || strings.Count(name, "/") >= maxFolderDepth) {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case !strings.HasSuffix(name, ".safetensors"):
		case entry.Type().IsRegular():
			shards[path.Dir(name)]++
		case entry.Type()&fs.ModeSymlink != 0:
			f.links = append(f.links, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for folder, count := range shards {
		w := weightFolder{
			path: folder, shards: count,
			index:        holds(tree, path.Join(escapeGlob(folder), "*.safetensors.index.json")) > 0,
			quantization: folder != "." && isRegular(tree, path.Join(folder, manifest.QuantizationPath)) || folder == "." && f.quantization,
		}
		if err := w.readConfig(tree); err != nil {
			return err
		}
		f.weights = append(f.weights, w)
	}
	slices.SortFunc(f.weights, func(a, b weightFolder) int { return strings.Compare(a.path, b.path) })
	return nil
}

// readConfig reads the few fields of config.json that tell a model apart.
// Multi-modal models keep their text model's in text_config.
func (w *weightFolder) readConfig(tree fs.FS) error {
	name := path.Join(w.path, "config.json")
	if !isRegular(tree, name) {
		name = "config.json"
	}
	if !isRegular(tree, name) {
		return nil
	}
	data, err := readBounded(tree, name, maxConfigBytes)
	if err != nil {
		return err
	}
	fields, err := exactFields(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	text := fields
	if nested, ok := fields["text_config"]; ok {
		if text, err = exactFields(nested); err != nil {
			return fmt.Errorf("read %s: text_config: %w", name, err)
		}
	}
	for _, field := range []struct {
		from   map[string]json.RawMessage
		key    string
		target any
	}{{fields, "architectures", &w.architectures}, {text, "hidden_size", &w.hidden}, {text, "num_hidden_layers", &w.layers}} {
		if raw, ok := field.from[field.key]; ok {
			if err := json.Unmarshal(raw, field.target); err != nil {
				return fmt.Errorf("read %s: %s: %w", name, field.key, err)
			}
		}
	}
	return nil
}

// exactFields keeps keys as they are written; a struct would match them in any
// case.
func exactFields(data []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	return fields, err
}

// readQuantization takes the base from the first quantization manifest.
func (f *folder) readQuantization(tree fs.FS) error {
	name := ""
	for _, w := range f.weights {
		if w.quantization && name == "" {
			name = path.Join(w.path, manifest.QuantizationPath)
		}
	}
	if name == "" && f.quantization {
		name = manifest.QuantizationPath
	}
	if name == "" {
		return nil
	}
	data, err := readBounded(tree, name, maxQuantization)
	if err != nil {
		return err
	}
	q, err := manifest.DecodeQuantization(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if q.BaseModel != nil && q.BaseRevision != nil {
		f.baseModel, f.baseRevision = *q.BaseModel, *q.BaseRevision
	}
	return nil
}

// base returns the starting model and why it is believed to be the one; an
// empty repository where nothing says it in full.
func (f *folder) base() (repository, revision, reason string) {
	switch {
	case repositoryPattern.MatchString(f.baseModel) && revisionPattern.MatchString(f.baseRevision):
		return f.baseModel, f.baseRevision, "the starting model, as the quantization manifest names it"
	case f.isPinned():
		return f.pinned.base.Repository, f.pinned.base.Revision, "the starting model that the task pins; remove the block if yours is another"
	}
	return "", "", ""
}

func (f *folder) isPinned() bool { return f.pinned.profile != "" }

// pinned is a shipped profile and the base of it that a model has the
// dimensions of.
type pinned struct {
	profile string
	base    profiles.Base
}

// findPinned looks for a shipped profile that pins a base of the same family,
// width and depth as one of the folder's models.
func (f *folder) findPinned() error {
	for _, name := range profiles.Names() {
		profile, _, err := LoadProfile(name)
		if err != nil {
			return err
		}
		for _, base := range profile.Bases {
			if base.Contract != nil && slices.ContainsFunc(f.weights, func(w weightFolder) bool { return w.fits(*base.Contract) }) {
				f.pinned = pinned{name, base}
				return nil
			}
		}
	}
	return nil
}

var layerPattern = regexp.MustCompile(`^(?:model\.|model\.language_model\.)layers\.([0-9]+)\.`)

// fits holds a config.json's family, width and depth against a contract: the
// embedding's second dimension and the layers that its names count. Only the
// Qwen3.5 family has linear-attention tensors, and Maple alone calls its embedding
// model.word_embeddings.
func (w weightFolder) fits(contract manifest.Contract) bool {
	var hidden, layers int64
	linear := false
	for name, tensor := range contract.Tensors {
		if tensor.Role == manifest.RoleEmbedding && len(tensor.Shape) == 2 {
			hidden = tensor.Shape[1]
		}
		if match := layerPattern.FindStringSubmatch(name); match != nil {
			n, err := strconv.ParseInt(match[1], 10, 64)
			if err == nil {
				layers = max(layers, n+1)
			}
			linear = linear || strings.Contains(name, ".linear_attn.")
		}
	}
	family := func(prefix string) bool {
		return slices.ContainsFunc(w.architectures, func(a string) bool { return strings.HasPrefix(a, prefix) })
	}
	_, maple := contract.Tensors["model.word_embeddings.weight"]
	return hidden > 0 && w.hidden == hidden && w.layers == layers && family("Qwen3_5") == linear && family("Maple") == maple
}

// seen lists the first entries of the folder.
func (f *folder) seen() string {
	const most = 8
	switch {
	case len(f.entries) == 0:
		return "nothing, it is empty"
	case len(f.entries) > most:
		return fmt.Sprintf("%s and %d more", printable(strings.Join(f.entries[:most], ", ")), len(f.entries)-most)
	}
	return printable(strings.Join(f.entries, ", "))
}

func readBounded(tree fs.FS, name string, limit int64) ([]byte, error) {
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("read %s: larger than %d bytes", name, limit)
	}
	return data, err
}

func isRegular(tree fs.FS, name string) bool {
	info, err := fs.Lstat(tree, name)
	return err == nil && info.Mode().IsRegular()
}

// holds counts what matches a pattern of the program's own.
func holds(tree fs.FS, pattern string) int {
	names, err := fs.Glob(tree, pattern)
	if err != nil {
		panic(err) // a pattern of ours always parses
	}
	return len(names)
}

// escapeGlob makes a folder's name match itself.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
