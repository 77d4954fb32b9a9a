package audit

import (
	"testing"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// headers builds the quantization manifest and the stored tensors of a model,
// without any bytes: packable linears with groups of g inputs (0: a scale a
// row), all else as float.
func headers(contract manifest.Contract, g int64) (manifest.Quantization, map[manifest.StoredTensor]safetensors.Tensor) {
	q := manifest.Quantization{Tensors: map[string]manifest.Quantity{}}
	stored := map[manifest.StoredTensor]safetensors.Tensor{}
	put := func(name string, dtype safetensors.DType, shape ...int64) manifest.StoredTensor {
		key := manifest.StoredTensor{File: "weights/a.safetensors", Tensor: name}
		stored[key] = safetensors.Tensor{Name: name, DType: dtype, Shape: shape}
		return key
	}
	for name, tensor := range contract.Tensors {
		dtype, _ := safetensors.ParseDType(tensor.DType)
		if !realshapes.Packable(name) {
			key := put(name, dtype, tensor.Shape...)
			q.Tensors[name] = manifest.Quantity{Kind: manifest.KindFloat, Shape: tensor.Shape, File: key.File, Tensor: key.Tensor}
			continue
		}
		n, k := tensor.Shape[0], tensor.Shape[1]
		group := g
		if g == 0 {
			group = k
		}
		codes, scales := put(name+".codes", safetensors.U8, n, k/4), put(name+".scales", safetensors.F16, n, k/group)
		q.Tensors[name] = manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: tensor.Shape, GroupSize: group, Codes: &codes, Scales: &scales}
	}
	return q, stored
}

// taskRules are those of the practice task.
func taskRules() profiles.Ternary {
	return profiles.Ternary{
		FractionAbove: profiles.Ratio{Numerator: 95, Denominator: 100}, StoredAtMost: profiles.Ratio{Numerator: 11, Denominator: 10},
		Counting: report.CountObserved, GroupMinimum: 32,
	}
}

func TestCountsOfQwen35With4B(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	q, stored := headers(contract, 128)
	c := Count(&contract, q, stored, taskRules(), nil)
	got := [...]int64{c.Ternary, c.Floats, c.Scales, c.Unreferenced, c.Base, c.Counted(), int64(c.Packed), int64(c.Float), int64(c.Entries)}
	want := [...]int64{3_565_158_400, 4_893_696, 27_852_800, 0, 3_570_052_096, 3_597_904_896, 200, 538, 738}
	if got != want {
		t.Errorf("T f s u P0 T+s+f packed float entries\n got %v\nwant %v", got, want)
	}
	if c.Fraction != "0.990898" {
		t.Errorf("fraction %s", c.Fraction)
	}
	if c.StoredMargin != 3_291_524_096 { // tenths: 1.1*P0 - stored = 329,152,409.6
		t.Errorf("stored margin %d", c.StoredMargin)
	}
	if c.BaseSelfDeclared || len(c.Excluded) != 1+297+15 {
		t.Errorf("self-declared %v, %d excluded", c.BaseSelfDeclared, len(c.Excluded))
	}
	codes, scales := int64(0), int64(0)
	for _, tensor := range stored {
		switch tensor.DType {
		case safetensors.U8:
			codes += tensor.Elements()
		case safetensors.F16:
			scales += 2 * tensor.Elements()
		}
	}
	if codes != 891_289_600 || scales != 55_705_600 {
		t.Errorf("%d bytes of codes, %d of scales", codes, scales)
	}
}

func TestCountsByScaleLayout(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	for _, row := range []struct {
		group            int64 // 0: a row
		fraction, stored string
		passFraction     bool
		passStored       bool
	}{
		{0, "0.998313", "1.000317", true, true},
		{64, "0.983286", "1.015604", true, true},
		{32, "0.968408", "1.031207", true, true},
		{16, "0.939962", "1.062414", false, true},
		{8, "0.887806", "1.124829", false, false},
		{1, "0.499657", "1.998629", false, false},
	} {
		q, stored := headers(contract, row.group)
		c := Count(&contract, q, stored, taskRules(), nil)
		if c.Fraction != row.fraction || c.StoredRatio != row.stored {
			t.Errorf("group %d: fraction %s, stored %s, want %s, %s", row.group, c.Fraction, c.StoredRatio, row.fraction, row.stored)
		}
		if (c.FractionMargin > 0) != row.passFraction || (c.StoredMargin >= 0) != row.passStored {
			t.Errorf("group %d: margins %d, %d", row.group, c.FractionMargin, c.StoredMargin)
		}
	}
}

// At group 128 at most 148,249,034 linear weights may stay float: in whole
// groups, the bound lies between 148,248,960 and 148,249,088.
func TestHowManyWeightsMayStayFloat(t *testing.T) {
	margin := func(floats int64) int64 {
		codes, scales := manifest.StoredTensor{File: "a", Tensor: "codes"}, manifest.StoredTensor{File: "a", Tensor: "scales"}
		weights := 3_565_158_400 - floats
		q := manifest.Quantization{Tensors: map[string]manifest.Quantity{
			"linear": {Kind: manifest.KindPacked2Bit, Shape: []int64{1, weights}, GroupSize: 128, Codes: &codes, Scales: &scales},
			"kept":   {Kind: manifest.KindFloat, Shape: []int64{floats}, File: "a", Tensor: "kept"},
			"norms":  {Kind: manifest.KindFloat, Shape: []int64{4_893_696}, File: "a", Tensor: "norms"},
		}}
		stored := map[manifest.StoredTensor]safetensors.Tensor{scales: {DType: safetensors.F16, Shape: []int64{1, weights / 128}}}
		return Count(nil, q, stored, taskRules(), nil).FractionMargin
	}
	if margin(148_248_960) <= 0 || margin(148_249_088) > 0 {
		t.Errorf("margins %d and %d", margin(148_248_960), margin(148_249_088))
	}
}

// What is charged for tensors that no entry refers to.
func TestUnreferencedWeights(t *testing.T) {
	for _, row := range []struct {
		dtype            safetensors.DType
		observed, strict int64 // for 8 elements
	}{
		{safetensors.U8, 32, 32}, {safetensors.I8, 32, 32}, {safetensors.BOOL, 8, 32}, {safetensors.I16, 8, 64},
		{safetensors.I32, 8, 128}, {safetensors.I64, 8, 256}, {safetensors.F8E4M3, 8, 8}, {safetensors.F16, 8, 8},
		{safetensors.BF16, 8, 8}, {safetensors.F32, 8, 16}, {safetensors.F64, 8, 32}, {safetensors.C64, 8, 32},
	} {
		stored := map[manifest.StoredTensor]safetensors.Tensor{{File: "a", Tensor: "x"}: {Name: "x", DType: row.dtype, Shape: []int64{2, 4}}}
		q := manifest.Quantization{Tensors: map[string]manifest.Quantity{}}
		rules := taskRules()
		if got := Count(nil, q, stored, rules, nil).Unreferenced; got != row.observed {
			t.Errorf("%s: observed %d, want %d", row.dtype, got, row.observed)
		}
		rules.Counting = report.CountStrict
		if got := Count(nil, q, stored, rules, nil).Unreferenced; got != row.strict {
			t.Errorf("%s: strict %d, want %d", row.dtype, got, row.strict)
		}
	}
}

func TestStrictCountingOfWideTypes(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	q, stored := headers(contract, 128)
	rules := taskRules()
	rules.Counting = report.CountStrict
	clean := Count(&contract, q, stored, rules, nil)
	widen := func(name string) {
		key := manifest.StoredTensor{File: "weights/a.safetensors", Tensor: name}
		tensor := stored[key]
		tensor.DType = safetensors.F32
		stored[key] = tensor
	}
	const layer = "model.language_model.layers.0."
	widen(layer + "input_layernorm.weight")      // 2560 elements, BF16 in the base
	widen(layer + "mlp.gate_proj.weight.scales") // 9216*20 scales
	wide := Count(&contract, q, stored, rules, nil)
	if wide.Floats != clean.Floats+2560 || wide.Scales != clean.Scales+9216*20 {
		t.Errorf("floats %d to %d, scales %d to %d", clean.Floats, wide.Floats, clean.Scales, wide.Scales)
	}
	if observed := Count(&contract, q, stored, taskRules(), nil); observed.Floats != 4_893_696 || observed.Scales != 27_852_800 {
		t.Errorf("observed rules count %d floats and %d scales", observed.Floats, observed.Scales)
	}
}

// Names that the contract does not know stay in A, so that none leaves it.
func TestUnknownNamesAreCounted(t *testing.T) {
	contract := realshapes.Qwen35With4B().Contract()
	q := manifest.Quantization{Tensors: map[string]manifest.Quantity{
		"model.visual.invented.weight": {Kind: manifest.KindFloat, Shape: []int64{3, 5}, File: "a", Tensor: "x"},
		"lm_head.weight":               {Kind: manifest.KindFloat, Shape: []int64{3, 5}, File: "a", Tensor: "y"},
	}}
	c := Count(&contract, q, nil, taskRules(), nil)
	if c.Floats != 15 || len(c.Excluded) != 1 || c.Excluded[0].Name != "lm_head.weight" {
		t.Errorf("counts %+v", c)
	}
	contract.TiedHead = false
	if c := Count(&contract, q, nil, taskRules(), nil); c.Floats != 30 {
		t.Errorf("with an untied base a head of another name counts: %+v", c)
	}
}
