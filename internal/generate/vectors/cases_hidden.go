package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

const sideShard = "weights/side.safetensors"

// hidden are full-precision weights, or whole models, that stand beside the
// ternary ones, and configurations that load something else.
func hidden() []vector {
	copyOf := func(text, says string, make func(s *submission) *tensor) vector {
		return vector{
			id: "A55", fault: text, gate: "ternary", names: sideShard, says: says,
			alter: func(s *submission) { s.put(sideShard, "cache.0", make(s)) },
			twin: func(s *submission) {
				s.put(sideShard, "cache.0", &tensor{safetensors.BF16, []int64{64, 256}, encode(safetensors.BF16, trained("nothing like it", 64*256))})
			},
			twinText: "a tensor of the same size that is like no other, which only warns",
		}
	}
	listed := func(id, text, name string, shape ...int64) vector {
		return vector{id: id, fault: text, gate: "coverage", names: name, alter: func(s *submission) { s.float(name, floatShard, safetensors.BF16, shape) }}
	}
	return []vector{
		copyOf("a dense copy under another name, in another shard, in F32", "dense copy of "+key, func(s *submission) *tensor {
			return &tensor{safetensors.F32, []int64{64, 256}, encode(safetensors.F32, s.decoded(key))}
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
		copyOf("three linears' weights before quantization in one tensor", "signs of "+key+", which is declared ternary, from row 64 on", func(*submission) *tensor {
			values := slices.Concat(trained("nothing like it", 64*256), trained(key, 64*256), trained(value, 64*256))
			return &tensor{safetensors.BF16, []int64{192, 256}, encode(safetensors.BF16, values)}
		}),
		copyOf("the first rows of the weights before quantization", "begins with the signs of "+key, func(*submission) *tensor {
			return &tensor{safetensors.BF16, []int64{16, 256}, encode(safetensors.BF16, trained(key, 64*256)[:16*256])}
		}),
		copyOf("a dense copy in F64", "dense copy of "+key, func(s *submission) *tensor {
			t := &tensor{safetensors.F64, []int64{64, 256}, nil}
			for _, v := range s.decoded(key) {
				t.data = binary.LittleEndian.AppendUint64(t.data, math.Float64bits(float64(v)))
			}
			return t
		}),
		copyOf("the bits of the weights before quantization as integers", "signs of "+key, func(*submission) *tensor {
			t := latent(key)
			t.dtype = safetensors.I16
			return t
		}),
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
		listed("A56", "a low-rank path beside a linear", "model.layers.1.self_attn.k_proj.lora_A.weight", 4, 256),
		listed("A56", "a bias that the base does not have", "model.layers.1.self_attn.k_proj.bias", 64),
		listed("A57", "a side tensor under a vision name", "model.visual.cache.weight", 64, 256),
		{id: "A57", fault: "a convolution with more taps", gate: "coverage", names: conv, says: "another shape", alter: func(s *submission) {
			s.float(conv, floatShard, safetensors.BF16, []int64{192, 1, 64})
		}},
		{id: "A58", fault: "norm gains as a matrix", gate: "coverage", names: norm, says: "another shape", alter: func(s *submission) {
			s.put(floatShard, norm, &tensor{safetensors.BF16, []int64{256, 256}, make([]byte, 2*256*256)})
			s.edit(norm, func(e *manifest.Quantity) { e.Shape = []int64{256, 256} })
		}},
		{id: "A59", fault: "an untied head beside a flag that ties it", gate: "coverage", names: "lm_head.weight", alter: withHead(1),
			twin: func(s *submission) { withHead(1)(s); s.config["tie_word_embeddings"] = false }, twinText: "the flag says that it is untied"},
		{id: "A59", fault: "no head although the flag unties it", gate: "config", asks: "config", names: "weights/config.json",
			alter: func(s *submission) { s.config["tie_word_embeddings"] = false },
			twin:  func(s *submission) { withHead(1)(s); s.config["tie_word_embeddings"] = false }, twinText: "the head is stored"},
		{id: "A60", fault: "a second model beside the code", gate: "coverage", names: "code/draft/config.json", says: "second model", alter: secondModel("code/draft")},
		file("A60", "weights in an array file", "code/table.npz", "PK\x03\x04", "code/table.py", "TABLE = [1, 2]\n"),
		{id: "A60", fault: "compiled code", warns: "files", names: "code/fast.so", alter: func(s *submission) { s.raw["code/fast.so"] = []byte("\x7fELF") }},
		{id: "A61", fault: "a copy of the tied embedding as head", warns: "coverage", names: "lm_head.weight", says: "copy of the embedding", alter: withHead(0)},
		{id: "A62", fault: "an export with other dense linears", gate: "coverage", names: "export/config.json", says: "second model", alter: secondModel("export")},
		{id: "A68", fault: "config says that the basis is rotated", gate: "config", asks: "config", names: "weights/config.json", says: "another basis",
			alter: func(s *submission) { s.config["quantization_config"] = map[string]any{"hadamard_block": 64} },
			twin:  func(s *submission) { s.config["quantization_config"] = map[string]any{"hadamard_block": 0} }, twinText: "config says that it is not"},
	}
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
