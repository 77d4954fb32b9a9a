package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

const sideShard = "weights/side.safetensors"

// hidden are full-precision weights, or whole models, that stand beside the
// ternary ones, and configurations that load something else.
func hidden() []vector {
	return slices.Concat(denseCopies(), besideLinears(), heads(), secondModels(), otherBases())
}

// copyOf hides what some of a linear's weights can be had from in a tensor that no
// entry of the quantization manifest needs.
func copyOf(text, says string, make func(s *submission) *tensor) vector {
	return vector{
		id: "A55", fault: text, gate: "ternary", names: "cache.0", says: says,
		alter:    func(s *submission) { s.put(sideShard, "cache.0", make(s)) },
		twin:     func(s *submission) { s.put(sideShard, "cache.0", unrelatedLike(make(s))) },
		twinText: "a tensor of the same type and shape that is like no other, which only warns",
	}
}

// denseCopies are a linear's weights, or what they were quantized from, under
// another name (A55).
func denseCopies() []vector {
	return []vector{
		copyOf("a dense copy under another name, in another shard, in F32", "dense copy of "+key, func(s *submission) *tensor {
			return &tensor{safetensors.F32, []int64{64, 256}, encode(safetensors.F32, s.decoded(key))}
		}),
		copyOf("the weights before quantization under another name, in F16", "signs of "+key, func(*submission) *tensor {
			return &tensor{safetensors.F16, []int64{64, 256}, encode(safetensors.F16, trained(key, 64*256))}
		}),
		copyOf("the weights before quantization under another name", "signs of "+key, func(*submission) *tensor { return latent(key) }),
		copyOf("a dense copy as one long vector", "dense copy of "+alphas, func(s *submission) *tensor {
			return &tensor{safetensors.BF16, []int64{64 * 256}, encode(safetensors.BF16, s.decoded(alphas))}
		}),
		copyOf("the weights before quantization, transposed", key+", which is declared ternary, in its columns", func(*submission) *tensor {
			values := make([]float32, 64*256)
			for i, v := range trained(key, 64*256) {
				values[i%256*64+i/256] = v
			}
			return &tensor{safetensors.BF16, []int64{256, 64}, encode(safetensors.BF16, values)}
		}),
		copyOf("two linears' weights before quantization in one tensor, after rows of zeros", "signs of "+key+", which is declared ternary, from row 64 on", func(*submission) *tensor {
			values := slices.Concat(make([]float32, 64*256), trained(key, 64*256), trained(value, 64*256))
			return &tensor{safetensors.BF16, []int64{192, 256}, encode(safetensors.BF16, values)}
		}),
		copyOf("the first rows of the weights before quantization", "begins with the signs of "+key, func(*submission) *tensor {
			return &tensor{safetensors.BF16, []int64{16, 256}, encode(safetensors.BF16, trained(key, 64*256)[:16*256])}
		}),
		pieces(copyOf("the weights before quantization in four pieces", "begins with the signs of "+key, func(*submission) *tensor { return rowsOf(latent(key), 0, 16) })),
		copyOf("a dense copy in F64", "dense copy of "+key, func(s *submission) *tensor {
			return &tensor{safetensors.F64, []int64{64, 256}, inDouble(s.decoded(key))}
		}),
		counted(observed, copyOf("the bits of the weights before quantization as integers", "signs of "+key, func(*submission) *tensor {
			t := latent(key)
			t.dtype = safetensors.I16
			return t
		})),
		copyOf("weights before quantization, combined with the ternary ones by exclusive or", "only where "+key, func(s *submission) *tensor {
			t, plain := latent(key), encode(safetensors.BF16, s.decoded(key))
			for i := range t.data {
				t.data[i] ^= plain[i]
			}
			return t
		}),
		{id: "A55", fault: "what quantization took from the weights, which no entry names", gate: "coverage", names: "cache.0", says: "no entry", rules: "no spare tensors", alter: func(s *submission) {
			values := trained(key, 64*256)
			for i, v := range s.decoded(key) {
				values[i] -= v
			}
			s.put(sideShard, "cache.0", &tensor{safetensors.F32, []int64{64, 256}, encode(safetensors.F32, values)})
		}},
	}
}

// listed is a tensor with an entry that the base has no tensor for.
func listed(id, text, name string, shape ...int64) vector {
	return vector{id: id, fault: text, gate: "coverage", names: name, says: "not a tensor of the base", alter: func(s *submission) { s.float(name, floatShard, safetensors.BF16, shape) }}
}

// besideLinears are tensors that a linear, a convolution or a norm of the base does
// not have (A56 to A58).
func besideLinears() []vector {
	return []vector{
		listed("A56", "a low-rank path beside a linear", "model.layers.1.self_attn.k_proj.lora_A.weight", 4, 256),
		listed("A56", "the other half of a low-rank path", "model.layers.1.self_attn.k_proj.lora_B.weight", 64, 4),
		listed("A56", "a tensor with a name of its own", "model.layers.1.self_attn.k_cache.weight", 8, 256),
		listed("A56", "a bias that the base does not have", "model.layers.1.self_attn.k_proj.bias", 64),
		listed("A57", "a side tensor under a vision name", "model.visual.cache.weight", 8, 256),
		listed("A57", "a side tensor under the name of a prediction layer", "mtp.layers.0.cache.weight", 8, 256),
		{id: "A57", fault: "a convolution with more taps", gate: "coverage", names: conv, says: "another shape", alter: func(s *submission) {
			s.float(conv, floatShard, safetensors.BF16, []int64{192, 1, 64})
		}},
		{id: "A58", fault: "norm gains as a matrix", gate: "coverage", names: norm, says: "another shape", alter: func(s *submission) {
			s.put(floatShard, norm, &tensor{safetensors.BF16, []int64{256, 256}, make([]byte, 2*256*256)})
			s.edit(norm, func(e *manifest.Quantity) { e.Shape = []int64{256, 256} })
		}},
	}
}

// heads are output heads that config.json does not speak of as they are (A59, A61).
func heads() []vector {
	return []vector{
		{id: "A59", fault: "an untied head beside a flag that ties it", gate: "coverage", names: "lm_head.weight", says: "differs from the embedding", alter: withHead(1),
			twin: func(s *submission) { withHead(1)(s); s.config["tie_word_embeddings"] = false }, twinText: "the flag says that it is untied"},
		{id: "A59", fault: "no head although the flag unties it", gate: "config", asks: "config", names: "weights/config.json", says: "the head is not tied",
			alter: func(s *submission) { s.config["tie_word_embeddings"] = false },
			twin:  func(s *submission) { withHead(1)(s); s.config["tie_word_embeddings"] = false }, twinText: "the head is stored"},
		{id: "A61", fault: "a copy of the tied embedding as head", warns: "coverage", names: "lm_head.weight", says: "copy of the embedding", alter: withHead(0)},
	}
}

// secondModels are models and programs beside the one that is to be served (A60,
// A62).
func secondModels() []vector {
	return []vector{
		{id: "A60", fault: "a second model beside the code", gate: "coverage", names: "code/draft/config.json", says: "second model", alter: secondModel("code/draft")},
		file("A60", "weights in an array file", "of a type that weights come in", "code/table.npz", "PK\x03\x04", "code/table.py", "TABLE = [1, 2]\n"),
		{id: "A60", fault: "compiled code", warns: "files", names: "code/fast.so", says: "which no gate looks into", alter: func(s *submission) { s.raw["code/fast.so"] = []byte("\x7fELF") }},
		file("A60", "compiled code of more than a megabyte", "larger than such a file may be", "code/fast.so", "\x7fELF"+strings.Repeat("\x00", 1<<20), "code/fast.c", "int answer(void) { return 1; }\n"),
		{id: "A62", fault: "an export with other dense linears", gate: "coverage", names: "export/config.json", says: "second model", alter: secondModel("export")},
	}
}

// otherBases are weights in another basis than the model's, and configurations that
// say so (A68).
func otherBases() []vector {
	return []vector{
		{id: "A68", fault: "config says that the basis is rotated", gate: "config", asks: "config", names: "weights/config.json", says: "another basis",
			alter: func(s *submission) { s.config["quantization_config"] = map[string]any{"hadamard_block": 64} },
			twin:  func(s *submission) { s.config["quantization_config"] = map[string]any{"hadamard_block": 0} }, twinText: "config says that it is not"},
		{id: "A68", fault: "config says that rows are permuted", gate: "config", asks: "config", names: "weights/config.json", says: "another basis",
			alter: func(s *submission) { s.config["permuted_rows"] = true },
			twin:  func(s *submission) { s.config["permuted_rows"] = false }, twinText: "config says that they are not"},
		otherBasis("rotated weights of which config says nothing", func(values []float32) []float32 {
			r, out := random("rotation"), make([]float32, 0, len(values))
			signs := make([]float32, hadamardBlock)
			for i := range signs {
				signs[i] = float32(1 - 2*r.IntN(2))
			}
			for block := range slices.Chunk(values, hadamardBlock) {
				out = append(out, rotated(block, signs)...)
			}
			return out
		}),
		otherBasis("permuted rows of which config says nothing", func(values []float32) []float32 {
			var out []float32
			for row := range 64 {
				at := ((1-row%2)*32 + row/2) * 256 // two halves, interleaved
				out = append(out, values[at:at+256]...)
			}
			return out
		}),
	}
}

// unrelated are numbers of both signs that no linear has anything to do with, and
// that take few bytes to write.
func unrelated(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i%97*(i%97)%97-48) / 1024
	}
	return out
}

// unrelatedLike are such numbers in a tensor's type and shape. I16 holds the bits of
// BF16, as it does where it hides them.
func unrelatedLike(t *tensor) *tensor {
	n := 1
	for _, d := range t.shape {
		n *= int(d)
	}
	values := unrelated(n)
	switch t.dtype {
	case safetensors.F64:
		return &tensor{t.dtype, t.shape, inDouble(values)}
	case safetensors.I16:
		return &tensor{t.dtype, t.shape, encode(safetensors.BF16, values)}
	}
	return &tensor{t.dtype, t.shape, encode(t.dtype, values)}
}

func inDouble(values []float32) (data []byte) {
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(v)))
	}
	return data
}

// counted is a vector that other counting rules find more wrong with.
func counted(rules string, v vector) vector {
	v.count = rules
	return v
}

// otherBasis stores a linear in another basis than the model's, which only the
// base's own weights show.
func otherBasis(fault string, change func(values []float32) []float32) vector {
	return vector{id: "A68", fault: fault, gate: "ternary", names: key, says: "agree with the base", base: true, alter: func(s *submission) {
		s.pack(key, smallShard, s.quant.Tensors[key], safetensors.F16, quantize(change(trained(key, 64*256)), 64))
	}}
}

const hadamardBlock = 64

// rotated multiplies a block with a diagonal of signs and then with the Hadamard
// matrix of its size, made orthogonal: the fast Walsh-Hadamard transform.
func rotated(block, signs []float32) []float32 {
	out := make([]float32, len(block))
	for i, v := range block {
		out[i] = v * signs[i] / float32(math.Sqrt(float64(len(block))))
	}
	for half := 1; half < len(out); half *= 2 {
		for i := range out {
			if i&half == 0 {
				a, b := out[i], out[i|half]
				out[i], out[i|half] = a+b, a-b
			}
		}
	}
	return out
}

// rowsOf are some rows of a matrix of 16-bit numbers.
func rowsOf(t *tensor, from, to int64) *tensor {
	width := 2 * t.shape[1]
	return &tensor{t.dtype, []int64{to - from, t.shape[1]}, t.data[from*width : to*width]}
}

// pieces adds the other three quarters of key's weights beside the first.
func pieces(v vector) vector {
	first := v.alter
	v.alter = func(s *submission) {
		first(s)
		for i := int64(1); i < 4; i++ {
			s.put(sideShard, fmt.Sprintf("cache.%d", i), rowsOf(latent(key), 16*i, 16*i+16))
		}
	}
	return v
}

// withHead stores a head: the embedding, with some bits of the first byte turned.
func withHead(change byte) func(*submission) {
	return func(s *submission) {
		head := s.stored(embedding, "").copy()
		head.data[0] ^= change
		s.put(floatShard, "lm_head.weight", head)
		s.quant.Tensors["lm_head.weight"] = manifest.Quantity{Kind: manifest.KindFloat, Shape: head.shape, File: floatShard, Tensor: "lm_head.weight"}
	}
}

// secondModel adds a folder with a model's configuration and one dense linear.
func secondModel(folder string) func(*submission) {
	return func(s *submission) {
		s.put(folder+"/model.safetensors", "dense.weight", &tensor{safetensors.BF16, []int64{256, 8}, make([]byte, 2*256*8)})
		data, err := json.MarshalIndent(s.config, "", " ")
		if err != nil {
			panic(err)
		}
		s.texts[folder+"/config.json"] = string(data) + "\n"
	}
}
