package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
)

// craft LAYOUT FORM:PATH... writes a bundle that slipway would not: its
// digests agree, and its files have the given paths whatever they are. FORM is
// raw (a layer of its own), or file, link or folder (entries of a tar layer);
// claim:TEXT is the set digest that it claims.
func craftLayout(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: craft LAYOUT FORM:PATH...")
	}
	c := &crafting{layout: ts.MkAbs(args[0])}
	var archive bytes.Buffer
	entries := tar.NewWriter(&archive)
	for _, arg := range args[1:] {
		form, path, _ := strings.Cut(arg, ":")
		data := []byte("content of " + path + "\n")
		header := &tar.Header{Name: path, Mode: 0o644, ModTime: time.Unix(0, 0)}
		switch form {
		case "raw":
			file := manifest.File{Path: path, Mode: manifest.ModeFile, Size: int64(len(data)), Digest: manifest.DigestBytes(data)}
			c.add(manifest.RawLayer(manifest.KindWeight, file), data)
			continue
		case "claim":
			c.claimed = path
			continue
		case "file":
			header.Typeflag, header.Size = tar.TypeReg, int64(len(data))
		case "link":
			header.Typeflag, header.Linkname, data = tar.TypeSymlink, "/etc/passwd", nil
		case "folder":
			header.Typeflag, data = tar.TypeDir, nil
		default:
			ts.Fatalf("unknown form %q", form)
		}
		ts.Check(entries.WriteHeader(header))
		_, err := entries.Write(data)
		ts.Check(err)
	}
	if archive.Len() > 0 {
		ts.Check(entries.Close())
		c.add(manifest.TarLayer(manifest.KindCode, manifest.DigestBytes(archive.Bytes()), int64(archive.Len())), archive.Bytes())
	}
	ts.Check(c.write())
}

// crafting gathers the blobs of a bundle.
type crafting struct {
	layout  string
	claimed string
	layers  []manifest.Descriptor
	blobs   [][]byte
}

func (c *crafting) add(layer manifest.Descriptor, data []byte) {
	c.layers, c.blobs = append(c.layers, layer), append(c.blobs, data)
}

func (c *crafting) write() error {
	config := manifest.ModelConfig{ModelFS: manifest.ModelFS{Type: "layers"}}
	for _, layer := range c.layers {
		config.ModelFS.DiffIDs = append(config.ModelFS.DiffIDs, layer.Digest)
	}
	configData, err := config.Encode()
	if err != nil {
		return err
	}
	artifact := manifest.Artifact{Config: manifest.DescribeBytes(manifest.MediaTypeConfig, configData), Layers: c.layers}
	if c.claimed != "" {
		artifact.Annotations = map[string]string{manifest.AnnotationSetDigest: c.claimed}
	}
	data, err := artifact.Encode()
	if err != nil {
		return err
	}
	target, err := layout.Create(c.layout, nil)
	if err != nil {
		return err
	}
	defer target.Close()
	whole := manifest.DescribeBytes(manifest.MediaTypeManifest, data)
	descriptors := append([]manifest.Descriptor{artifact.Config, whole}, c.layers...)
	for i, blob := range append([][]byte{configData, data}, c.blobs...) {
		source := func(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(blob)), nil }
		if err := target.Put(context.Background(), descriptors[i], content.Source(source)); err != nil {
			return err
		}
	}
	return target.Tag(context.Background(), whole, "latest")
}
