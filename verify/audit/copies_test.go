package audit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// float16s are random weights, as BF16.
func float16s(r *rand.Rand, n int) []byte {
	var out []byte
	for range n {
		out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(float32(r.NormFloat64()))>>16))
	}
	return out
}

// evidenceOf stores one packed tensor [rows, inputs] made of BF16 weights, and
// a suspect.
func evidenceOf(t *testing.T, rows, inputs int64, weights []byte, suspect safetensors.Tensor, data []byte) *Evidence {
	t.Helper()
	entry := manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: []int64{rows, inputs}, GroupSize: 64,
		Codes: &manifest.StoredTensor{File: "a", Tensor: "codes"}, Scales: &manifest.StoredTensor{File: "a", Tensor: "scales"}}
	q := manifest.Quantization{Tensors: map[string]manifest.Quantity{"linear": entry}}
	l, err := ternary.LayoutOf(entry)
	if err != nil {
		t.Fatal(err)
	}
	trits := make([]int8, l.Elements())
	for i := range trits {
		v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(weights[2*i:])) << 16)
		switch {
		case v > 0.5:
			trits[i] = 1
		case v < -0.5:
			trits[i] = -1
		}
	}
	codes, err := l.EncodeCodes(trits)
	if err != nil {
		t.Fatal(err)
	}
	suspect.Name = "suspect"
	at := manifest.StoredTensor{File: "a", Tensor: "suspect"}
	return &Evidence{Quantization: q,
		Stored: map[manifest.StoredTensor]safetensors.Tensor{at: suspect, *entry.Codes: {Name: "codes", DType: safetensors.U8, Shape: []int64{rows, inputs / 4}}},
		Uses:   map[manifest.StoredTensor][]Use{*entry.Codes: {{"linear", AsCodes}}},
		Facts: map[string]*scan.File{"a": {Tensors: map[string]*scan.Tensor{
			"codes":   {Kept: kept(codes, CodeSamples(&l))},
			"suspect": {Kept: kept(data, NewSuspects(q).Samples(suspect, false)), Signs: signsOfRows(suspect, data, NewSuspects(q).Rows(suspect))},
		}}},
	}
}

// signsOfRows are the first signs of rows of each of the lengths.
func signsOfRows(tensor safetensors.Tensor, data []byte, lengths []scan.Rows) (all [][]uint64) {
	size := int64(tensor.DType.Bits() / 8)
	for _, length := range lengths {
		var words []uint64
		for row := int64(0); row+scan.SignWindow <= tensor.Elements(); row += length.Length {
			bits := make([]uint64, scan.SignWindow/64)
			for i := range int64(scan.SignWindow) {
				if signOf(data[(row+i)*size:][:size]) < 0 {
					bits[i/64] |= 1 << (i % 64)
				}
			}
			words = append(words, bits...)
		}
		all = append(all, words)
	}
	return all
}

func problemOf(e *Evidence) string {
	found := e.copies(e.Quantization)
	if len(found) == 0 {
		return ""
	}
	return found[0].Problem
}

// A tensor that a ternary one was made from is found in every place where it
// can lie, and weights that have nothing to do with it are not.
func TestCopiesAreFoundWhereverTheyLie(t *testing.T) {
	const rows, inputs = 512, 1024 // two samples
	r := rand.New(rand.NewPCG(3, 4))
	weights := float16s(r, rows*inputs)
	transposed := make([]byte, len(weights))
	for i := range rows * inputs {
		copy(transposed[2*(i%inputs*rows+i/inputs):], weights[2*i:2*i+2])
	}
	joinedWeights := append(append(float16s(r, 2*rows*inputs), weights...), float16s(r, rows*inputs)...)
	fewer := weights[:2*64*inputs]
	var columns []byte
	for row := range int64(rows) {
		columns = append(columns, weights[2*row*inputs:2*(row*inputs+inputs/2)]...)
	}
	bf16 := func(shape ...int64) safetensors.Tensor {
		return safetensors.Tensor{DType: safetensors.BF16, Shape: shape}
	}
	for _, tc := range []struct {
		name   string
		tensor safetensors.Tensor
		data   []byte
		says   string
	}{
		{"whole", bf16(rows, inputs), weights, "has the signs of linear"},
		{"one vector", bf16(rows * inputs), weights, "has the signs of linear"},
		{"transposed", bf16(inputs, rows), transposed, "in its columns"},
		{"joined", bf16(4*rows, inputs), joinedWeights, "from row 1024 on"},
		{"its first rows", bf16(64, inputs), fewer, "begins with the signs of linear"},
		{"the left half of its columns", bf16(rows, inputs/2), columns, "begins with the signs of linear"},
		{"rows from the middle", bf16(140, inputs), weights[2*201*inputs : 2*341*inputs], "the signs of linear, which is declared ternary, from row 256 on"},
		{"rows from the middle, as one vector", bf16(140 * inputs), weights[2*201*inputs : 2*341*inputs], "from row 256 on"},
		{"rows from the middle, in other rows", bf16(280, inputs/2), weights[2*201*inputs : 2*341*inputs], "from row 256 on"},
		{"rows from the middle, in an embedding", bf16(2140, inputs),
			slices.Concat(float16s(r, 1500*inputs), weights[2*201*inputs:2*341*inputs], float16s(r, 500*inputs)), "has from element 1592320 on"},
		{"nothing like it", bf16(rows, inputs), float16s(r, rows*inputs), ""},
		{"nothing like it, transposed", bf16(inputs, rows), float16s(r, rows*inputs), ""},
		{"nothing like it, larger", bf16(8*rows, inputs), float16s(r, 8*rows*inputs), ""},
		{"all positive", bf16(rows, inputs), make([]byte, 2*rows*inputs), ""},
		{"short", bf16(64), weights[:128], ""},
	} {
		if got := problemOf(evidenceOf(t, rows, inputs, weights, tc.tensor, tc.data)); !strings.Contains(got, tc.says) || tc.says == "" && got != "" {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.says)
		}
	}
}

// What quantization took from the weights is related to the ternary tensor; a
// copy of it, or weights of another, are not.
func TestWhatQuantizationTookIsRelated(t *testing.T) {
	const rows, inputs = 1024, 4096 // sixteen samples
	r := rand.New(rand.NewPCG(7, 8))
	weights := float16s(r, rows*inputs)
	const mean = 1.141 // of the magnitudes above 0.5
	rest := make([]byte, 0, 4*rows*inputs)
	for i := range rows * inputs {
		v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(weights[2*i:])) << 16)
		switch {
		case v > 0.5:
			v -= mean
		case v < -0.5:
			v += mean
		}
		rest = binary.LittleEndian.AppendUint32(rest, math.Float32bits(v))
	}
	f32 := safetensors.Tensor{DType: safetensors.F32, Shape: []int64{rows, inputs}}
	e := evidenceOf(t, rows, inputs, weights, f32, rest)
	found := e.copies(e.Quantization)
	if len(found) != 1 || found[0].Level != report.Warning || !strings.Contains(found[0].Problem, "depend on those of linear") {
		t.Errorf("%+v", found)
	}
	bf16 := safetensors.Tensor{DType: safetensors.BF16, Shape: []int64{rows, inputs}}
	if got := problemOf(evidenceOf(t, rows, inputs, weights, bf16, float16s(r, rows*inputs))); got != "" {
		t.Errorf("other weights: %s", got)
	}
}

// Of thousands of random tensors none begins like a ternary one by chance, nor
// is one of them its mask.
func TestRandomWeightsAreNoCopies(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	run := func(values int) []int8 {
		out := make([]int8, sampleLength)
		for i := range out {
			out[i] = int8(r.IntN(values) - 1)
		}
		return out
	}
	for range 20_000 {
		trits, values := run(3), run(3)
		for i := range values { // values are hardly ever zero
			if values[i] == 0 {
				values[i] = 1 - 2*int8(r.IntN(2))
			}
		}
		begins, others := beginningOf(trits), beginningOf(values)
		if begins.like(&others) || compareSigns(signs{0: trits}, signs{0: values}).masked() {
			t.Fatalf("%v and %v are alike", trits, values)
		}
		if !begins.like(&begins) {
			t.Fatalf("%v is not like itself", trits)
		}
	}
}

// A sampled row of many is found among many rows: always where the zeros of a copy
// are zeros, and most times where they are not. No other row is taken for one.
func TestRowsAreFoundByTheirBands(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	const count = 10_000
	index := &rowIndex{}
	dense, full := make([][]uint64, count), make([][]uint64, count)
	for i := range count {
		trits := make([]int8, sampleLength)
		dense[i], full[i] = make([]uint64, sampleLength/64), make([]uint64, sampleLength/64)
		for j := range trits {
			trits[j] = int8(r.IntN(3) - 1)
			if trits[j] < 0 {
				dense[i][j/64] |= 1 << (j % 64)
			}
			if trits[j] < 0 || trits[j] == 0 && r.IntN(2) == 0 {
				full[i][j/64] |= 1 << (j % 64)
			}
		}
		index.rows = append(index.rows, sampledRow{"linear", int64(i), beginningOf(trits)})
	}
	index.build()
	found := 0
	find := func(signs []uint64) int32 {
		got := int32(-1)
		for band := range bandCount {
			rows := suspectRows{signs, 1}
			index.candidates(band, rows, 0, 1, func(_ int, row int32) {
				if index.rows[row].isLike(rows.at(0), enoughOfRow) {
					got = row
				}
			})
		}
		return got
	}
	for i := range int32(count) {
		if got := find(dense[i]); got != i {
			t.Fatalf("row %d: the copy is row %d", i, got)
		}
		switch find(full[i]) {
		case i:
			found++
		case -1:
		default:
			t.Fatalf("row %d is taken for another", i)
		}
		if got := find([]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}); got >= 0 {
			t.Fatalf("random signs are row %d", got)
		}
	}
	if got := index.search(suspectRows{slices.Concat(full[777:]...), 1}); got != (hit{0, 777}) {
		t.Errorf("of all rows the first that is found is %v", got)
	}
	alone := slices.Concat(dense[500], slices.Repeat([]uint64{0x123456789abcdef}, 4*1000))
	if got := index.search(suspectRows{alone, 1}); got.at >= 0 {
		t.Errorf("one row is taken for a part: %v", got)
	}
	if t.Logf("%d of %d rows in full precision are found", found, count); found < count*7/10 {
		t.Errorf("%d of %d rows in full precision are found", found, count)
	}
}

// BenchmarkRows looks for 50,000 sampled rows among those of an embedding.
//
//	go test -run '^$' -bench Rows ./verify/audit
func BenchmarkRows(b *testing.B) {
	r := rand.New(rand.NewPCG(11, 12))
	index := &rowIndex{}
	for i := range 50_000 {
		trits := make([]int8, sampleLength)
		for j := range trits {
			trits[j] = int8(r.IntN(3) - 1)
		}
		index.rows = append(index.rows, sampledRow{"linear", int64(i), beginningOf(trits)})
	}
	index.build()
	signs := make([]uint64, 150_000*sampleLength/64)
	for i := range signs {
		signs[i] = r.Uint64()
	}
	for b.Loop() {
		if index.search(suspectRows{signs, 1}).at >= 0 {
			b.Fatal("random signs are like a row")
		}
	}
}
