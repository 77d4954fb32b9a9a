package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Checkpoint is a folder of weights as its names, headers and documents tell
// it: no weight has been read.
type Checkpoint struct {
	Folder  string          // relative to the root that it was read from
	Sources []*Source       // the shards, by name
	Others  []manifest.File // what lies beside them, paths relative to the root
	Folders []string        // folders in it, which are not entered

	Index        *safetensors.Index     // nil where there is none
	Quantization *manifest.Quantization // nil where there is none
	Warnings     []string               // of shards and index

	config    []byte            // config.json, nil where there is none
	documents map[string][]byte // index, quantization manifest and pack.json, by name
}

// Source is a shard to read from.
type Source struct {
	Path   string // relative to the root
	Header *safetensors.Header

	raw   []byte        // length prefix and JSON of the header
	stamp content.Stamp // of the file when the header was read
}

// Name is the file's name without its folder.
func (s *Source) Name() string { return path.Base(s.Path) }

// maxDocument bounds the documents that are read, in bytes.
const maxDocument = 64 << 20

// ReadCheckpoint reads the names, headers and documents of a folder of root,
// and holds the shards against their index. Links, damaged headers and names
// that two shards share are errors that name the file.
func ReadCheckpoint(ctx context.Context, root *os.Root, folder string) (*Checkpoint, error) {
	c := &Checkpoint{Folder: folder, documents: map[string][]byte{}}
	enter := func(name string) bool { c.Folders = append(c.Folders, name); return false }
	files, faults, err := content.Scan(ctx, root, folder, enter)
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		return nil, manifest.WithHint(fmt.Errorf("%s %s", fault.Path, fault.Detail), fault.Hint)
	}
	for _, file := range files {
		if err := c.take(root, file); err != nil {
			return nil, err
		}
	}
	if len(c.Sources) == 0 {
		return nil, fmt.Errorf("no *.safetensors file in %s", folder)
	}
	return c, c.checkShards()
}

func (c *Checkpoint) take(root *os.Root, file manifest.File) (err error) {
	name := path.Base(file.Path)
	switch {
	case strings.HasSuffix(name, shardEnding):
		source, err := readSource(root, file)
		c.Sources = append(c.Sources, source)
		return err
	case name == safetensors.IndexName, name == manifest.QuantizationPath, name == RecordPath:
		c.documents[name], err = readDocument(root, file.Path)
	case name == "config.json":
		c.config, err = readDocument(root, file.Path)
		c.Others = append(c.Others, file)
	default:
		c.Others = append(c.Others, file)
	}
	if err != nil {
		return err
	}
	switch name {
	case safetensors.IndexName:
		c.Index, err = safetensors.ReadIndex(c.documents[name])
	case manifest.QuantizationPath:
		err = c.SetQuantization(c.documents[name])
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file.Path, err)
	}
	return nil
}

// SetQuantization takes a quantization manifest's bytes in place of those of
// the folder; nil for none.
func (c *Checkpoint) SetQuantization(data []byte) error {
	c.Quantization = nil
	if data == nil {
		return nil
	}
	q, err := manifest.DecodeQuantization(data)
	if err == nil {
		c.Quantization = &q
	}
	return err
}

const shardEnding = ".safetensors"

// steadyFile is what content.OpenRegular opens.
type steadyFile interface {
	io.ReadCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

func openSteady(root *os.Root, name string, size int64) (steadyFile, content.Stamp, error) {
	opened, err := content.OpenRegular(root, name, size)
	if err != nil {
		return nil, content.Stamp{}, err
	}
	file, ok := opened.(steadyFile)
	if !ok {
		return nil, content.Stamp{}, errors.Join(fmt.Errorf("open %s: no random access", name), opened.Close())
	}
	info, err := file.Stat()
	if err != nil {
		return nil, content.Stamp{}, errors.Join(fmt.Errorf("open %s: %w", name, manifest.Cause(err)), opened.Close())
	}
	return file, content.StampOf(info), nil
}

func readSource(root *os.Root, file manifest.File) (*Source, error) {
	opened, stamp, err := openSteady(root, file.Path, file.Size)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	header, raw, err := safetensors.ReadHeaderRaw(opened, file.Size)
	if err != nil {
		return nil, manifest.WithHint(fmt.Errorf("read header of %s: %w", file.Path, err), "the file is damaged or was not copied whole; get it again")
	}
	return &Source{file.Path, header, raw, stamp}, nil
}

func readDocument(root *os.Root, name string) ([]byte, error) {
	opened, err := content.OpenRegular(root, name, -1)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("read %s: larger than %d bytes", name, maxDocument)
	}
	return data, nil
}

// checkShards holds the shards against the index and against each other.
func (c *Checkpoint) checkShards() error {
	headers := map[string]*safetensors.Header{}
	for _, s := range c.Sources {
		headers[s.Name()] = s.Header
	}
	problems := safetensors.CheckShards(headers)
	if c.Index != nil {
		problems = c.Index.Check(headers)
	}
	var faults []error
	for _, problem := range problems {
		if problem.Warning {
			c.Warnings = append(c.Warnings, problem.String())
		} else {
			faults = append(faults, errors.New(problem.String()))
		}
	}
	return errors.Join(faults...)
}

// held is a tensor and the shard that holds it.
type held struct {
	safetensors.Tensor
	source *Source
}

// tensors lists all tensors in byte order of their names.
func (c *Checkpoint) tensors() []held {
	var all []held
	for _, s := range c.Sources {
		for _, t := range s.Header.Tensors {
			all = append(all, held{t, s})
		}
	}
	slices.SortFunc(all, func(a, b held) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// place is where the tensor's bytes lie.
func (h held) place() place {
	return place{h.source, h.source.Header.DataStart + h.Begin, h.Bytes()}
}

// tied reports whether the head is the embedding, as the configuration says: the
// value at the top before that of text_config, false where neither says.
func (c *Checkpoint) tied() (bool, error) {
	if c.config == nil {
		return false, nil
	}
	var config struct {
		Tied *bool `json:"tie_word_embeddings"`
		Text struct {
			Tied *bool `json:"tie_word_embeddings"`
		} `json:"text_config"`
	}
	if err := manifest.DecodeLoose(c.config, &config); err != nil {
		return false, fmt.Errorf("read %s: %w", path.Join(c.Folder, "config.json"), err)
	}
	switch {
	case config.Tied != nil:
		return *config.Tied, nil
	case config.Text.Tied != nil:
		return *config.Text.Tied, nil
	}
	return false, nil
}
