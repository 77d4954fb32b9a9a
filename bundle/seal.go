package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Options tune the execution of a plan; the zero value works. Nothing in them
// changes a digest.
type Options struct {
	Workers  int                  // files at a time; 0: one a core
	Cache    *content.DigestCache // nil: every byte is read
	Progress func(bytes int64)    // called with bytes handled since the last call; may be nil

	Phase func(what string, bytes int64) // called before Inspect reads weights; may be nil
}

// Sealed is a plan whose bytes have been read: every digest is known. It is a
// content.Reader over the source files themselves, so that a push needs no
// copy; a source that changed since is an error at the latest when its last
// byte is read.
type Sealed struct {
	Descriptor manifest.Descriptor // of the manifest
	Artifact   manifest.Artifact
	SetDigest  manifest.Digest
	Files      []manifest.File // sorted by path, inventory.json included

	plan    *Plan
	planned map[string]PlannedFile     // the plan's files, by path
	roots   map[string]*os.Root        // folders of sources: "" is that of bundle.hcl
	bytes   map[string][]byte          // generated files, by path
	blobs   map[manifest.Digest]opener // of every blob of the artifact
}

type opener func(ctx context.Context) (io.ReadCloser, error)

// intake yields the digest of one source file, and may keep its bytes.
type intake func(ctx context.Context, file PlannedFile) (manifest.Digest, error)

// Seal reads every source of the plan once, or asks the cache. Close the
// result.
func Seal(ctx context.Context, plan *Plan, options Options) (*Sealed, error) {
	s, err := newSealed(plan)
	if err != nil {
		return nil, err
	}
	err = s.seal(ctx, options, func(ctx context.Context, file PlannedFile) (manifest.Digest, error) {
		return s.digest(ctx, file, nil, options)
	})
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func newSealed(plan *Plan) (*Sealed, error) {
	if plan.NeedsSelftest() {
		return nil, errNoSelftest
	}
	s := &Sealed{plan: plan, planned: map[string]PlannedFile{}, roots: map[string]*os.Root{}, bytes: map[string][]byte{}, blobs: map[manifest.Digest]opener{}}
	folders := map[string]string{"": plan.folder}
	for _, f := range plan.Files {
		s.planned[f.Path] = f
		if f.folder != "" {
			folders[f.folder] = f.folder
		}
	}
	for key, folder := range folders {
		root, err := os.OpenRoot(folder)
		if err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("open folder %s: %w", folder, manifest.Cause(err))
		}
		s.roots[key] = root
	}
	return s, nil
}

// Close lets go of the source folders.
func (s *Sealed) Close() error {
	var faults []error
	for _, root := range s.roots {
		faults = append(faults, root.Close())
	}
	return errors.Join(faults...)
}

// digest reads a source once into target, which may be nil; then the cache may
// answer instead.
func (s *Sealed) digest(ctx context.Context, file PlannedFile, target *os.File, options Options) (manifest.Digest, error) {
	if file.shard != nil {
		return s.make(ctx, file, target, options)
	}
	known := func(manifest.Digest) (bool, error) { return target == nil, nil }
	return s.remembered(file, options, known, func(root *os.Root) (manifest.Digest, error) {
		return content.Intake(ctx, root, file.Source, file.Size, target, options.Progress)
	})
}

// remembered lets take read a source, and the cache remember what it found.
// Where the cache knows the source already and enough says that its digest is
// all that is wanted, nothing is read.
func (s *Sealed) remembered(file PlannedFile, options Options, enough func(manifest.Digest) (bool, error), take func(*os.Root) (manifest.Digest, error)) (manifest.Digest, error) {
	root, began := s.roots[file.folder], options.Cache.Now()
	before, err := root.Lstat(file.Source)
	if err != nil {
		return manifest.Digest{}, fmt.Errorf("look at %s: %w", file.Source, manifest.Cause(err))
	}
	if known, cached := options.Cache.Lookup(before); cached && before.Size() == file.Size {
		if done, err := enough(known); done || err != nil {
			options.report(file.Size)
			return known, err
		}
	}
	digest, err := take(root)
	if err != nil {
		return digest, err
	}
	if after, err := root.Lstat(file.Source); err == nil {
		options.Cache.Add(before, after, began, digest)
	}
	return digest, nil
}

func (o Options) report(bytes int64) {
	if o.Progress != nil {
		o.Progress(bytes)
	}
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// seal takes every file in, then writes inventory, config and manifest.
func (s *Sealed) seal(ctx context.Context, options Options, take intake) error {
	s.Files = make([]manifest.File, len(s.plan.Files), len(s.plan.Files)+1)
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(options.workers())
	for _, i := range s.plan.largestFirst() {
		file := s.plan.Files[i]
		s.Files[i] = manifest.File{Path: file.Path, Mode: file.Mode, Size: file.Size}
		if file.Source == "" && file.shard == nil {
			s.bytes[file.Path] = file.content
			s.Files[i].Digest = manifest.DigestBytes(file.content)
			continue
		}
		group.Go(func() error {
			digest, err := take(inner, file)
			s.Files[i].Digest = digest
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.addInventory(); err != nil {
		return err
	}
	return s.describe(ctx)
}

// largestFirst orders the files so that all cores end at about the same time.
func (p *Plan) largestFirst() []int {
	order := make([]int, len(p.Files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Files[b].Size, p.Files[a].Size) })
	return order
}

func (s *Sealed) addInventory() error {
	data, err := manifest.Inventory{Files: s.Files}.Encode()
	if err != nil {
		return fmt.Errorf("write %s: %w", manifest.InventoryPath, err)
	}
	s.bytes[manifest.InventoryPath] = data
	s.Files = append(s.Files, manifest.File{
		Path: manifest.InventoryPath, Mode: manifest.ModeFile, Size: int64(len(data)), Digest: manifest.DigestBytes(data),
	})
	manifest.SortFiles(s.Files)
	s.SetDigest = manifest.SetDigest(s.Files)
	return nil
}

// describe makes layers, config and manifest.
func (s *Sealed) describe(ctx context.Context) error {
	s.Artifact = manifest.Artifact{Annotations: map[string]string{manifest.AnnotationSetDigest: s.SetDigest.String()}}
	config := manifest.ModelConfig{ModelFS: manifest.ModelFS{Type: "layers"}}
	for _, layer := range s.plan.Layers {
		descriptor, err := s.layer(ctx, layer)
		if err != nil {
			return err
		}
		s.Artifact.Layers = append(s.Artifact.Layers, descriptor)
		config.ModelFS.DiffIDs = append(config.ModelFS.DiffIDs, descriptor.Digest)
	}
	model := s.plan.Model
	config.Descriptor = manifest.ModelDescriptor{Name: s.plan.Name, Revision: model.Revision}
	config.Config = manifest.ModelFacts{
		Architecture: model.Architecture, Format: "safetensors", ParamSize: manifest.ParameterSize(model.Parameters),
		Precision: model.Precision, Quantization: model.Quantization,
	}
	data, err := config.Encode()
	if err != nil {
		return err
	}
	s.Artifact.Config = manifest.DescribeBytes(manifest.MediaTypeConfig, data)
	s.blobs[s.Artifact.Config.Digest] = openBytes(data)
	if data, err = s.Artifact.Encode(); err != nil {
		return err
	}
	s.Descriptor = manifest.DescribeBytes(manifest.MediaTypeManifest, data)
	s.blobs[s.Descriptor.Digest] = openBytes(data)
	return nil
}

// layer describes one layer; a tar layer is written once, into a hash.
func (s *Sealed) layer(ctx context.Context, layer Layer) (manifest.Descriptor, error) {
	files := s.filesOf(layer)
	if layer.Encoding == manifest.EncodingRaw {
		descriptor := manifest.RawLayer(layer.Kind, files[0])
		s.blobs[descriptor.Digest] = func(context.Context) (io.ReadCloser, error) { return s.open(files[0]) }
		return descriptor, nil
	}
	h := manifest.NewHash()
	counted := &countingWriter{ctx: ctx, w: h}
	if err := content.WriteTar(counted, files, s.openChecked); err != nil {
		return manifest.Descriptor{}, err
	}
	descriptor := manifest.TarLayer(layer.Kind, manifest.FinishHash(h), counted.n)
	s.blobs[descriptor.Digest] = func(context.Context) (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(content.WriteTar(writer, files, s.openChecked)) }()
		return reader, nil
	}
	return descriptor, nil
}

func (s *Sealed) filesOf(layer Layer) []manifest.File {
	byPath := map[string]manifest.File{}
	for _, f := range s.Files {
		byPath[f.Path] = f
	}
	files := make([]manifest.File, 0, len(layer.Paths))
	for _, name := range layer.Paths {
		files = append(files, byPath[name])
	}
	return files
}

// countingWriter counts bytes and stops when ctx does.
type countingWriter struct {
	ctx context.Context
	w   io.Writer
	n   int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func openBytes(data []byte) opener {
	return func(context.Context) (io.ReadCloser, error) { return bytesReader(data), nil }
}

// open reads a file of the bundle, unverified.
func (s *Sealed) open(file manifest.File) (io.ReadCloser, error) {
	if data, generated := s.bytes[file.Path]; generated {
		return bytesReader(data), nil
	}
	f, known := s.planned[file.Path]
	if !known {
		return nil, fmt.Errorf("open %s: %w", file.Path, content.ErrNotFound)
	}
	if f.shard != nil {
		return f.shard.Open(context.Background(), s.roots[f.folder]), nil
	}
	return content.OpenRegular(s.roots[f.folder], f.Source, file.Size)
}

// openChecked reads a file of the bundle and ends in an error that names it if
// it is no longer the one that was hashed.
func (s *Sealed) openChecked(file manifest.File) (io.ReadCloser, error) {
	source, err := s.open(file)
	if err != nil {
		return nil, changedSince(file.Path, err)
	}
	checked := content.NewCheckedReader(source, manifest.Descriptor{Digest: file.Digest, Size: file.Size})
	return checkedFile{checked, source, file.Path}, nil
}

type checkedFile struct {
	io.Reader
	io.Closer
	name string
}

func (c checkedFile) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	return n, changedSince(c.name, err)
}

const buildAgain = "build again"

// changedSince says what a digest that no longer fits means to the user.
func changedSince(name string, err error) error {
	var integrity *content.IntegrityError
	if manifest.Hint(err) != buildAgain && (errors.As(err, &integrity) || errors.Is(err, content.ErrChanged)) {
		return manifest.WithHint(fmt.Errorf("%s changed since it was hashed: %w", name, err), buildAgain)
	}
	return err
}
