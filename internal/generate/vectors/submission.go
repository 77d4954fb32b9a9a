package main

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"slipway/internal/generate/patch"
	"slipway/internal/realshapes"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// toyModel is a hybrid of two layers, one of each kind, with 256 inputs.
func toyModel() realshapes.Model {
	return realshapes.Model{
		Repository: "example/toy", Revision: strings.Repeat("ab", 20), Prefix: "model.",
		Vocabulary: 32, Hidden: 256, Intermediate: 64, Layers: 2, FullAttentionInterval: 2,
		Heads: 1, KeyValueHeads: 1, HeadDim: 64,
		LinearKeyHeads: 1, LinearValueHeads: 1, LinearHeadDim: 64, LinearKernel: 4,
		VisionDepth: 1, VisionHidden: 16, VisionIntermediate: 32, VisionPositions: 4, VisionMerge: 2,
		VisionPatch: []int64{3, 1, 2, 2}, PredictionLayers: 1,
	}
}

// The tensors that vectors alter, each stored in another way. Those without a word
// on it have 64 rows of 256 inputs.
const (
	key    = "model.layers.1.self_attn.k_proj.weight"        // packed_2bit, groups of 64
	value  = "model.layers.1.self_attn.v_proj.weight"        // packed_2bit, groups of 64
	rows   = "model.layers.0.mlp.gate_proj.weight"           // literal BF16, a magnitude a row
	groups = "model.layers.0.mlp.up_proj.weight"             // literal BF16, one for 128 weights
	wide   = "model.layers.0.linear_attn.in_proj_z.weight"   // literal F32, a magnitude a row
	affine = "model.layers.1.mlp.gate_proj.weight"           // mlx_affine_2bit, groups of 64
	alphas = "model.layers.1.mlp.up_proj.weight"             // mlx_row_alpha_2bit
	bitnet = "model.layers.1.mlp.down_proj.weight"           // bitnet_u8, 256 rows of 64 inputs
	padded = "model.layers.0.linear_attn.in_proj_a.weight"   // bitnet_u8, one row and three of padding
	gate   = "model.layers.0.linear_attn.in_proj_qkv.weight" // packed_2bit with the others, 192 rows

	minusTwo = "model.layers.0.mlp.down_proj.weight" // compressed_tensors_2bit, 256 rows of 64 inputs

	embedding = "model.embed_tokens.weight"
	norm      = "model.norm.weight"
	conv      = "model.layers.0.linear_attn.conv1d.weight"
)

// The shards.
const (
	floatShard   = "weights/float.safetensors"
	packedShard  = "weights/packed.safetensors"
	smallShard   = "weights/small.safetensors" // key and value, so that a changed header costs little
	literalShard = "weights/literal.safetensors"
	wideShard    = "weights/wide.safetensors"
	mlxShard     = "weights/mlx.safetensors"
	bitnetShard  = "weights/bitnet.safetensors"
	wordShard    = "weights/words.safetensors"
)

// tensor is a stored tensor with its bytes.
type tensor struct {
	dtype safetensors.DType
	shape []int64
	data  []byte
}

// submission is a whole one in memory, to be altered.
type submission struct {
	shards map[string]map[string]*tensor
	base   map[string]*tensor // of the base, the tensors that vectors compare with
	quant  manifest.Quantization
	config map[string]any
	texts  map[string]string // every other file
	raw    map[string][]byte // files that are written as they are
	links  map[string]string
}

// newSubmission makes the clean one.
func newSubmission() *submission {
	s := &submission{shards: map[string]map[string]*tensor{}, base: map[string]*tensor{}, raw: map[string][]byte{}, links: map[string]string{}}
	contract := toyModel().Contract()
	s.quant = manifest.Quantization{BaseModel: &contract.Repository, BaseRevision: &contract.Revision, Tensors: map[string]manifest.Quantity{}}
	for _, name := range contract.Names() {
		t := contract.Tensors[name]
		switch {
		case t.Role == manifest.RoleVision || t.Role == manifest.RoleMTP:
		case realshapes.Packable(name) || name == padded:
			s.ternary(name, t.Shape)
		default:
			dtype, _ := safetensors.ParseDType(t.DType)
			s.float(name, floatShard, dtype, t.Shape)
		}
	}
	s.addTexts()
	return s
}

func (s *submission) addTexts() {
	m := toyModel()
	s.config = map[string]any{
		"architectures": []string{"Qwen3_5ForCausalLM"}, "hidden_size": m.Hidden, "intermediate_size": m.Intermediate,
		"num_hidden_layers": m.Layers, "vocab_size": m.Vocabulary, "num_attention_heads": m.Heads,
		"num_key_value_heads": m.KeyValueHeads, "head_dim": m.HeadDim, "tie_word_embeddings": true,
		"layer_types":          []string{"linear_attention", "full_attention"},
		"linear_num_key_heads": m.LinearKeyHeads, "linear_num_value_heads": m.LinearValueHeads,
		"linear_key_head_dim": m.LinearHeadDim, "linear_value_head_dim": m.LinearHeadDim, "linear_conv_kernel_dim": m.LinearKernel,
		"eos_token_id": 31,
	}
	s.texts = map[string]string{
		"code/server.py":         "print('a server would be here')\n",
		"DATA.md":                "No data was used.\n",
		"weights/tokenizer.json": `{"added_tokens":[{"id":31,"content":"<end>"}],"model":{"vocab":{"a":0,"b":1}}}` + "\n",
	}
}

// random yields numbers that depend on name alone.
func random(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never returns an error
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// drawn keeps what was drawn, since every vector begins with the same weights.
var drawn = map[string][]float32{}

// trained are the base's weights of a tensor: multiples of 2^-10, which every
// floating-point type holds and an edit stores in a few bits.
func trained(name string, n int64) []float32 {
	r, values := random(name), drawn[name]
	if int64(len(values)) != n {
		values = make([]float32, n)
		for i := range values {
			values[i] = float32(math.Round(0.02*1024*r.NormFloat64()) / 1024)
		}
		drawn[name] = values
	}
	return slices.Clone(values)
}

// quantize makes weights ternary in units of so many: those above 0.7 of the
// mean magnitude become the mean of their magnitudes, which is rounded so that
// every scale type holds it.
func quantize(values []float32, unit int64) []float32 {
	out := make([]float32, len(values))
	for begin := 0; begin < len(values); begin += int(unit) {
		part := values[begin : begin+int(unit)]
		threshold := 0.7 * mean(part, 0)
		a := float32(math.Round(mean(part, threshold)*4096) / 4096)
		for i, v := range part {
			if math.Abs(float64(v)) > threshold {
				out[begin+i] = float32(math.Copysign(float64(a), float64(v)))
			}
		}
	}
	return out
}

// mean returns that of the magnitudes above a threshold.
func mean(values []float32, threshold float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if m := math.Abs(float64(v)); m > threshold {
			sum, n = sum+m, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// ternary stores a linear in the way that its name stands for.
func (s *submission) ternary(name string, shape []int64) {
	n := shape[0] * shape[1]
	values := trained(name, n)
	if slices.Contains([]string{key, value, padded}, name) {
		s.base[name] = &tensor{safetensors.BF16, shape, encode(safetensors.BF16, values)}
	}
	entry := manifest.Quantity{Kind: manifest.KindPacked2Bit, Shape: shape}
	switch name {
	case rows, groups, wide:
		unit, shard, dtype := shape[1], literalShard, safetensors.BF16
		if name == groups {
			unit = 128
		}
		if name == wide {
			shard, dtype = wideShard, safetensors.F32
		}
		s.literal(name, shard, dtype, shape, quantize(values, unit))
		return
	case affine:
		entry.Format, entry.GroupSize = manifest.FormatMLXAffine, 64
		s.pack(name, mlxShard, entry, safetensors.BF16, quantize(values, 64))
	case alphas:
		entry.Format = manifest.FormatMLXRowAlpha
		s.pack(name, mlxShard, entry, safetensors.BF16, quantize(values, shape[1]))
	case minusTwo:
		entry.Format, entry.GroupSize = manifest.FormatCompressedTensors, 64
		s.pack(name, wordShard, entry, safetensors.BF16, quantize(values, 64))
	case bitnet, padded:
		entry.Format = manifest.FormatBitNetU8
		s.pack(name, bitnetShard, entry, safetensors.F32, quantize(values, n))
	default:
		shard := packedShard
		if name == key || name == value {
			shard = smallShard
		}
		entry.GroupSize = 64
		s.pack(name, shard, entry, safetensors.F16, quantize(values, 64))
	}
}

// layoutOf returns the geometry of an entry that is known to have one.
func layoutOf(e manifest.Quantity) ternary.Layout {
	format, _ := ternary.Lookup(e.FormatID())
	l, err := format.Geometry(e)
	if err != nil {
		panic(err)
	}
	return l
}

// pack stores weights as an entry says.
func (s *submission) pack(name, shard string, entry manifest.Quantity, dtype safetensors.DType, values []float32) {
	l := layoutOf(entry)
	stored, err := l.Encode(values, dtype)
	if err != nil {
		panic(err)
	}
	put := func(capacity string, t *tensor) *manifest.StoredTensor {
		s.put(shard, name+"."+capacity, t)
		return &manifest.StoredTensor{File: shard, Tensor: name + "." + capacity}
	}
	entry.Codes = put("codes", &tensor{l.Codes.DType, l.Codes.Shape, stored.Codes})
	entry.Scales = put("scales", &tensor{dtype, l.Scales.Shape, stored.Scales})
	if l.Biases != nil {
		entry.Biases = put("biases", &tensor{dtype, l.Biases.Shape, stored.Biases})
	}
	s.quant.Tensors[name] = entry
}

func (s *submission) literal(name, shard string, dtype safetensors.DType, shape []int64, values []float32) {
	s.put(shard, name, &tensor{dtype, shape, encode(dtype, values)})
	s.quant.Tensors[name] = manifest.Quantity{Kind: manifest.KindLiteral, Shape: shape, File: shard, Tensor: name}
}

// float stores a tensor as a float entry, with values around one.
func (s *submission) float(name, shard string, dtype safetensors.DType, shape []int64) {
	n, _ := ternary.Product(shape)
	values := trained(name, n)
	for i := range values {
		values[i] = math.Float32frombits(math.Float32bits(1+values[i]) &^ 0xffff)
	}
	s.put(shard, name, &tensor{dtype, shape, encode(dtype, values)})
	s.quant.Tensors[name] = manifest.Quantity{Kind: manifest.KindFloat, Shape: shape, File: shard, Tensor: name}
}

func (s *submission) put(shard, name string, t *tensor) {
	if s.shards[shard] == nil {
		s.shards[shard] = map[string]*tensor{}
	}
	s.shards[shard][name] = t
}

// encode writes values that a type holds.
func encode(dtype safetensors.DType, values []float32) []byte {
	var out []byte
	for _, v := range values {
		switch b := math.Float32bits(v); dtype {
		case safetensors.F32:
			out = binary.LittleEndian.AppendUint32(out, b)
		case safetensors.BF16:
			out = binary.LittleEndian.AppendUint16(out, uint16(b>>16))
		case safetensors.F16:
			out = binary.LittleEndian.AppendUint16(out, float16(v))
		default:
			panic("no such values here")
		}
	}
	return out
}

// float16 is the F16 of a number below 2, cut off after ten bits; 0 for what F16
// has no normal number for.
func float16(v float32) uint16 {
	b := math.Float32bits(v)
	exponent := int(b>>23&0xff) - 127 + 15
	if exponent < 1 {
		return uint16(b >> 16 & 0x8000)
	}
	return uint16(b>>16&0x8000) | uint16(exponent)<<10 | uint16(b>>13&0x3ff)
}

// edit changes an entry of the quantization manifest.
func (s *submission) edit(name string, change func(*manifest.Quantity)) {
	entry := s.quant.Tensors[name]
	change(&entry)
	s.quant.Tensors[name] = entry
}

// stored returns a stored tensor of an entry: its codes, scales, biases, or, ""
// for the capacity, its values.
func (s *submission) stored(name, capacity string) *tensor {
	entry := s.quant.Tensors[name]
	at := map[string]*manifest.StoredTensor{"codes": entry.Codes, "scales": entry.Scales, "biases": entry.Biases}[capacity]
	if capacity == "" {
		at = &manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}
	}
	return s.shards[at.File][at.Tensor]
}

// decoded returns the weights of a packed entry.
func (s *submission) decoded(name string) []float32 {
	l := layoutOf(s.quant.Tensors[name])
	scales := s.stored(name, "scales")
	values, err := l.Decode(ternary.Stored{Codes: s.stored(name, "codes").data, Scales: scales.data, ScaleDType: scales.dtype})
	if err != nil {
		panic(err)
	}
	return values
}

func (t *tensor) set16(element int64, v uint16) { binary.LittleEndian.PutUint16(t.data[2*element:], v) }
func (t *tensor) get16(element int64) uint16    { return binary.LittleEndian.Uint16(t.data[2*element:]) }
func (t *tensor) set32(element int64, v uint32) { binary.LittleEndian.PutUint32(t.data[4*element:], v) }
func (t *tensor) get32(element int64) uint32    { return binary.LittleEndian.Uint32(t.data[4*element:]) }

// copy returns a tensor with bytes of its own.
func (t *tensor) copy() *tensor { return &tensor{t.dtype, slices.Clone(t.shape), slices.Clone(t.data)} }

// files writes the submission.
func (s *submission) files() (patch.Files, error) {
	out := patch.Files{Content: map[string][]byte{}, Links: s.links}
	for p, text := range s.texts {
		out.Content[p] = []byte(text)
	}
	for shard, tensors := range s.shards {
		data, err := encodeShard(tensors)
		if err != nil {
			return out, err
		}
		out.Content[shard] = data
	}
	quant, err := manifest.EncodeLines(s.quant) // not Encode, which refuses some of the faults
	if err != nil {
		return out, err
	}
	out.Content[manifest.QuantizationPath] = quant
	config, err := json.MarshalIndent(s.config, "", " ")
	if err != nil {
		return out, err
	}
	out.Content["weights/config.json"] = append(config, '\n')
	maps.Copy(out.Content, s.raw)
	return out, nil
}

// encodeShard writes tensors sorted by name.
func encodeShard(tensors map[string]*tensor) ([]byte, error) {
	var list []safetensors.Tensor
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		list = append(list, safetensors.Tensor{Name: name, DType: t.dtype, Shape: t.shape})
		data = append(data, t.data...)
	}
	header, err := safetensors.EncodeHeader(list, nil)
	return append(header, data...), err
}

// rawShard writes a safetensors file with any header text and bytes of zero.
func rawShard(header string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, data)...)
}
