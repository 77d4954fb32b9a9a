package audit

import (
	"testing"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
)

// affine gives the packed entries of headers biases beside their scales.
func affine(q manifest.Quantization, stored map[manifest.StoredTensor]safetensors.Tensor) {
	for name, entry := range q.Tensors {
		if entry.Kind != manifest.KindPacked2Bit {
			continue
		}
		scales := stored[*entry.Scales]
		biases := manifest.StoredTensor{File: entry.Scales.File, Tensor: name + ".biases"}
		stored[biases] = safetensors.Tensor{Name: biases.Tensor, DType: scales.DType, Shape: scales.Shape}
		entry.Format, entry.Biases = manifest.FormatMLXAffine, &biases
		q.Tensors[name] = entry
	}
}

// A bias for every scale counts as another scale, under both rules.
func TestCountsOfScalesAndBiases(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	for _, row := range []struct {
		group    int64
		fraction string
		pass     bool
	}{
		{128, "0.983286", true}, {64, "0.968408", true}, {32, "0.939962", false},
	} {
		q, stored := headers(contract, row.group)
		affine(q, stored)
		for _, counting := range []string{report.CountObserved, report.CountStrict} {
			rules := taskRules()
			rules.Counting = counting
			c := Count(&contract, q, stored, rules, nil)
			if c.Fraction != row.fraction || (c.FractionMargin > 0) != row.pass || c.Unreferenced != 0 {
				t.Errorf("group %d, %s: fraction %s, margin %d, unreferenced %d", row.group, counting, c.Fraction, c.FractionMargin, c.Unreferenced)
			}
		}
	}
}

// The published mixture of experts: its linears are literal, with a magnitude
// for each row, which only the strict rules charge.
func TestCountsOfLiteralMaple(t *testing.T) {
	data, err := realshapes.Maple().Encode()
	if err != nil {
		t.Fatal(err)
	}
	contract, err := manifest.DecodeContract(data)
	if err != nil {
		t.Fatal(err)
	}
	q := manifest.Quantization{Tensors: map[string]manifest.Quantity{}}
	stored := map[manifest.StoredTensor]safetensors.Tensor{}
	for name, tensor := range contract.Tensors {
		kind := manifest.KindFloat
		if realshapes.Packable(name) {
			kind = manifest.KindLiteral
		}
		key := manifest.StoredTensor{File: "a.safetensors", Tensor: name}
		stored[key] = safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: tensor.Shape}
		q.Tensors[name] = manifest.Quantity{Kind: kind, Shape: tensor.Shape, File: key.File, Tensor: key.Tensor}
	}
	rules := taskRules()
	observed := Count(&contract, q, stored, rules, nil)
	rules.Counting = report.CountStrict
	strict := Count(&contract, q, stored, rules, nil)
	if observed.Ternary != 19_579_011_072 || observed.Scales != 0 || observed.Floats != 12_582_912+106_496 || observed.Fraction != "0.999352" {
		t.Errorf("observed %+v", observed)
	}
	if strict.Scales != 18_997_248 || strict.Fraction != "0.998384" {
		t.Errorf("strict: %d implied scales, fraction %s", strict.Scales, strict.Fraction)
	}
	half := map[string]Found{} // a magnitude for each half row
	for name, entry := range q.Tensors {
		half[name] = Found{Unit: entry.Shape[len(entry.Shape)-1] / 2}
	}
	if found := Count(&contract, q, stored, rules, half); found.Scales != 2*18_997_248 {
		t.Errorf("%d implied scales of half rows", found.Scales)
	}
}

// What was found not to be ternary is float, scales and biases included.
func TestFailedEntriesAreFloats(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	q, stored := headers(contract, 128)
	affine(q, stored)
	const name = "model.language_model.layers.0.mlp.gate_proj.weight" // [9216, 2560]
	clean := Count(&contract, q, stored, taskRules(), nil)
	failed := Count(&contract, q, stored, taskRules(), map[string]Found{name: {Failed: true}})
	weights, scales := int64(9216*2560), int64(2*9216*20)
	if failed.Ternary != clean.Ternary-weights || failed.Scales != clean.Scales-scales || failed.Floats != clean.Floats+weights+scales {
		t.Errorf("clean %+v\nfailed %+v", clean, failed)
	}
}

// Whole numbers -1, 0 and 1 in bytes are refused as literal weights, and charged as
// the four codes that each byte could hold; so are bytes that a float entry names.
func TestWholeNumbersInBytesAreChargedFour(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	const name = "model.language_model.layers.0.mlp.gate_proj.weight" // [9216, 2560]
	for _, counting := range []string{report.CountObserved, report.CountStrict} {
		rules := taskRules()
		rules.Counting = counting
		for _, kind := range []string{manifest.KindLiteral, manifest.KindFloat} {
			q, stored := headers(contract, 128)
			clean := Count(&contract, q, stored, rules, nil)
			key := manifest.StoredTensor{File: "weights/a.safetensors", Tensor: name}
			stored[key] = safetensors.Tensor{Name: name, DType: safetensors.I8, Shape: []int64{9216, 2560}}
			delete(stored, *q.Tensors[name].Codes)
			delete(stored, *q.Tensors[name].Scales)
			q.Tensors[name] = manifest.Quantity{Kind: kind, Shape: []int64{9216, 2560}, File: key.File, Tensor: name}
			c := Count(&contract, q, stored, rules, map[string]Found{name: {Failed: true}})
			if weights := int64(9216 * 2560); c.Floats != clean.Floats+4*weights || c.Ternary != clean.Ternary-weights {
				t.Errorf("%s, %s: %d floats beside %d, %d ternary", counting, kind, c.Floats, clean.Floats, c.Ternary)
			}
		}
	}
}

// Strict rules charge a float that is wider than the base's by its width.
func TestStrictCountingOfWiderFloats(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	const name = "model.language_model.layers.0.input_layernorm.weight"
	rules := taskRules()
	rules.Counting = report.CountStrict
	floats := func(dtype safetensors.DType) int64 {
		q, stored := headers(contract, 128)
		key := manifest.StoredTensor{File: "weights/a.safetensors", Tensor: name}
		tensor := stored[key]
		tensor.DType = dtype
		stored[key] = tensor
		return Count(&contract, q, stored, rules, nil).Floats
	}
	if base := floats(safetensors.BF16); floats(safetensors.F32) != base+2560 || floats(safetensors.F64) != base+3*2560 {
		t.Errorf("BF16 %d, F32 %d, F64 %d", base, floats(safetensors.F32), floats(safetensors.F64))
	}
}
