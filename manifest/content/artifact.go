package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"slipway/manifest"
)

// maxConfigBytes bounds the config blob that is read into memory.
const maxConfigBytes = 4 << 20

// OpenArtifact opens the bundle that name (a tag or digest) stands for in a
// store. Manifest, config and tar layers are read and verified now, the tar
// layers into temporary files that Close removes; raw layers are verified as
// they are read.
func OpenArtifact(ctx context.Context, store Reader, name string, origin Origin, shown string) (*Tree, error) {
	view, err := readView(ctx, store, name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", shown, err)
	}
	if origin == OriginReference {
		store = resumingStore{store}
	}
	tree := &Tree{Origin: origin, Name: shown, Artifact: view}
	var spools []*os.File
	tree.close = func() error {
		var faults []error
		for _, spool := range spools {
			faults = append(faults, spool.Close())
		}
		return errors.Join(faults...)
	}
	spoolOf := map[int]*os.File{}
	for i, layer := range view.Manifest.Layers {
		kind, encoding, err := manifest.ParseLayerMediaType(layer.MediaType)
		if err == nil && encoding == manifest.EncodingRaw {
			err = tree.addRaw(i, kind, layer)
		} else if err == nil {
			var spool *os.File
			if spool, err = spoolBlob(ctx, store, layer); err == nil {
				spools = append(spools, spool)
				spoolOf[i] = spool
				err = tree.addTar(i, kind, layer, spool)
			}
		}
		if err != nil {
			_ = tree.Close()
			return nil, fmt.Errorf("open %s: layer %s: %w", shown, layer.Digest, err)
		}
	}
	sort.SliceStable(tree.Files, func(i, j int) bool { return tree.Files[i].Path < tree.Files[j].Path })
	sort.SliceStable(tree.Faults, func(i, j int) bool { return tree.Faults[i].Path < tree.Faults[j].Path })
	tree.open = func(ctx context.Context, file TreeFile) (io.ReadCloser, error) {
		if spool, ok := spoolOf[file.Layer]; ok {
			return io.NopCloser(io.NewSectionReader(spool, file.offset, file.Size)), nil
		}
		return store.Open(ctx, view.Manifest.Layers[file.Layer], 0)
	}
	return tree, nil
}

func readView(ctx context.Context, store Reader, name string) (*ArtifactView, error) {
	descriptor, err := store.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := ReadBlob(ctx, store, descriptor, manifest.MaxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	view := &ArtifactView{Descriptor: descriptor}
	if view.Manifest, err = manifest.DecodeArtifact(data); err != nil {
		return nil, err
	}
	if view.ConfigRaw, err = ReadBlob(ctx, store, view.Manifest.Config, maxConfigBytes); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	if view.Config, err = manifest.DecodeModelConfig(view.ConfigRaw); err != nil {
		return nil, err
	}
	return view, nil
}

// ReadBlob reads a small blob of a store, whole and verified.
func ReadBlob(ctx context.Context, store Reader, blob manifest.Descriptor, limit int64) ([]byte, error) {
	if blob.Size > limit {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d that are read at once", blob.Digest, blob.Size, limit)
	}
	source, err := resumingStore{store}.Open(ctx, blob, 0)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	return ReadAll(source, blob, limit)
}

func (t *Tree) addRaw(index int, kind manifest.Kind, layer manifest.Descriptor) error {
	file, err := layer.RawFile()
	if err != nil {
		return err
	}
	t.Files = append(t.Files, TreeFile{File: file, Kind: kind, Layer: index})
	return nil
}

// addTar lists the members of a verified tar layer and digests them. The layer
// must be, byte for byte, what WriteTar makes of its own members in path order:
// so nothing hides in padding, in headers or behind the end.
func (t *Tree) addTar(index int, kind manifest.Kind, layer manifest.Descriptor, spool *os.File) error {
	members, faults, err := readTar(spool)
	if err != nil {
		return err
	}
	t.Faults = append(t.Faults, faults...)
	offsets := map[string]int64{}
	files := make([]manifest.File, 0, len(members))
	for _, m := range members {
		file := m.file
		if file.Digest, err = digestReader(io.NewSectionReader(spool, m.offset, file.Size)); err != nil {
			return err
		}
		offsets[file.Path] = m.offset
		files = append(files, file)
		t.Files = append(t.Files, TreeFile{File: file, Kind: kind, Layer: index, offset: m.offset})
	}
	sorted := slices.Clone(files)
	manifest.SortFiles(sorted)
	h := manifest.NewHash()
	err = WriteTar(h, sorted, func(f manifest.File) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(spool, offsets[f.Path], f.Size)), nil
	})
	if err != nil || manifest.FinishHash(h) != layer.Digest {
		t.Faults = append(t.Faults, Fault{
			Path:   layer.Annotations[manifest.AnnotationFilePath],
			Detail: "tar layer " + layer.Digest.String() + " is not in canonical form (order, header fields, padding or a tail)",
			Hint:   "build the bundle with slipway build",
		})
	}
	return nil
}

func digestReader(r io.Reader) (manifest.Digest, error) {
	h := manifest.NewHash()
	if _, err := io.Copy(h, r); err != nil {
		return manifest.Digest{}, err
	}
	return manifest.FinishHash(h), nil
}

// spoolBlob copies a verified blob into a temporary file that has no name.
func spoolBlob(ctx context.Context, store Reader, blob manifest.Descriptor) (*os.File, error) {
	source, err := store.Open(ctx, blob, 0)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	spool, err := os.CreateTemp("", "slipway-layer-*")
	if err != nil {
		return nil, err
	}
	// Without a name nothing is left behind, however the program ends.
	if err := os.Remove(spool.Name()); err != nil {
		_ = spool.Close()
		return nil, err
	}
	if _, err := CopyBlocks(ctx, spool, NewCheckedReader(source, blob), nil); err != nil {
		_ = spool.Close()
		return nil, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		_ = spool.Close()
		return nil, err
	}
	return spool, nil
}
