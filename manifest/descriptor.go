package manifest

import (
	"fmt"
	"maps"
	"path"
)

// Descriptor names one blob: what it is, its digest and its size in bytes.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      Digest            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DescribeBytes returns the descriptor of data.
func DescribeBytes(mediaType string, data []byte) Descriptor {
	return Descriptor{MediaType: mediaType, Digest: DigestBytes(data), Size: int64(len(data))}
}

func (d Descriptor) check() error {
	switch {
	case d.Digest.IsZero():
		return fmt.Errorf("descriptor of %q has no digest", Clip(d.MediaType))
	case d.MediaType == "":
		return fmt.Errorf("descriptor %s has no media type", d.Digest)
	case d.Size < 0:
		return fmt.Errorf("descriptor %s has size %d", d.Digest, d.Size)
	}
	return nil
}

// fileMetadata is model-spec's org.cncf.model.file.metadata+json. Owner and
// time are constants: they are facts of a machine, not of a model.
type fileMetadata struct {
	Name     string `json:"name"`
	Mode     uint32 `json:"mode"`
	UID      int    `json:"uid"`
	GID      int    `json:"gid"`
	Size     int64  `json:"size"`
	ModTime  string `json:"mtime"`
	TypeFlag byte   `json:"typeflag"`
}

// RawLayer describes one file that is a layer of its own.
func RawLayer(kind Kind, file File) Descriptor {
	return Descriptor{
		MediaType: LayerMediaType(kind, EncodingRaw), Digest: file.Digest, Size: file.Size,
		Annotations: fileAnnotations(file.Path, file.Mode, file.Size),
	}
}

// TarLayer describes the tar layer of a kind. Its filepath annotation names
// the archive, not a file of the bundle.
func TarLayer(kind Kind, digest Digest, size int64) Descriptor {
	return Descriptor{
		MediaType: LayerMediaType(kind, EncodingTar), Digest: digest, Size: size,
		Annotations: fileAnnotations(string(kind)+".tar", ModeFile, size),
	}
}

func fileAnnotations(filePath string, mode Mode, size int64) map[string]string {
	metadata, err := EncodeCanonical(fileMetadata{
		Name: path.Base(filePath), Mode: uint32(mode), Size: size, ModTime: "1970-01-01T00:00:00Z", TypeFlag: '0',
	})
	if err != nil {
		panic(err) // a struct of numbers and one valid string always encodes
	}
	return map[string]string{AnnotationFilePath: filePath, AnnotationFileMetadata: string(metadata)}
}

// RawFile returns the file that a raw layer holds, as its annotations say.
func (d Descriptor) RawFile() (File, error) {
	var metadata fileMetadata
	if err := DecodeStrict([]byte(d.Annotations[AnnotationFileMetadata]), &metadata); err != nil {
		return File{}, fmt.Errorf("layer %s: annotation %s: %w", d.Digest, AnnotationFileMetadata, err)
	}
	file := File{Path: d.Annotations[AnnotationFilePath], Mode: Mode(metadata.Mode), Size: d.Size, Digest: d.Digest}
	if want := fileAnnotations(file.Path, file.Mode, file.Size); !maps.Equal(want, d.Annotations) {
		return File{}, fmt.Errorf("layer %s: annotations differ from the ones its file would get", d.Digest)
	}
	return file, file.Mode.check()
}
