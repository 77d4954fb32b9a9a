package manifest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestQuantizationAbacus(t *testing.T) {
	data, err := os.ReadFile("../examples/abacus/ternary/quantization_manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	q, err := DecodeQuantization(data)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range q.Tensors {
		kinds[e.Kind]++
	}
	if len(q.Tensors) != 108 || kinds[KindPacked2Bit] != 50 || kinds[KindFloat] != 58 || q.BaseModel != nil {
		t.Errorf("%d entries, kinds %v, base %v", len(q.Tensors), kinds, q.BaseModel)
	}
}

const cleanQuantization = `{"base_model":null,"base_revision":null,"tensors":{
 "a":{"codes":{"file":"w","tensor":"a.codes"},"group_size":128,"kind":"packed_2bit","scales":{"file":"w","tensor":"a.scales"},"shape":[4,128]},
 "b":{"file":"w","kind":"float","shape":[4],"tensor":"b"}}}`

func TestQuantizationRefuses(t *testing.T) {
	for _, tc := range []struct{ name, old, new, fault string }{
		{"clean", "", "", ""},
		{"kind", `"float"`, `"fp4"`, `tensor "b": kind "fp4"`},
		{"no codes", `"codes":{"file":"w","tensor":"a.codes"},`, ``, `tensor "a": kind packed_2bit needs codes`},
		{"group", `128,"kind"`, `0,"kind"`, "group_size 0"},
		{"duplicate tensor", `"b":{"file"`, `"a":{"file"`, `key "a" given twice`},
		{"file escapes", `"file":"w","kind"`, `"file":"../w","kind"`, "contains '..'"},
		{"negative", `[4,128]`, `[-4,128]`, "negative dimension"},
		{"case", `"group_size"`, `"Group_Size"`, `must be written "group_size"`},
		{"unknown format", `"group_size":128`, `"format":"tq1_0","group_size":128`, `format "tq1_0" is not one of`},
		{"row of a group", `"group_size":128`, `"unit":"row","group_size":128`, "unit row takes no group_size"},
		{"rows", `"group_size":128`, `"unit":"row"`, ""},
		{"unit", `"group_size":128`, `"unit":"block"`, `unit "block" is not`},
		{"unit of a format", `"group_size":128`, `"format":"bitnet_u8","unit":"row"`, "does not go with format bitnet_u8"},
		{"row_alpha", `"group_size":128`, `"format":"mlx_row_alpha_2bit","scale_dtype":"BF16"`, ""},
		{"biases", `"group_size":128`, `"biases":{"file":"w","tensor":"x"},"group_size":128`, "format packed_2bit takes no biases"},
		{"no biases", `"group_size":128`, `"format":"mlx_affine_2bit","group_size":128`, "format mlx_affine_2bit needs biases"},
		{"affine", `"group_size":128`, `"format":"mlx_affine_2bit","biases":{"file":"w","tensor":"x"},"group_size":128,"axis":1`, ""},
		{"signed codes", `"group_size":128`, `"format":"compressed_tensors_2bit","unit":"row"`, ""},
		{"signed codes without a unit", `"group_size":128`, `"format":"compressed_tensors_2bit"`, "group_size 0 is not positive"},
		{"axis", `"group_size":128`, `"group_size":128,"axis":2`, "axis 2 is not a dimension"},
		{"scale type", `"group_size":128`, `"group_size":128,"scale_dtype":"F64"`, `scale_dtype "F64"`},
		{"format of a float", `"kind":"float"`, `"format":"packed_2bit","kind":"float"`, "takes no format"},
		{"both forms", `"file":"w","kind":"float"`, `"codes":{"file":"w","tensor":"x"},"file":"w","kind":"float"`, "takes file and tensor"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := DecodeQuantization([]byte(strings.Replace(cleanQuantization, tc.old, tc.new, 1)))
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
				t.Fatalf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func FuzzDecodeQuantization(f *testing.F) {
	f.Add([]byte(cleanQuantization))
	f.Fuzz(func(t *testing.T, in []byte) { fuzzRoundTrip(t, in, DecodeQuantization, Quantization.Encode) })
}

func FuzzDecodeContract(f *testing.F) {
	f.Add([]byte(`{"schema":1,"repository":"a/b","revision":"0","tied_head":true,"tensors":{"x":{"dtype":"BF16","shape":[2,3],"role":"backbone"}}}`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzzRoundTrip(t, in, DecodeContract, Contract.Encode) })
}

func TestQuantizationIsBounded(t *testing.T) {
	q := Quantization{Tensors: make(map[string]Quantity, MaxQuantities+1)}
	for i := range MaxQuantities + 1 {
		name := strconv.Itoa(i)
		q.Tensors[name] = Quantity{Kind: KindFloat, Shape: []int64{1}, File: "a.safetensors", Tensor: name}
	}
	if err := q.check(); err == nil || !strings.Contains(err.Error(), "more than 200000") {
		t.Errorf("%d entries: %v", len(q.Tensors), err)
	}
	delete(q.Tensors, "0")
	if err := q.check(); err != nil {
		t.Errorf("%d entries: %v", len(q.Tensors), err)
	}
}
