package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/ternary"
)

// toyModel is a hybrid of two layers, one of each kind, whose linears have 256
// or 128 inputs.
func toyModel() realshapes.Model {
	return realshapes.Model{
		Repository: "example/toy", Revision: strings.Repeat("ab", 20), Prefix: "model.",
		Vocabulary: 96, Hidden: 256, Intermediate: 256, Layers: 2, FullAttentionInterval: 2,
		Heads: 2, KeyValueHeads: 1, HeadDim: 64,
		LinearKeyHeads: 1, LinearValueHeads: 2, LinearHeadDim: 64, LinearKernel: 4,
		VisionDepth: 1, VisionHidden: 16, VisionIntermediate: 32, VisionPositions: 4, VisionMerge: 2,
		VisionPatch: []int64{3, 1, 2, 2}, PredictionLayers: 1,
	}
}

// stored is a tensor with its bytes.
type stored struct {
	dtype safetensors.DType
	shape []int64
	data  []byte
}

// fixture is a whole submission in memory, to be altered and written.
type fixture struct {
	group                       int64
	shards                      map[string]map[string]*stored // path -> tensor name -> tensor
	quant                       manifest.Quantization
	config                      map[string]any
	files                       map[string][]byte // every other file; "" content is an empty file
	noQuantization, noInventory bool
}

const (
	floatShard   = "weights/float-00001.safetensors"
	ternaryShard = "weights/ternary-00001.safetensors"

	gate0 = "model.layers.0.mlp.gate_proj.weight"        // [256,256], packed
	up1   = "model.layers.1.mlp.up_proj.weight"          // [256,256], packed
	out0  = "model.layers.0.linear_attn.out_proj.weight" // [256,128], packed
	embed = "model.embed_tokens.weight"
	norm  = "model.norm.weight"
)

func newFixture() *fixture { return newFixtureWithGroup(64) }

func newFixtureWithGroup(group int64) *fixture {
	f := &fixture{group: group, shards: map[string]map[string]*stored{floatShard: {}, ternaryShard: {}}, files: map[string][]byte{}}
	contract := toyModel().Contract()
	f.quant = manifest.Quantization{BaseModel: &contract.Repository, BaseRevision: &contract.Revision, Tensors: map[string]manifest.Quantity{}}
	for _, name := range contract.Names() {
		tensor := contract.Tensors[name]
		switch {
		case tensor.Role == manifest.RoleVision || tensor.Role == manifest.RoleMTP:
		case realshapes.Packable(name):
			f.pack(name, tensor.Shape)
		default:
			dtype, _ := safetensors.ParseDType(tensor.DType)
			f.float(name, dtype, tensor.Shape)
		}
	}
	f.addConfig()
	f.addDocuments(contract)
	return f
}

func (f *fixture) addConfig() {
	m := toyModel()
	f.config = map[string]any{
		"architectures": []string{"Qwen3_5ForCausalLM"}, "hidden_size": m.Hidden, "intermediate_size": m.Intermediate,
		"num_hidden_layers": m.Layers, "vocab_size": m.Vocabulary, "num_attention_heads": m.Heads,
		"num_key_value_heads": m.KeyValueHeads, "head_dim": m.HeadDim, "tie_word_embeddings": true,
		"layer_types":          []string{"linear_attention", "full_attention"},
		"linear_num_key_heads": m.LinearKeyHeads, "linear_num_value_heads": m.LinearValueHeads,
		"linear_key_head_dim": m.LinearHeadDim, "linear_value_head_dim": m.LinearHeadDim, "linear_conv_kernel_dim": m.LinearKernel,
		"eos_token_id": 95,
	}
}

func (f *fixture) addDocuments(contract manifest.Contract) {
	f.files["serve.sh"] = []byte("#!/bin/sh\nexec python3 -u -m http.server 8000\n")
	f.files["DATA.md"] = []byte("No data was used.\n")
	f.files["weights/tokenizer.json"] = []byte(`{"added_tokens":[{"id":95,"content":"<end>"}],"model":{"vocab":{"a":0,"b":1}}}`)
	f.files["weights/generation_config.json"] = []byte(`{"eos_token_id":[95,94]}`)
	base := map[string]any{"label": "language", "repository": contract.Repository, "revision": contract.Revision}
	f.files[architecturePath] = mustJSON(map[string]any{"schema": 1, "base": []any{base}, "added_components": []any{}})
	f.files[startingPath] = mustJSON(map[string]any{"schema": 1, "artifacts": []any{base}})
	data, err := contract.Encode()
	if err != nil {
		panic(err)
	}
	f.files[backbonePath] = data
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// random yields numbers that depend on name alone.
func random(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// pack adds a packed entry with random codes and scales.
func (f *fixture) pack(name string, shape []int64) {
	r := random(name)
	rows, k := shape[0], shape[1]
	codes := make([]byte, rows*k/4)
	for i := range codes {
		for j := range 4 {
			codes[i] |= byte(r.IntN(3)) << (2 * j)
		}
	}
	scales := make([]byte, rows*k/f.group*2)
	for i := 0; i < len(scales); i += 2 {
		binary.LittleEndian.PutUint16(scales[i:], 0x2000+uint16(r.IntN(0x400)))
	}
	f.shards[ternaryShard][name+".codes"] = &stored{safetensors.U8, []int64{rows, k / 4}, codes}
	f.shards[ternaryShard][name+".scales"] = &stored{safetensors.F16, []int64{rows, k / f.group}, scales}
	f.quant.Tensors[name] = manifest.Quantity{
		Kind: manifest.KindPacked2Bit, Shape: shape, GroupSize: f.group,
		Codes:  &manifest.StoredTensor{File: ternaryShard, Tensor: name + ".codes"},
		Scales: &manifest.StoredTensor{File: ternaryShard, Tensor: name + ".scales"},
	}
}

// float adds a float entry with random values of about 1/100.
func (f *fixture) float(name string, dtype safetensors.DType, shape []int64) {
	r := random(name)
	n, _ := ternary.Product(shape)
	data := make([]byte, n*int64(dtype.Bits())/8)
	for i := 0; i < len(data); i += dtype.Bits() / 8 {
		bits := 0x3c000000 + r.Uint32N(0x800000)
		switch dtype {
		case safetensors.F32:
			binary.LittleEndian.PutUint32(data[i:], bits)
		case safetensors.BF16:
			binary.LittleEndian.PutUint16(data[i:], uint16(bits>>16))
		default:
			panic("no such floats here")
		}
	}
	f.shards[floatShard][name] = &stored{dtype, shape, data}
	f.quant.Tensors[name] = manifest.Quantity{Kind: manifest.KindFloat, Shape: shape, File: floatShard, Tensor: name}
}

// literal turns a packed entry into a BF16 literal one with one magnitude a row.
func (f *fixture) literal(name string) *stored {
	shape := f.quant.Tensors[name].Shape
	delete(f.shards[ternaryShard], name+".codes")
	delete(f.shards[ternaryShard], name+".scales")
	r := random(name)
	s := &stored{safetensors.BF16, shape, make([]byte, shape[0]*shape[1]*2)}
	for row := range shape[0] {
		magnitude := 0x3c00 + uint16(r.IntN(0x80))
		for k := range shape[1] {
			v := uint16(0)
			switch r.IntN(3) {
			case 0:
				v = magnitude
			case 1:
				v = magnitude | 0x8000
			}
			s.set16(row*shape[1]+k, v)
		}
	}
	f.shards[floatShard][name] = s
	f.quant.Tensors[name] = manifest.Quantity{Kind: manifest.KindLiteral, Shape: shape, File: floatShard, Tensor: name}
	return s
}

func (s *stored) set16(element int64, v uint16) { binary.LittleEndian.PutUint16(s.data[2*element:], v) }

func (s *stored) get16(element int64) uint16 { return binary.LittleEndian.Uint16(s.data[2*element:]) }

func (f *fixture) codes(name string) *stored  { return f.shards[ternaryShard][name+".codes"] }
func (f *fixture) scales(name string) *stored { return f.shards[ternaryShard][name+".scales"] }

// edit changes an entry of the quantization manifest.
func (f *fixture) edit(name string, change func(*manifest.Quantity)) {
	entry := f.quant.Tensors[name]
	change(&entry)
	f.quant.Tensors[name] = entry
}

// encodeShard writes tensors sorted by name.
func encodeShard(tensors map[string]*stored) []byte {
	var list []safetensors.Tensor
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		list = append(list, safetensors.Tensor{Name: name, DType: t.dtype, Shape: t.shape})
		data = append(data, t.data...)
	}
	header, err := safetensors.EncodeHeader(list, nil)
	if err != nil {
		panic(err)
	}
	return append(header, data...)
}

// rawShard writes a safetensors file with any header text.
func rawShard(header string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), bytes.Repeat([]byte{0}, data)...)
}

// index writes the index of the fixture's shards.
func (f *fixture) index() map[string]string {
	weightMap := map[string]string{}
	for shard, tensors := range f.shards {
		for name := range tensors {
			weightMap[name] = filepath.Base(shard)
		}
	}
	return weightMap
}

func (f *fixture) addIndex(weightMap map[string]string) {
	f.files["weights/model.safetensors.index.json"] = mustJSON(map[string]any{"metadata": map[string]any{}, "weight_map": weightMap})
}

// write writes the submission below a new folder, its inventory last.
func (f *fixture) write(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	all := maps.Clone(f.files)
	for shard, tensors := range f.shards {
		all[shard] = encodeShard(tensors)
	}
	if f.config != nil {
		all["weights/config.json"] = mustJSON(f.config)
	}
	if !f.noQuantization {
		data, err := f.quant.Encode()
		if err != nil {
			t.Fatal(err)
		}
		all[manifest.QuantizationPath] = data
	}
	if !f.noInventory {
		all[manifest.InventoryPath] = inventoryOf(t, all)
	}
	for p, data := range all {
		full := filepath.Join(root, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, data, os.FileMode(modeOf(p))); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func modeOf(p string) manifest.Mode {
	if strings.HasSuffix(p, ".sh") {
		return manifest.ModeExecutable
	}
	return manifest.ModeFile
}

func inventoryOf(t *testing.T, all map[string][]byte) []byte {
	t.Helper()
	var inventory manifest.Inventory
	for p, data := range all {
		inventory.Files = append(inventory.Files, manifest.File{Path: p, Mode: modeOf(p), Size: int64(len(data)), Digest: manifest.DigestBytes(data)})
	}
	manifest.SortFiles(inventory.Files)
	data, err := inventory.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// toyProfile pins the toy base and its contract.
func toyProfile() profiles.Profile {
	contract := toyModel().Contract()
	p := practice()
	p.Name = "toy"
	p.Bases = []profiles.Base{{Label: "language", Repository: contract.Repository, Revision: contract.Revision, Contract: &contract}}
	p.Required = []profiles.Required{
		{Path: "serve.sh", Why: "the entry point"}, {Path: "weights/*.safetensors"}, {Path: "quantization_manifest.json"},
		{Path: architecturePath, Generated: true}, {Path: startingPath, Generated: true}, {Path: backbonePath, Generated: true}, {Path: "DATA.md"},
	}
	p.MaxBytes = 8 << 20
	// One of the toy's tensors is a tenth of it: wide bounds, so that its fault
	// is not the fraction's too.
	p.Ternary.FractionAbove = profiles.Ratio{Numerator: 50, Denominator: 100}
	p.Ternary.StoredAtMost = profiles.Ratio{Numerator: 15, Denominator: 10}
	return p
}

// taskBounds is the toy profile with the bounds of the real tasks.
func taskBounds() profiles.Profile {
	p := toyProfile()
	p.Ternary = practice().Ternary
	return p
}

// withoutBase is the toy profile with nothing pinned.
func withoutBase() profiles.Profile {
	p := toyProfile()
	p.Bases = nil
	return p
}

func strict(p profiles.Profile) profiles.Profile {
	rules := *p.Ternary
	rules.Counting = report.CountStrict
	p.Ternary = &rules
	return p
}
