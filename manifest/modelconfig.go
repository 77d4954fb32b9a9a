package manifest

import (
	"fmt"
	"slices"
)

// ModelConfig is the artifact's config blob in model-spec's form. Fields that
// slipway never writes (creation time above all) are read and kept.
type ModelConfig struct {
	Descriptor ModelDescriptor `json:"descriptor"`
	Config     ModelFacts      `json:"config"`
	ModelFS    ModelFS         `json:"modelfs"`
}

// ModelDescriptor says where a model comes from.
type ModelDescriptor struct {
	CreatedAt   string   `json:"createdAt,omitempty"`
	Authors     []string `json:"authors,omitempty"`
	Family      string   `json:"family,omitempty"`
	Name        string   `json:"name,omitempty"`
	DocURL      string   `json:"docURL,omitempty"`
	SourceURL   string   `json:"sourceURL,omitempty"`
	DatasetsURL []string `json:"datasetsURL,omitempty"`
	Version     string   `json:"version,omitempty"`
	Revision    string   `json:"revision,omitempty"`
	Vendor      string   `json:"vendor,omitempty"`
	Licenses    []string `json:"licenses,omitempty"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
}

// ModelFacts says what a model is. Precision stays empty for ternary weights:
// the specification's closed list has no value for them.
type ModelFacts struct {
	Architecture string             `json:"architecture,omitempty"`
	Format       string             `json:"format,omitempty"`
	ParamSize    string             `json:"paramSize,omitempty"`
	Precision    string             `json:"precision,omitempty"`
	Quantization string             `json:"quantization,omitempty"`
	Capabilities *ModelCapabilities `json:"capabilities,omitempty"`
}

// ModelCapabilities lists modalities and skills.
type ModelCapabilities struct {
	InputTypes      []string `json:"inputTypes,omitempty"`
	OutputTypes     []string `json:"outputTypes,omitempty"`
	KnowledgeCutoff string   `json:"knowledgeCutoff,omitempty"`
	Reasoning       *bool    `json:"reasoning,omitempty"`
	ToolUsage       *bool    `json:"toolUsage,omitempty"`
	Reward          *bool    `json:"reward,omitempty"`
	Languages       []string `json:"languages,omitempty"`
}

// ModelFS lists the layers' uncompressed digests, in layer order.
type ModelFS struct {
	Type    string   `json:"type"`
	DiffIDs []Digest `json:"diffIds"`
}

// Encode writes the config's canonical bytes.
func (c ModelConfig) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return EncodeCanonical(c)
}

// DecodeModelConfig reads a config blob, strictly.
func DecodeModelConfig(data []byte) (ModelConfig, error) {
	var c ModelConfig
	if err := DecodeStrict(data, &c); err != nil {
		return ModelConfig{}, fmt.Errorf("model config: %w", err)
	}
	return c, c.check()
}

func (c ModelConfig) check() error {
	if c.ModelFS.Type != "layers" {
		return fmt.Errorf("model config: modelfs.type %q is not \"layers\"", Clip(c.ModelFS.Type))
	}
	if len(c.ModelFS.DiffIDs) == 0 {
		return fmt.Errorf("model config: modelfs.diffIds is empty")
	}
	if i := slices.IndexFunc(c.ModelFS.DiffIDs, Digest.IsZero); i >= 0 {
		return fmt.Errorf("model config: modelfs.diffIds[%d] is empty", i)
	}
	return nil
}

// ParameterSize writes a parameter count in the specification's form, at most
// one decimal digit and a unit: 5272496 is "5.3M". Zero gives "".
func ParameterSize(count int64) string {
	units := []struct {
		size int64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}}
	for _, u := range units {
		if count >= u.size {
			return fmt.Sprintf("%.1f%s", float64(count)/float64(u.size), u.name)
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d", count)
}
