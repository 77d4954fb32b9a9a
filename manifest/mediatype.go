package manifest

import (
	"fmt"
	"strings"
)

// Media types of OCI image-spec v1.1 and CNCF model-spec v0.0.7.
const (
	MediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	MediaTypeIndex    = "application/vnd.oci.image.index.v1+json"
	ArtifactTypeModel = "application/vnd.cncf.model.manifest.v1+json"
	MediaTypeConfig   = "application/vnd.cncf.model.config.v1+json"
)

// Annotation keys. The first two are model-spec's; the third is ours.
const (
	AnnotationFilePath     = "org.cncf.model.filepath"
	AnnotationFileMetadata = "org.cncf.model.file.metadata+json"
	AnnotationSetDigest    = "slipway.set.digest"
)

// Kind is what a layer's files are for, in model-spec's words.
type Kind string

// The kinds that slipway writes, in layer order.
const (
	KindWeight Kind = "weight"        // weight shards
	KindConfig Kind = "weight.config" // model configuration, tokenizer, manifests
	KindCode   Kind = "code"          // serve.sh, code, wheels, the runtime
	KindDoc    Kind = "doc"           // DATA.md, provenance, logs
)

// Kinds lists the kinds in layer order.
func Kinds() []Kind { return []Kind{KindWeight, KindConfig, KindCode, KindDoc} }

// Encoding is how a layer holds its files.
type Encoding string

// The encodings that slipway writes: one file as it is, or a plain tar.
const (
	EncodingRaw Encoding = "raw"
	EncodingTar Encoding = "tar"
)

const layerPrefix = "application/vnd.cncf.model."

// LayerMediaType returns model-spec's media type of a layer.
func LayerMediaType(kind Kind, encoding Encoding) string {
	return fmt.Sprintf("%s%s.v1.%s", layerPrefix, kind, encoding)
}

// ParseLayerMediaType is the inverse of LayerMediaType for the types that
// slipway writes; every other type, the compressed ones among them, is refused.
func ParseLayerMediaType(mediaType string) (Kind, Encoding, error) {
	rest, ours := strings.CutPrefix(mediaType, layerPrefix)
	for _, kind := range Kinds() {
		for _, encoding := range []Encoding{EncodingRaw, EncodingTar} {
			if ours && rest == fmt.Sprintf("%s.v1.%s", kind, encoding) {
				return kind, encoding, nil
			}
		}
	}
	return "", "", fmt.Errorf("layer media type %q is not one of %s{weight,weight.config,code,doc}.v1.{raw,tar}", Clip(mediaType), layerPrefix)
}
