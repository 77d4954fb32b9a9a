package verify

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// kept cuts the sampled bytes out of a tensor's.
func kept(data []byte, ranges []scan.Range) (parts [][]byte) {
	for _, r := range ranges {
		parts = append(parts, data[r.Begin:r.End])
	}
	return parts
}

// The signs that are sampled of codes are those of the weights at the same
// places of the dense tensor, in every format.
func TestSampledSignsAreThoseOfTheWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, e := range []manifest.Quantity{
		{Kind: manifest.KindPacked2Bit, GroupSize: 64, Shape: []int64{3, 128}},
		{Kind: manifest.KindPacked2Bit, GroupSize: 64, Shape: []int64{1024, 1024}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatMLXRowAlpha, Shape: []int64{2, 300, 1024}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatBitNetU8, Shape: []int64{5, 30}},
		{Kind: manifest.KindPacked2Bit, Format: manifest.FormatBitNetU8, Shape: []int64{2049, 640}},
	} {
		l, err := layoutOf(e)
		if err != nil {
			t.Fatal(err)
		}
		trits := make([]int8, l.Elements())
		dense := make([]byte, 2*len(trits))
		for i := range trits {
			trits[i] = int8(r.IntN(3) - 1)
			binary.LittleEndian.PutUint16(dense[2*i:], []uint16{0xbc00, 0x8000, 0x3c00}[trits[i]+1])
		}
		codes, err := l.EncodeCodes(trits)
		if err != nil {
			t.Fatal(err)
		}
		a := signsOfCodes(&l, kept(codes, codeSamples(&l)))
		tensor := safetensors.Tensor{DType: safetensors.F16, Shape: e.Shape}
		b := signsOfValues(tensor, kept(dense, valueSamples(tensor)))
		if len(a) == 0 || len(a[0]) == 0 {
			t.Fatalf("%s %v: nothing is sampled", e.Format, e.Shape)
		}
		for first, got := range a {
			if want := trits[first : first+int64(len(got))]; !slices.Equal(got, want) || !slices.Equal(b[first], want) {
				t.Errorf("%s %v, weight %d: codes give %v, values %v, want %v", e.Format, e.Shape, first, got, b[first], want)
			}
		}
		if like := compareSigns(a, b); like.weights == 0 || like.agree != like.weights || like.differ != 0 {
			t.Errorf("%s %v: compared %+v", e.Format, e.Shape, like)
		}
	}
}

// A float tensor with the base's own bytes of a tensor that is declared ternary
// is found by its digest, whatever the signs of the codes are.
func TestTheBasesOwnTensorIsFound(t *testing.T) {
	f := newFixture()
	own := make([]byte, 2*256*256)
	for i := range own {
		own[i] = byte(i * i >> 3 & 0x3f)
	}
	f.shards["weights/side.safetensors"] = map[string]*stored{"cache": {safetensors.BF16, []int64{256, 256}, own}}
	profile := toyProfile()
	pin := func(data []byte) {
		tensor := profile.Bases[0].Contract.Tensors[gate0]
		tensor.SHA256 = manifest.DigestBytes(data).Hex()
		profile.Bases[0].Contract.Tensors[gate0] = tensor
	}
	pin([]byte("another"))
	if report := run(t, f.write(t), Options{Profile: profile}); report.Err() != nil {
		t.Errorf("the clean twin: %v\n%s", report.Err(), text(t, report))
	}
	pin(own)
	report := run(t, f.write(t), Options{Profile: profile})
	only(t, report, "ternary", "weights/side.safetensors", "is the base's "+gate0)
}

func TestFieldNamesOfTheTask(t *testing.T) {
	root := newFixture().write(t)
	name := filepath.Join(root, manifest.QuantizationPath)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	foreign := strings.NewReplacer(`"codes":`, `"packed":`, `"tensors":`, `"entries":`, `"packed_2bit"`, `"two_bit"`).Replace(string(data))
	if err := os.WriteFile(name, []byte(foreign), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, manifest.InventoryPath)); err != nil {
		t.Fatal(err)
	}
	profile := toyProfile()
	only(t, run(t, root, Options{Profile: profile}), "declared", manifest.QuantizationPath, "unknown key")
	rules := *profile.Ternary
	rules.Names = manifest.FieldNames{"codes": "packed", "tensors": "entries", "packed_2bit": "two_bit"}
	profile.Ternary = &rules
	if report := run(t, root, Options{Profile: profile}); report.Err() != nil {
		t.Errorf("%v\n%s", report.Err(), text(t, report))
	}
}

// A base that cannot be read is no verdict about the submission.
func TestBrokenBase(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "model.safetensors"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	options := Options{Profile: toyProfile(), Base: openFolder(t, folder)}
	_, err := Run(t.Context(), openFolder(t, newFixture().write(t)), options)
	if err == nil || !strings.Contains(err.Error(), "read header of model.safetensors") {
		t.Errorf("error %v", err)
	}
}

// Of signs that agree in two thirds one doubts, and no more.
func TestFewSignsOfTheBase(t *testing.T) {
	f := newFixture()
	l, err := layoutOf(f.quant.Tensors[gate0])
	if err != nil {
		t.Fatal(err)
	}
	codes := f.codes(gate0).data
	values := make([]byte, 2*256*256)
	for i := range int64(256 * 256) {
		at, shift := l.Slot(i)
		bits := uint16(0x2800)
		if code := codes[at] >> shift & 3; code == ternary.Minus != (i%3 == 0) {
			bits |= 0x8000
		}
		binary.LittleEndian.PutUint16(values[2*i:], bits)
	}
	folder := t.TempDir()
	shard := encodeShard(map[string]*stored{gate0: {safetensors.F16, []int64{256, 256}, values}})
	if err := os.WriteFile(filepath.Join(folder, "model.safetensors"), shard, 0o644); err != nil {
		t.Fatal(err)
	}
	report := run(t, f.write(t), Options{Profile: toyProfile(), Base: openFolder(t, folder)})
	if report.Err() != nil {
		t.Fatalf("%v\n%s", report.Err(), text(t, report))
	}
	vector{names: "of its signs are the base's"}.look(t, report, "ternary", Warning)
}

// A packed tensor of any format whose file is in an artifact is judged alike.
func TestVectorsInAnArtifact(t *testing.T) {
	root := filepath.Join(vectorFolder, "clean")
	m := bundle(t, root, func(*manifest.Artifact, *manifest.ModelConfig) {})
	options := vectorOptions(t, map[string]string{}, vectorContract(t))
	options.Profile.Gates = []string{"coverage", "ternary", "stored"}
	if report := verifyBundle(t, m, options); report.Err() != nil || report.Origin == content.OriginFolder {
		t.Errorf("%v\n%s", report.Err(), text(t, report))
	}
}
