package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/bundle/pack/packtest"
	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// tensor is a tensor of a test's checkpoint.
type tensor struct {
	name  string
	dtype safetensors.DType
	shape []int64
	data  []byte
}

// shardBytes writes a safetensors file.
func shardBytes(t testing.TB, metadata map[string]string, tensors ...tensor) []byte {
	t.Helper()
	var headers []safetensors.Tensor
	var data []byte
	for _, x := range tensors {
		headers = append(headers, safetensors.Tensor{Name: x.name, DType: x.dtype, Shape: x.shape})
		data = append(data, x.data...)
	}
	header, err := safetensors.EncodeHeader(headers, metadata)
	if err != nil {
		t.Fatal(err)
	}
	return append(header, data...)
}

func writeFiles(t testing.TB, folder string, files map[string]string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// readFolder returns the files of a folder by name.
func readFolder(t testing.TB, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(data)
	}
	return files
}

// storedTensors returns the tensors of a folder's shards by name, and their files.
func storedTensors(t testing.TB, folder string) (map[string]tensor, map[string]string) {
	t.Helper()
	found, files := map[string]tensor{}, map[string]string{}
	for name, data := range readFolder(t, folder) {
		if !strings.HasSuffix(name, shardEnding) {
			continue
		}
		h, err := safetensors.ReadHeader(strings.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, x := range h.Tensors {
			found[x.Name] = tensor{x.Name, x.DType, x.Shape, []byte(data[h.DataStart+x.Begin : h.DataStart+x.End])}
			files[x.Name] = name
		}
	}
	return found, files
}

func decodeManifest(t testing.TB, folder string) manifest.Quantization {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, manifest.QuantizationPath))
	if err != nil {
		t.Fatal(err)
	}
	q, err := manifest.DecodeQuantization(data)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// bits16 writes 16-bit values.
func bits16(values ...uint16) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	return out
}

// ternaryValues draws 16-bit values whose units of consecutive weights have the
// magnitude that scale gives; a third is zero.
func ternaryValues(r *rand.Rand, n, unit int64, scale func(unit int64) uint16) []byte {
	var out []byte
	for i := range n {
		v := scale(i / unit)
		switch r.IntN(3) {
		case 0:
			v = 0
		case 1:
			v |= 0x8000
		}
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	return out
}

// normal draws BF16 values of all magnitudes.
func normal(r *rand.Rand, n int64) []byte {
	var out []byte
	for range n {
		out = binary.LittleEndian.AppendUint16(out, uint16(0x3c00+r.IntN(0x300))|uint16(r.IntN(2))<<15)
	}
	return out
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// distinct gives each unit another BF16 magnitude.
func distinct(unit int64) uint16 { return 0x3c00 + uint16(unit%0x200) }

// sample is a small checkpoint in two shards, with everything that packing
// treats in its own way.
func sample(t testing.TB) map[string]string {
	r := seeded(1)
	bf16 := safetensors.BF16
	embedding := normal(r, 64*64)
	first := shardBytes(t, map[string]string{"format": "pt"},
		tensor{"model.embed_tokens.weight", bf16, []int64{64, 64}, embedding},
		tensor{"model.layers.0.mlp.up_proj.weight", bf16, []int64{12, 64}, ternaryValues(r, 12*64, 64, distinct)},
		tensor{"model.layers.0.mlp.router.weight", bf16, []int64{4, 64}, normal(r, 4*64)},
		tensor{"model.layers.0.A_log", safetensors.F32, []int64{3}, make([]byte, 12)},
	)
	second := shardBytes(t, map[string]string{"format": "pt", "shard": "2"},
		tensor{"model.layers.1.experts.weight", safetensors.F16, []int64{3, 4, 128}, ternaryValues(r, 3*4*128, 32, distinct)},
		tensor{"model.layers.1.mlp.down_proj.weight", bf16, []int64{8, 64}, ternaryValues(r, 8*64, 8*64, distinct)},
		tensor{"model.visual.patch.weight", bf16, []int64{8, 64}, ternaryValues(r, 8*64, 64, distinct)},
		tensor{"lm_head.weight", bf16, []int64{64, 64}, embedding},
		tensor{"scalar", safetensors.F32, nil, make([]byte, 4)},
	)
	weights := map[string]string{}
	for _, name := range []string{"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.router.weight", "model.layers.0.A_log"} {
		weights[name] = "model-00001-of-00002.safetensors"
	}
	for _, name := range []string{"model.layers.1.experts.weight", "model.layers.1.mlp.down_proj.weight", "model.visual.patch.weight", "lm_head.weight", "scalar"} {
		weights[name] = "model-00002-of-00002.safetensors"
	}
	index, err := json.MarshalIndent(map[string]any{"metadata": map[string]any{"total_size": len(first) + len(second), "note": "kept"}, "weight_map": weights}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"model-00001-of-00002.safetensors": string(first),
		"model-00002-of-00002.safetensors": string(second),
		safetensors.IndexName:              string(index),
		"config.json":                      `{"tie_word_embeddings": true}`,
		"tokenizer.json":                   "{}",
	}
}

func mustPack(t testing.TB, from string, options Options) (string, *Report) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "packed")
	report, err := Folder(t.Context(), from, to, options)
	if err != nil {
		t.Fatal(err)
	}
	return to, report
}

func mustUndo(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "restored")
	if _, err := Undo(t.Context(), from, to, Options{}); err != nil {
		t.Fatal(err)
	}
	return to
}

func sameFiles(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs or is missing", name)
		}
	}
	for name := range got {
		if _, known := want[name]; !known {
			t.Errorf("%s is too much", name)
		}
	}
}

func TestPackAndUndo(t *testing.T) {
	files := sample(t)
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), files)
	packed, report := mustPack(t, from, Options{Ternary: true, DropTiedHead: true})

	units := map[string]Unit{}
	for _, p := range report.Packed {
		units[p.Name] = p.Unit
	}
	for name, want := range map[string]Unit{
		"model.layers.0.mlp.up_proj.weight":   {Kind: manifest.UnitRow},
		"model.layers.1.experts.weight":       {manifest.UnitGroup, 32},
		"model.layers.1.mlp.down_proj.weight": {Kind: manifest.UnitTensor},
	} {
		if units[name] != want {
			t.Errorf("%s is packed by %v, want %v", name, units[name], want)
		}
	}
	if len(units) != 3 || len(report.Kept) != 5 || len(report.Dropped) != 1 || report.Dropped[0].Bytes != 8192 || report.NegativeZeros != 0 {
		t.Errorf("report %+v", report)
	}
	stored, at := storedTensors(t, packed)
	for name, want := range map[string]string{
		"model.layers.0.mlp.up_proj.weight.codes":    "ternary-00001.safetensors U8 [12 16]",
		"model.layers.0.mlp.up_proj.weight.scales":   "ternary-00001.safetensors BF16 [12 1]",
		"model.layers.1.experts.weight.codes":        "ternary-00001.safetensors U8 [3 4 32]",
		"model.layers.1.experts.weight.scales":       "ternary-00001.safetensors F16 [3 4 4]",
		"model.layers.1.mlp.down_proj.weight.scales": "ternary-00001.safetensors BF16 [1]",
		"model.visual.patch.weight":                  "float-00001.safetensors BF16 [8 64]",
		"scalar":                                     "float-00001.safetensors F32 []",
	} {
		if got := fmt.Sprintf("%s %s %v", at[name], stored[name].dtype, stored[name].shape); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	q := decodeManifest(t, packed)
	if len(q.Tensors) != 8 {
		t.Errorf("%d entries: %v", len(q.Tensors), q.Names())
	}
	if e := q.Tensors["model.layers.0.mlp.up_proj.weight"]; e.Kind != manifest.KindPacked2Bit || e.Unit != "row" || e.ScaleDType != "BF16" || e.GroupSize != 0 {
		t.Errorf("entry %+v", e)
	}
	sameFiles(t, readFolder(t, mustUndo(t, packed)), files)
}

// The trained example, exported densely, packs to the codes and scales that it
// was made of.
func TestAbacusPacksToItself(t *testing.T) {
	const example = "../../examples/abacus/ternary"
	original, _ := storedTensors(t, example)
	from := filepath.Join(t.TempDir(), "dense")
	if err := packtest.Dense(example, from); err != nil {
		t.Fatal(err)
	}
	packed, report := mustPack(t, from, Options{Ternary: true})
	if len(report.Packed) != 50 {
		t.Errorf("%d tensors packed", len(report.Packed))
	}
	got, _ := storedTensors(t, packed)
	if len(got) != len(original) {
		t.Errorf("%d stored tensors, want %d", len(got), len(original))
	}
	for name, want := range original {
		if g := got[name]; g.dtype != want.dtype || !slices.Equal(g.shape, want.shape) || !bytes.Equal(g.data, want.data) {
			t.Errorf("%s: %s %v, want %s %v, or other bytes", name, g.dtype, g.shape, want.dtype, want.shape)
		}
	}
	entries, want := decodeManifest(t, packed).Tensors, decodeManifest(t, example).Tensors
	for name, e := range want {
		if g := entries[name]; g.Kind != e.Kind || g.GroupSize != e.GroupSize || !slices.Equal(g.Shape, e.Shape) {
			t.Errorf("entry %s is %+v, want %+v", name, g, e)
		}
	}
}

// The signs of zeros are lost and counted; everything else comes back.
func TestNegativeZeros(t *testing.T) {
	values := slices.Repeat(bits16(0x3c00, 0x8000, 0xbc00, 0), 16)
	want := slices.Repeat(bits16(0x3c00, 0, 0xbc00, 0), 16)
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), map[string]string{
		"a.safetensors": string(shardBytes(t, nil, tensor{"w", safetensors.BF16, []int64{1, 64}, values}, tensor{"v", safetensors.BF16, []int64{4}, bits16(0x8000, 0, 0, 0)})),
	})
	packed, report := mustPack(t, from, Options{Ternary: true})
	if report.NegativeZeros != 16 || report.Packed[0].NegativeZeros != 16 {
		t.Errorf("%d negative zeros counted, want 16", report.NegativeZeros)
	}
	sameFiles(t, readFolder(t, mustUndo(t, packed)), map[string]string{
		"a.safetensors": string(shardBytes(t, nil, tensor{"w", safetensors.BF16, []int64{1, 64}, want}, tensor{"v", safetensors.BF16, []int64{4}, bits16(0x8000, 0, 0, 0)})),
	})
}

// Headers come back byte for byte, whatever white space and order they have.
func TestUndoKeepsOddHeaders(t *testing.T) {
	text := `{ "w" : {"shape":[2,64],"data_offsets":[8,264], "dtype":"BF16"}, "\u0061" :{"dtype":"F32","data_offsets":[0,8],"shape":[2]},"__metadata__":{"b":"1","a":"\u00e9"}}   `
	raw := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	raw = append(append(raw, text...), make([]byte, 8)...)
	raw = append(raw, ternaryValues(seeded(2), 128, 64, distinct)...)
	files := map[string]string{"model.safetensors": string(raw), "run.sh": "#!/bin/sh\n"}
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), files)
	if err := os.Chmod(filepath.Join(from, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	packed, _ := mustPack(t, from, Options{Ternary: true})
	restored := mustUndo(t, packed)
	sameFiles(t, readFolder(t, restored), files)
	if info, err := os.Stat(filepath.Join(restored, "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh: %v, %v", info, err)
	}
}

// What is packed does not depend on the number of workers, nor on how the
// source was cut into shards.
func TestPackRepeats(t *testing.T) {
	files := sample(t)
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), files)
	one, _ := mustPack(t, from, Options{Ternary: true, DropTiedHead: true, Workers: 1, MaxShard: 9000})
	many, _ := mustPack(t, from, Options{Ternary: true, DropTiedHead: true, Workers: 7, MaxShard: 9000})
	sameFiles(t, readFolder(t, many), readFolder(t, one))

	resharded, _ := mustPack(t, from, Options{MaxShard: 6000})
	again, _ := mustPack(t, resharded, Options{Ternary: true, DropTiedHead: true, MaxShard: 9000})
	got, want := readFolder(t, again), readFolder(t, one)
	for name := range want {
		if name != RecordPath && !strings.HasPrefix(name, "float-") && got[name] != want[name] {
			t.Errorf("%s depends on how the source was cut", name)
		}
	}
}

// Open gives the bytes that Folder writes.
func TestOpenShard(t *testing.T) {
	from := writeFiles(t, filepath.Join(t.TempDir(), "dense"), sample(t))
	options := Options{Ternary: true, DropTiedHead: true, MaxShard: 5000}
	packed, _ := mustPack(t, from, options)
	written := readFolder(t, packed)
	root, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	out := arranged(t, root, options)
	if len(out.Shards) < 3 {
		t.Errorf("%d shards", len(out.Shards))
	}
	for _, s := range out.Shards {
		if got := readShard(t, root, s); got != written[s.Name] || int64(len(got)) != s.Size {
			t.Errorf("%s: other bytes than the folder has", s.Name)
		}
	}
	// A source that is another file now ends them.
	if err := os.WriteFile(filepath.Join(from, "model-00001-of-00002.safetensors"), []byte(sample(t)["model-00001-of-00002.safetensors"]), 0o644); err != nil {
		t.Fatal(err)
	}
	r := out.Shards[0].Open(t.Context(), root)
	defer r.Close()
	if _, err := new(bytes.Buffer).ReadFrom(r); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("error %v", err)
	}
}

func arranged(t testing.TB, root *os.Root, options Options) *Output {
	t.Helper()
	c, err := ReadCheckpoint(t.Context(), root, ".")
	if err != nil {
		t.Fatal(err)
	}
	survey, err := Look(t.Context(), root, c, options)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Arrange(c, survey, options)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readShard(t testing.TB, root *os.Root, s *Shard) string {
	t.Helper()
	r := s.Open(t.Context(), root)
	defer r.Close()
	var data bytes.Buffer
	if _, err := data.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return data.String()
}
