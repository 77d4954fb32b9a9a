package bundle

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// maxDocument bounds the JSON documents that a plan reads, in bytes.
const maxDocument = 64 << 20

// Inventory is what Inspect found: the input of MakePlan beside the wishes.
// All paths are relative to the folder of bundle.hcl.
type Inventory struct {
	Folder    string                         // of bundle.hcl
	Weights   [][]manifest.File              // per weights block: the regular files of its folder
	Folders   [][]string                     // per weights block: the folders in it, which are not entered
	Files     [][]manifest.File              // per files block: the files it selects
	Data      []manifest.File                // provenance.data, if given
	Logs      []manifest.File                // what provenance.logs selects
	Headers   map[string]*safetensors.Header // per shard
	Documents map[string][]byte              // configurations, indexes, manifests, contracts
	Packings  []*Packing                     // per weights block: what changes its shards; nil where they stay
	Runtime   *Runtime                       // what a runtime block puts into the bundle; set by the caller
}

// Runtime is a server that was built elsewhere, and the source it was built
// from.
type Runtime struct {
	Path      string // of the program on disk, absolute
	Digest    manifest.Digest
	Size      int64 // bytes
	SourceTar []byte
	Selftest  []byte // selftest.json for the model; nil: not made yet, see Plan.NeedsSelftest
}

// Inspect lists what a bundle.hcl names and reads the small documents and the
// shard headers that a plan needs. Links, unreadable files, shards that are
// truncated or named but absent are errors that name the file. Weights are read
// only where a block wants them changed.
func Inspect(ctx context.Context, wanted *config.Bundle, options Options) (*Inventory, error) {
	root, err := os.OpenRoot(wanted.Folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of bundle.hcl: %w", err)
	}
	defer root.Close()
	in := &inspection{ctx: ctx, root: root, options: options, Inventory: Inventory{
		Folder: wanted.Folder, Headers: map[string]*safetensors.Header{}, Documents: map[string][]byte{},
	}}
	for _, w := range wanted.Weights {
		if err := in.weights(w); err != nil {
			return nil, fmt.Errorf("%s: weights %q: %w", w.From.At, w.Label, err)
		}
	}
	for _, f := range wanted.Files {
		if err := in.files(f); err != nil {
			return nil, fmt.Errorf("%s: files %q: %w", f.From.At, f.Target, err)
		}
	}
	for _, b := range wanted.Bases {
		if b.Contract.Value != "" {
			if err := in.document(b.Contract.Value); err != nil {
				return nil, fmt.Errorf("base %q: %w", b.Label, err)
			}
		}
	}
	if err := in.provenance(wanted.Provenance); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	return &in.Inventory, nil
}

type inspection struct {
	Inventory
	ctx     context.Context
	root    *os.Root
	options Options
}

// weights lists the folder itself, not what is below it: a checkpoint is flat.
func (in *inspection) weights(w config.Weights) error {
	from := w.From.Value
	var folders []string
	enter := func(name string) bool {
		if !strings.HasPrefix(path.Base(name), ".") {
			folders = append(folders, name)
		}
		return false
	}
	files, err := in.list(from, enter, func(string) bool { return true })
	if err != nil {
		return err
	}
	in.Weights = append(in.Weights, files)
	in.Folders = append(in.Folders, folders)
	shards := 0
	for _, file := range files {
		switch {
		case isShard(file.Path):
			shards++
			err = in.header(file)
		case strings.HasSuffix(file.Path, safetensors.IndexName) || path.Base(file.Path) == "config.json":
			err = in.document(file.Path)
		}
		if err != nil {
			return err
		}
	}
	if shards == 0 {
		return manifest.WithHint(fmt.Errorf("no *.safetensors file in %s", from), "point `from` at the folder that holds the shards")
	}
	if w.Manifest.Value != "" {
		if err := in.document(w.Manifest.Value); err != nil {
			return err
		}
	}
	packing, err := in.packing(w)
	in.Packings = append(in.Packings, packing)
	return err
}

func (in *inspection) files(f config.Files) error {
	from := f.From.Value
	if info, err := in.root.Lstat(from); err == nil && !info.IsDir() {
		single, err := in.file(from)
		in.Files = append(in.Files, []manifest.File{single})
		return err
	}
	chosen, err := in.list(from, nil, func(name string) bool { return f.Selects(relative(from, name)) })
	if err != nil {
		return err
	}
	var selected []manifest.File
	for _, file := range chosen {
		if f.Selects(relative(from, file.Path)) {
			selected = append(selected, file)
		}
	}
	if len(selected) == 0 {
		return manifest.WithHint(fmt.Errorf("no file of %s is selected", from), "check include and exclude, or remove the block")
	}
	in.Files = append(in.Files, selected)
	return nil
}

func (in *inspection) provenance(p config.Provenance) error {
	if p.Data.Value != "" {
		file, err := in.file(p.Data.Value)
		if err != nil {
			return err
		}
		in.Data = []manifest.File{file}
	}
	for _, pattern := range p.Logs.Value {
		folder := "."
		if i := strings.IndexAny(pattern, "*?["); i >= 0 {
			folder = path.Dir(pattern[:i] + "x")
		} else {
			folder = path.Dir(pattern)
		}
		matches := func(name string) bool { return config.MatchGlob(pattern, name) }
		files, err := in.list(folder, nil, matches)
		if err != nil {
			return err
		}
		found := false
		for _, file := range files {
			if matches(file.Path) {
				in.Logs, found = append(in.Logs, file), true
			}
		}
		if !found {
			return fmt.Errorf("no file matches %q", pattern)
		}
	}
	return nil
}

// list scans a folder; a fault at a name that matters is an error.
func (in *inspection) list(folder string, enter, matters func(string) bool) ([]manifest.File, error) {
	if err := in.noLink(folder); err != nil {
		return nil, err
	}
	info, err := in.root.Lstat(folder)
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", folder, manifest.Cause(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open folder %s: it is a file", folder)
	}
	files, faults, err := content.Scan(in.ctx, in.root, folder, enter)
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		if matters(fault.Path) || fault.Path == folder {
			return nil, manifest.WithHint(fmt.Errorf("%s %s", fault.Path, fault.Detail), linkHint(fault))
		}
	}
	return files, nil
}

const noLinksHint = "a bundle holds no links; copy what it points to, with `cp -rL` for a whole folder"

func linkHint(fault content.Fault) string {
	if strings.Contains(fault.Detail, "symbolic link") {
		return noLinksHint
	}
	return fault.Hint
}

// noLink refuses a path that is a link or leads through one.
func (in *inspection) noLink(name string) error {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := in.root.Lstat(name[:i])
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return manifest.WithHint(fmt.Errorf("%s is a symbolic link", name[:i]), noLinksHint)
		}
	}
	return nil
}

// file describes one regular file.
func (in *inspection) file(name string) (manifest.File, error) {
	if err := in.noLink(name); err != nil {
		return manifest.File{}, err
	}
	opened, err := content.OpenRegular(in.root, name, -1)
	if err != nil {
		return manifest.File{}, err
	}
	defer opened.Close()
	info, err := in.root.Lstat(name)
	if err != nil {
		return manifest.File{}, fmt.Errorf("look at %s: %w", name, manifest.Cause(err))
	}
	return manifest.File{Path: name, Mode: manifest.NormalMode(uint32(info.Mode())), Size: info.Size()}, nil
}

func (in *inspection) header(file manifest.File) error {
	opened, err := content.OpenRegular(in.root, file.Path, file.Size)
	if err != nil {
		return err
	}
	defer opened.Close()
	header, err := safetensors.ReadHeader(opened, file.Size)
	if err != nil {
		return manifest.WithHint(fmt.Errorf("read header of %s: %w", file.Path, err), "the file is damaged or was not copied whole; get it again")
	}
	in.Headers[file.Path] = header
	return nil
}

// document reads a JSON document whole.
func (in *inspection) document(name string) error {
	if _, known := in.Documents[name]; known {
		return nil
	}
	if err := in.noLink(name); err != nil {
		return err
	}
	opened, err := content.OpenRegular(in.root, name, -1)
	if err != nil {
		return err
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, maxDocument+1))
	if err != nil {
		return err
	}
	if len(data) > maxDocument {
		return fmt.Errorf("read %s: larger than %d bytes", name, maxDocument)
	}
	in.Documents[name] = data
	return nil
}

// relative is name without the folder it was listed from.
func relative(folder, name string) string {
	if folder == "." {
		return name
	}
	return strings.TrimPrefix(name, path.Clean(folder)+"/")
}
