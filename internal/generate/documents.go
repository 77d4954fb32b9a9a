package generate

import (
	"encoding/json"
	"fmt"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

type indexFile struct {
	Metadata  indexMetadata     `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

type indexMetadata struct {
	TotalSize int64 `json:"total_size"` // bytes of tensor data
}

func (p *plan) index() indexFile {
	index := indexFile{WeightMap: map[string]string{}}
	for _, s := range p.shards {
		for _, t := range s.stored {
			index.WeightMap[t.tensor.Name] = s.name
			index.Metadata.TotalSize += t.tensor.Bytes()
		}
	}
	return index
}

// documents returns the JSON files beside the shards, by name.
func (p *plan) documents() (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, value := range map[string]any{"config.json": p.config, safetensors.IndexName: p.index()} {
		data, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		out[name] = append(data, '\n')
	}
	data, err := p.quantization.Encode()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", manifest.QuantizationPath, err)
	}
	out[manifest.QuantizationPath] = data
	return out, nil
}
