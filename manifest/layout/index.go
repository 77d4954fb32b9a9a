package layout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sort"

	"slipway/manifest"
	"slipway/manifest/content"
)

// annotationRefName is image-spec's key for the name of an index entry.
const annotationRefName = "org.opencontainers.image.ref.name"

const maxIndexBytes = 16 << 20

// indexFile is index.json. Fields of other tools' entries are kept as they are.
type indexFile struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Manifests     []indexEntry      `json:"manifests"`
	Subject       json.RawMessage   `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type indexEntry struct {
	MediaType    string            `json:"mediaType"`
	Digest       manifest.Digest   `json:"digest"`
	Size         int64             `json:"size"`
	URLs         []string          `json:"urls,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Data         string            `json:"data,omitempty"`
	Platform     json.RawMessage   `json:"platform,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
}

func (f indexFile) encode() ([]byte, error) { return manifest.EncodeCanonical(f) }

func (e indexEntry) name() string { return e.Annotations[annotationRefName] }

func (e indexEntry) descriptor() manifest.Descriptor {
	return manifest.Descriptor{MediaType: e.MediaType, Digest: e.Digest, Size: e.Size}
}

func (l *Layout) readIndex() (indexFile, error) {
	var index indexFile
	file, err := content.OpenRegular(l.root, "index.json", -1)
	if err != nil {
		return index, fmt.Errorf("read layout %s: %w", l.folder, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxIndexBytes+1))
	if err == nil && len(data) > maxIndexBytes {
		err = fmt.Errorf("larger than %d bytes", maxIndexBytes)
	}
	if err == nil {
		err = manifest.DecodeStrict(data, &index)
	}
	if err == nil && index.SchemaVersion != 2 {
		err = fmt.Errorf("schemaVersion is %d, not 2", index.SchemaVersion)
	}
	if err != nil {
		return index, fmt.Errorf("read index.json of layout %s: %w", l.folder, err)
	}
	return index, nil
}

// Names lists the tags of the layout, sorted; the entry without one is "".
func (l *Layout) Names() ([]string, error) {
	index, err := l.readIndex()
	var names []string
	for _, e := range index.Manifests {
		names = append(names, e.name())
	}
	sort.Strings(names)
	return names, err
}

// Resolve implements content.Store. An empty name stands for the only manifest
// of a layout.
func (l *Layout) Resolve(_ context.Context, name string) (manifest.Descriptor, error) {
	index, err := l.readIndex()
	if err != nil {
		return manifest.Descriptor{}, err
	}
	digest, _ := manifest.ParseDigest(name)
	distinct := map[manifest.Digest]indexEntry{}
	for _, e := range index.Manifests {
		distinct[e.Digest] = e
		if (name != "" && e.name() == name) || (!digest.IsZero() && e.Digest == digest) {
			return e.descriptor(), nil
		}
	}
	switch {
	case !digest.IsZero():
		return l.untagged(digest)
	case name != "":
		names, _ := l.Names()
		return manifest.Descriptor{}, manifest.WithHint(fmt.Errorf("%q in layout %s: %w", name, l.folder, content.ErrNotFound), fmt.Sprintf("its tags: %q", names))
	case len(distinct) == 0:
		return manifest.Descriptor{}, fmt.Errorf("a bundle in layout %s: %w", l.folder, content.ErrNotFound)
	case len(distinct) > 1:
		names, _ := l.Names()
		return manifest.Descriptor{}, manifest.WithHint(fmt.Errorf("layout %s holds %d bundles", l.folder, len(distinct)),
			fmt.Sprintf("name one of them: %s:TAG or %s@sha256:DIGEST (tags: %q)", l.folder, l.folder, names))
	}
	return index.Manifests[0].descriptor(), nil
}

// untagged describes a manifest that the index does not list.
func (l *Layout) untagged(digest manifest.Digest) (manifest.Descriptor, error) {
	info, err := l.root.Lstat(blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return manifest.Descriptor{}, fmt.Errorf("%s in layout %s: %w", digest, l.folder, content.ErrNotFound)
	}
	if err != nil {
		return manifest.Descriptor{}, fmt.Errorf("look for %s in layout %s: %w", digest, l.folder, err)
	}
	return manifest.Descriptor{MediaType: manifest.MediaTypeManifest, Digest: digest, Size: info.Size()}, nil
}

// Tag implements content.Store. An empty name adds the manifest without one.
func (l *Layout) Tag(ctx context.Context, target manifest.Descriptor, name string) error {
	present, err := l.Has(ctx, target)
	if err != nil {
		return err
	}
	if !present {
		return fmt.Errorf("tag %s in layout %s: %w", target.Digest, l.folder, content.ErrNotFound)
	}
	unlock, err := content.Lock(filepath.Join(l.folder, versionFile))
	if err != nil {
		return fmt.Errorf("tag %s in layout %s: %w", target.Digest, l.folder, err)
	}
	defer unlock()
	index, err := l.readIndex()
	if err != nil {
		return err
	}
	if index.set(target, name) {
		data, err := index.encode()
		if err == nil {
			err = content.ReplaceFile(filepath.Join(l.folder, "index.json"), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("tag %s in layout %s: %w", target.Digest, l.folder, err)
		}
	}
	return nil
}

// set lets name stand for target and reports whether that changed anything.
func (f *indexFile) set(target manifest.Descriptor, name string) bool {
	entry := indexEntry{MediaType: target.MediaType, Digest: target.Digest, Size: target.Size, ArtifactType: manifest.ArtifactTypeModel}
	if name != "" {
		entry.Annotations = map[string]string{annotationRefName: name}
	}
	kept := f.Manifests[:0:0]
	for _, e := range f.Manifests {
		if e.name() == name && e.Digest == target.Digest {
			return false
		}
		if name == "" && e.Digest == target.Digest {
			return false // it has a name already
		}
		if e.name() == name && name != "" {
			continue
		}
		kept = append(kept, e)
	}
	f.Manifests = append(kept, entry)
	return true
}

// OpenTree opens a bundle of a layout folder as a tree that is called shown;
// closing it closes both.
func OpenTree(ctx context.Context, folder, name, shown string) (*content.Tree, error) {
	l, err := Open(folder)
	if err != nil {
		return nil, err
	}
	tree, err := content.OpenArtifact(ctx, l, name, content.OriginLayout, shown)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	tree.OnClose(l.Close)
	return tree, nil
}
