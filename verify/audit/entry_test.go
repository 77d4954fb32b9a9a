package audit

import (
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/scan"
)

// Literal weights with another magnitude below zero than above are ternary only
// where the task says so, and have two scales a unit.
func TestAsymmetricLiteralWeights(t *testing.T) {
	const name = "model.layers.0.mlp.up_proj.weight"
	for _, tc := range []struct {
		allowed         bool
		unit            int64 // the largest asymmetric one
		level           report.Level
		ternary, scales int64
	}{
		{true, 64, report.Warning, 128, 4},
		{true, 32, report.Warning, 128, 8},
		{true, 0, report.Error, 0, 0},
		{false, 0, report.Error, 0, 0},
	} {
		at := manifest.StoredTensor{File: "a", Tensor: name}
		q := manifest.Quantization{Tensors: map[string]manifest.Quantity{name: {Kind: manifest.KindLiteral, Shape: []int64{2, 64}, File: "a", Tensor: name}}}
		stored := map[manifest.StoredTensor]safetensors.Tensor{at: {Name: name, DType: safetensors.F32, Shape: []int64{2, 64}}}
		e := Evidence{Quantization: q, Stored: stored, Own: stored, Uses: map[manifest.StoredTensor][]Use{at: {{name, AsValues}}},
			Rules: profiles.Ternary{Counting: report.CountStrict, GroupMinimum: 32, AllowAsymmetric: tc.allowed},
			Facts: map[string]*scan.File{"a": {Tensors: map[string]*scan.Tensor{name: {Asymmetric: tc.unit,
				Literal: &scan.Literal{Tested: 32, Units: 4, BadUnits: 4, Count: 128, Zeros: 40, Minus: 44, First: 1, Second: 2}}}}}}
		r := e.Run()
		if len(r.Findings) != 1 || r.Findings[0].Level != tc.level {
			t.Errorf("%+v: findings %+v", tc, r.Findings)
		}
		if r.Counts.Ternary != tc.ternary || r.Counts.Scales != tc.scales {
			t.Errorf("%+v: T %d, s %d", tc, r.Counts.Ternary, r.Counts.Scales)
		}
	}
}

// Tensors that begin alike and have the same statistics are the same only if their
// digests are, where those were taken.
func TestDigestsTellTensorsApart(t *testing.T) {
	one, two := manifest.DigestBytes([]byte("1")), manifest.DigestBytes([]byte("2"))
	for _, tc := range []struct {
		digests [2]manifest.Digest
		want    bool
	}{
		{[2]manifest.Digest{}, true}, {[2]manifest.Digest{one, one}, true}, {[2]manifest.Digest{one, {}}, true}, {[2]manifest.Digest{one, two}, false},
	} {
		e := Evidence{Stored: map[manifest.StoredTensor]safetensors.Tensor{}, Facts: map[string]*scan.File{"a": {Tensors: map[string]*scan.Tensor{}}}}
		q := manifest.Quantization{Tensors: map[string]manifest.Quantity{}}
		for i, name := range []string{"model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"} {
			q.Tensors[name] = manifest.Quantity{Kind: manifest.KindFloat, Shape: []int64{8, 64}, File: "a", Tensor: name}
			e.Stored[manifest.StoredTensor{File: "a", Tensor: name}] = safetensors.Tensor{Name: name, DType: safetensors.BF16, Shape: []int64{8, 64}}
			e.Facts["a"].Tensors[name] = &scan.Tensor{Digest: tc.digests[i]}
		}
		if got := len(e.storedAlike(q)) == 1; got != tc.want {
			t.Errorf("digests %v: alike %v", tc.digests, got)
		}
	}
}
