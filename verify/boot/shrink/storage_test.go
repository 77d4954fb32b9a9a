package shrink

import (
	"maps"
	"slices"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// storage is how a checkpoint stores the linears of its text model.
type storage struct {
	name  string
	store func(shape []int64) map[string]safetensors.Tensor // by what follows the logical name
	entry *manifest.Quantity                                // of the quantization manifest, without references
	block bool                                              // FP8 with a scale for each 128 by 128
}

func stored(dtype safetensors.DType, shape ...int64) safetensors.Tensor {
	return safetensors.Tensor{DType: dtype, Shape: shape}
}

func storages() []storage {
	packed := func(format, unit string, group int64) *manifest.Quantity {
		return &manifest.Quantity{Kind: manifest.KindPacked2Bit, Format: format, Unit: unit, GroupSize: group}
	}
	return []storage{
		{name: "bf16", store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{"": stored(safetensors.BF16, s...)}
		}},
		{name: "literal", entry: &manifest.Quantity{Kind: manifest.KindLiteral, Unit: manifest.UnitRow}, store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{"": stored(safetensors.BF16, s...)}
		}},
		{name: "block-fp8", block: true, store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{"": stored(safetensors.F8E4M3, s...), "_scale_inv": stored(safetensors.BF16, (s[0]+127)/128, (s[1]+127)/128)}
		}},
		{name: "packed", entry: packed("", "", 128), store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{".codes": stored(safetensors.U8, s[0], s[1]/4), ".scales": stored(safetensors.F16, s[0], s[1]/128)}
		}},
		{name: "packed-by-row", entry: packed("", manifest.UnitRow, 0), store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{".codes": stored(safetensors.U8, s[0], s[1]/4), ".scales": stored(safetensors.F16, s[0], 1)}
		}},
		{name: "mlx-affine", entry: packed(manifest.FormatMLXAffine, "", 128), store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{".codes": stored(safetensors.U32, s[0], s[1]/16), ".scales": stored(safetensors.BF16, s[0], s[1]/128), ".biases": stored(safetensors.BF16, s[0], s[1]/128)}
		}},
		{name: "mlx-row-alpha", entry: packed(manifest.FormatMLXRowAlpha, "", 0), store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{".codes": stored(safetensors.U32, s[0], s[1]/16), ".scales": stored(safetensors.BF16, s[0])}
		}},
		{name: "bitnet", entry: packed(manifest.FormatBitNetU8, "", 0), store: func(s []int64) map[string]safetensors.Tensor {
			return map[string]safetensors.Tensor{".codes": stored(safetensors.U8, (s[0]+3)/4, s[1]), ".scales": stored(safetensors.F32, 1)}
		}},
	}
}

// tensors returns what a checkpoint of a config.json stores, by name.
func (s storage) tensors(t testing.TB, config []byte) map[string]safetensors.Tensor {
	out := map[string]safetensors.Tensor{}
	for name, shape := range shapesOf(t, config) {
		parts := map[string]safetensors.Tensor{"": stored(safetensors.BF16, shape...)}
		if quantizable(name) {
			parts = s.store(shape)
		}
		for suffix, tensor := range parts {
			tensor.Name = name + suffix
			out[tensor.Name] = tensor
		}
	}
	return out
}

// quantities returns the entries of its quantization manifest, by name.
func (s storage) quantities(t testing.TB, config []byte, file string) map[string]manifest.Quantity {
	out := map[string]manifest.Quantity{}
	for name, shape := range shapesOf(t, config) {
		entry := manifest.Quantity{Kind: manifest.KindFloat, Shape: shape, File: file, Tensor: name}
		if quantizable(name) {
			entry = *s.entry
			entry.Shape = shape
			at := func(suffix string) *manifest.StoredTensor {
				return &manifest.StoredTensor{File: file, Tensor: name + suffix}
			}
			if entry.Kind == manifest.KindLiteral {
				entry.File, entry.Tensor = file, name
			} else if entry.Codes, entry.Scales = at(".codes"), at(".scales"); entry.Format == manifest.FormatMLXAffine {
				entry.Biases = at(".biases")
			}
		}
		out[name] = entry
	}
	return out
}

const onlyShard = "weights/model.safetensors"

// checkpoint returns a submission of a config.json whose tensors are stored so.
func (s storage) checkpoint(t testing.TB, config []byte) checkpoint {
	c := checkpoint{shards: map[string][]safetensors.Tensor{}}
	decode(t, config, &c.config)
	tensors := s.tensors(t, config)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		c.shards[onlyShard] = append(c.shards[onlyShard], tensors[name])
	}
	if s.entry != nil {
		c.quantization = &manifest.Quantization{Format: "test", Tensors: s.quantities(t, config, onlyShard)}
	}
	if s.block {
		c.config["quantization_config"] = map[string]any{"quant_method": "fp8", "weight_block_size": []int{128, 128}}
	}
	return c
}
