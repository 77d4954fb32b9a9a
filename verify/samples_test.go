package verify

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/ternary"
)

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

// A base without weights was named by mistake.
func TestBaseWithoutWeights(t *testing.T) {
	options := Options{Profile: toyProfile(), Base: openFolder(t, t.TempDir())}
	_, err := Run(t.Context(), openFolder(t, newFixture().write(t)), options)
	if err == nil || !strings.Contains(err.Error(), "there is no .safetensors file") {
		t.Errorf("error %v", err)
	}
}

// The report says whether the base was at hand, and which files it was.
func TestReportNamesTheBase(t *testing.T) {
	root, contract := filepath.Join(vectorFolder, "clean"), vectorContract(t)
	with := run(t, root, vectorOptions(t, map[string]string{"base": "at hand"}, contract))
	if out := text(t, with); !strings.Contains(out, "files of the base in ") || !strings.Contains(out, "compared with weights of the base: ") {
		t.Errorf("with the base:\n%s", out)
	}
	without := run(t, root, vectorOptions(t, map[string]string{}, contract))
	if out := text(t, without); strings.Contains(out, "files of the base in ") || !strings.Contains(out, "without the base's weights (--base) it was not decided") {
		t.Errorf("without:\n%s", out)
	}
}

// Of signs that agree in two thirds one doubts, and no more.
func TestFewSignsOfTheBase(t *testing.T) {
	f := newFixture()
	l, err := ternary.LayoutOf(f.quant.Tensors[gate0])
	if err != nil {
		t.Fatal(err)
	}
	codes := f.codes(gate0).data
	values := make([]byte, 2*256*256)
	for i := range int64(256 * 256) {
		bits := uint16(0x2800)
		if l.Read(codes, 0, i) == ternary.Minus != (i%3 == 0) {
			bits |= 0x8000
		}
		binary.LittleEndian.PutUint16(values[2*i:], bits)
	}
	folder := t.TempDir()
	shard := encodeShard(map[string]*stored{gate0: {safetensors.F16, []int64{256, 256}, values}})
	if err := os.WriteFile(filepath.Join(folder, "model.safetensors"), shard, 0o644); err != nil {
		t.Fatal(err)
	}
	r := run(t, f.write(t), Options{Profile: toyProfile(), Base: openFolder(t, folder)})
	if r.Err() != nil {
		t.Fatalf("%v\n%s", r.Err(), text(t, r))
	}
	vector{names: "of its signs are the base's"}.look(t, r, "ternary", report.Warning)
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
