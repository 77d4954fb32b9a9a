package generate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify"
	"slipway/verify/report"
)

func TestPublishedShapes(t *testing.T) {
	p, err := makePlan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	contract := Options{}.Model().Contract()
	if got, want := len(p.quantization.Tensors), len(contract.Tensors)+1; got != want || want != 739 {
		t.Errorf("%d entries, want %d: the model's tensors and the head", got, want)
	}
	found := map[manifest.StoredTensor]safetensors.Tensor{}
	for _, s := range p.shards {
		for _, tensor := range s.tensors() {
			found[manifest.StoredTensor{File: s.name, Tensor: tensor.Name}] = tensor
		}
	}
	packed := 0
	for name, entry := range p.quantization.Tensors {
		base, inContract := contract.Tensors[name]
		if !inContract {
			base = contract.Tensors["model.language_model.embed_tokens.weight"]
		}
		if !slices.Equal(entry.Shape, base.Shape) {
			t.Errorf("%s: shape %v, want %v", name, entry.Shape, base.Shape)
		}
		if entry.Kind == manifest.KindPacked2Bit {
			packed++
			checkStored(t, found, *entry.Codes, "U8", base.Shape[0], base.Shape[1]/4)
			checkStored(t, found, *entry.Scales, "F16", base.Shape[0], base.Shape[1]/128)
		} else {
			checkStored(t, found, entry.Stored()[0], base.DType, base.Shape...)
		}
	}
	if packed != 200 || len(found) != 939 {
		t.Errorf("%d packed entries in %d stored tensors, want 200 in 939", packed, len(found))
	}
	// The arithmetic of the bytes: codes and scales of 3,565,158,400 weights,
	// embedding and head, other text tensors, vision, multi-token prediction.
	if got, want := p.index().Metadata.TotalSize, int64(891_289_600+55_705_600+2*1_271_398_400+9_795_072+667_028_480+241_199_104); got != want {
		t.Errorf("%d bytes of tensors, want %d", got, want)
	}
}

func checkStored(t *testing.T, found map[manifest.StoredTensor]safetensors.Tensor, key manifest.StoredTensor, dtype string, shape ...int64) {
	t.Helper()
	tensor, there := found[key]
	if !there || tensor.DType.String() != dtype || !slices.Equal(tensor.Shape, shape) {
		t.Errorf("%s in %s is %s %v, want %s %v", key.Tensor, key.File, tensor.DType, tensor.Shape, dtype, shape)
	}
}

func TestShardsAreOfSimilarSize(t *testing.T) {
	for _, options := range []Options{{}, {Layers: 4, Vocabulary: 4096}, {Layers: 2, Vocabulary: 512, TextOnly: true, Shards: 3}} {
		p, err := makePlan(options)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int64
		for _, s := range p.shards {
			sizes = append(sizes, s.stored[len(s.stored)-1].tensor.End)
		}
		if smallest, largest := slices.Min(sizes), slices.Max(sizes); 2*smallest < largest {
			t.Errorf("%+v: shards of %v bytes", options, sizes)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, options := range map[string]Options{
		"33 layers are not between 1 and 32":                 {Layers: 33},
		"-1 layers are not between 1 and 32":                 {Layers: -1},
		"a vocabulary of -1 is not between 1 and 248320":     {Vocabulary: -1},
		"a vocabulary of 999999 is not between 1 and 248320": {Vocabulary: 999_999},
		"-2 shards are not between 1 and 99999":              {Shards: -2},
		"25 layers are not between 1 and 24":                 {Family: Maple, Layers: 25},
		`family "oak" is not one of [maple maple-2bit]`:      {Family: "oak"},
	} {
		folder := filepath.Join(t.TempDir(), "weights")
		_, err := Write(t.Context(), folder, options)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", options, err, want)
		}
		checkAbsent(t, folder)
	}
}

// oneLayer is the smallest slice that has codes, scales and every float type.
var oneLayer = Options{Seed: 7, Layers: 1, Vocabulary: 256, TextOnly: true}

// goldenSet is the set digest of oneLayer.
const goldenSet = "sha256:a931b64e4c60420ec2a9fb43dff95130fca437813fb076b79d66032fbd898da1"

func TestSameBytesWhateverTheCores(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	alone := setDigest(t, write(t, oneLayer))
	runtime.GOMAXPROCS(max(before, 2))
	together := setDigest(t, write(t, oneLayer))
	runtime.GOMAXPROCS(before)
	if alone != together {
		t.Errorf("one core gives %s, several give %s", alone, together)
	}
	if alone != goldenSet {
		t.Errorf("set digest %s, want %s", alone, goldenSet)
	}
	other := oneLayer
	other.Seed++
	if setDigest(t, write(t, other)) == alone {
		t.Error("another seed gives the same bytes")
	}
}

func write(t *testing.T, options Options) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "weights")
	summary, err := Write(t.Context(), folder, options)
	if err != nil {
		t.Fatal(err)
	}
	onDisk := int64(0)
	for _, f := range listing(t, folder).Files {
		onDisk += f.Size
	}
	if onDisk != summary.Bytes {
		t.Errorf("%d bytes on disk, the summary says %d", onDisk, summary.Bytes)
	}
	return folder
}

func listing(t *testing.T, folder string) *content.Tree {
	t.Helper()
	tree, err := content.OpenFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func setDigest(t *testing.T, folder string) string {
	t.Helper()
	var files []manifest.File
	for _, f := range listing(t, folder).Files {
		data, err := os.ReadFile(filepath.Join(folder, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		f.Digest = manifest.DigestBytes(data)
		files = append(files, f.File)
	}
	return manifest.SetDigest(files).String()
}

func TestValuesArePlausible(t *testing.T) {
	folder := write(t, oneLayer)
	shards, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	if err != nil || len(shards) != 4 {
		t.Fatalf("%d shards, error %v", len(shards), err)
	}
	zero := bytes.Repeat([]byte{0x55}, 32)
	units := map[string]string{}
	for _, shard := range shards {
		data, err := os.ReadFile(shard)
		if err != nil {
			t.Fatal(err)
		}
		header, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range header.Tensors {
			values := data[header.DataStart+tensor.Begin : header.DataStart+tensor.End]
			if tensor.DType == safetensors.U8 {
				for unit := range slices.Chunk(values, 32) {
					if bytes.Equal(unit, zero) {
						t.Errorf("%s: a unit is all zeros", tensor.Name)
					}
				}
			} else {
				checkFloats(t, tensor, values)
			}
			if len(values) >= 64 {
				if twin := units[string(values[:64])]; twin != "" {
					t.Errorf("%s begins as %s does", tensor.Name, twin)
				}
				units[string(values[:64])] = tensor.Name
			}
		}
	}
}

// checkFloats compares mean and spread of a tensor with what its name asks for.
func checkFloats(t *testing.T, tensor safetensors.Tensor, values []byte) {
	t.Helper()
	sum, squares, n := 0.0, 0.0, float64(tensor.Elements())
	width := tensor.DType.Bits() / 8
	for v := range slices.Chunk(values, width) {
		f := decode(tensor.DType, v)
		if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
			t.Fatalf("%s has a value %v", tensor.Name, f)
		}
		sum += f
		squares += f * f
	}
	mean := sum / n
	spread := math.Sqrt(squares/n - mean*mean)
	want := struct{ mean, spread float64 }{0, 0.02}
	switch {
	case strings.HasSuffix(tensor.Name, ".scales"): // log-normal: 0.02 exp(0.3^2/2), and its spread
		want.mean, want.spread = 0.02092, 0.00642
	case strings.HasSuffix(tensor.Name, "linear_attn.norm.weight"):
		want.mean, want.spread = 1, 0.05
	case strings.HasSuffix(tensor.Name, "norm.weight"):
		want.mean, want.spread = 0, 0.05
	case strings.HasSuffix(tensor.Name, "A_log"): // the logarithm of a uniform number in 1 to 16
		want.mean, want.spread = 1.957, 0.664
	case strings.HasSuffix(tensor.Name, "dt_bias"):
		want.mean, want.spread = -4.59, 1.34
	}
	near := func(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }
	if !near(mean, want.mean, 5*want.spread/math.Sqrt(n)) || !near(spread, want.spread, want.spread*(0.01+4/math.Sqrt(n))) {
		t.Errorf("%s: mean %.4f and spread %.4f, want %.4f and %.4f", tensor.Name, mean, spread, want.mean, want.spread)
	}
}

func decode(dtype safetensors.DType, v []byte) float64 {
	switch dtype {
	case safetensors.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
	case safetensors.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(v)) << 16))
	case safetensors.F16: // normal and positive, as scales are
		b := binary.LittleEndian.Uint16(v)
		return math.Ldexp(1024+float64(b&0x3ff), int(b>>10)-25)
	}
	return math.NaN()
}

// TestVerifierAccepts holds a slice with both kinds of layers against every
// static gate and the contract of the same slice.
func TestVerifierAccepts(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 130 MB")
	}
	options := Options{Layers: 4, Vocabulary: 1024, TextOnly: true}
	profile, _, err := config.LoadProfile("practice")
	if err != nil {
		t.Fatal(err)
	}
	contract := options.Model().Contract()
	r, err := verify.Run(t.Context(), listing(t, write(t, options)), verify.Options{Profile: profile, Contract: &contract})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		var text bytes.Buffer
		_ = r.WriteText(&text)
		t.Fatalf("%v\n%s", err, &text)
	}
	for _, id := range []string{"safetensors", "index", "coverage", "ternary", "stored", "config"} {
		gate, _ := r.Gate(id)
		findings := slices.DeleteFunc(slices.Clone(gate.Findings), func(f report.Finding) bool { return f.Path == "tokenizer.json" }) // none is written
		if gate.Status != report.Pass || len(findings) > 0 {
			t.Errorf("gate %s: %s, %v", id, gate.Status, findings)
		}
	}
	packed := 0
	for _, tensor := range r.Tensors {
		h := tensor.Histogram
		if h == nil {
			continue // a float tensor
		}
		packed++
		total := float64(h[0] + h[1] + h[2])
		if h[3] != 0 || math.Abs(float64(h[0])/total-0.3) > 0.01 || math.Abs(float64(h[1])/total-0.4) > 0.01 {
			t.Errorf("%s: codes %v, want 0.3, 0.4, 0.3 and none", tensor.Name, *h)
		}
	}
	if packed != 3*6+7 {
		t.Errorf("%d packed tensors, want six a delta net layer and seven a full one", packed)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	folder := filepath.Join(t.TempDir(), "weights")
	if _, err := Write(ctx, folder, oneLayer); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	checkAbsent(t, folder)

	mine := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), filepath.Dir(mine), oneLayer); err == nil {
		t.Error("a folder with files in it was taken")
	}
	if entries, err := os.ReadDir(filepath.Dir(mine)); err != nil || len(entries) != 1 {
		t.Errorf("%v, error %v: want only the file that was there", entries, err)
	}
}

// checkAbsent checks that neither a folder nor a temporary one beside it is there.
func checkAbsent(t *testing.T, folder string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v (error %v)", entries, err)
	}
}
