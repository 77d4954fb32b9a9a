package manifest

import "fmt"

// MaxLayers bounds the layers of an artifact; registries have limits of a few
// hundred, and unpacking tools of 127.
const MaxLayers = 99

// MaxManifestBytes is the size up to which every registry must take a manifest
// (distribution-spec v1.1).
const MaxManifestBytes = 4 << 20

// Artifact is the OCI image manifest of a bundle.
type Artifact struct {
	Config      Descriptor
	Layers      []Descriptor
	Annotations map[string]string
}

type artifactFile struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        Descriptor        `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Encode writes the manifest's canonical bytes, whose digest is the artifact's.
func (a Artifact) Encode() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return EncodeCanonical(artifactFile{2, MediaTypeManifest, ArtifactTypeModel, a.Config, a.Layers, a.Annotations})
}

// DecodeArtifact reads a model artifact's manifest, strictly. Other image
// manifests and indexes are refused with a sentence that says what they are.
func DecodeArtifact(data []byte) (Artifact, error) {
	if len(data) > MaxManifestBytes {
		return Artifact{}, fmt.Errorf("manifest of %d bytes is larger than %d", len(data), MaxManifestBytes)
	}
	var in artifactFile
	if err := DecodeStrict(data, &in); err != nil {
		return Artifact{}, fmt.Errorf("manifest: %w", err)
	}
	switch {
	case in.SchemaVersion != 2:
		return Artifact{}, fmt.Errorf("manifest: schemaVersion is %d, not 2", in.SchemaVersion)
	case in.MediaType != MediaTypeManifest:
		return Artifact{}, fmt.Errorf("manifest: media type %q is not %s", Clip(in.MediaType), MediaTypeManifest)
	case in.ArtifactType != ArtifactTypeModel:
		return Artifact{}, fmt.Errorf("manifest: artifact type %q is not %s", Clip(in.ArtifactType), ArtifactTypeModel)
	}
	a := Artifact{in.Config, in.Layers, in.Annotations}
	return a, a.check()
}

func (a Artifact) check() error {
	if a.Config.MediaType != MediaTypeConfig {
		return fmt.Errorf("manifest: config media type %q is not %s", Clip(a.Config.MediaType), MediaTypeConfig)
	}
	if len(a.Layers) == 0 || len(a.Layers) > MaxLayers {
		return fmt.Errorf("manifest: %d layers are not between 1 and %d", len(a.Layers), MaxLayers)
	}
	for _, d := range append([]Descriptor{a.Config}, a.Layers...) {
		if err := d.check(); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	for _, d := range a.Layers {
		if _, _, err := ParseLayerMediaType(d.MediaType); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	return nil
}
