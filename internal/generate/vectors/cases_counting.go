package main

import (
	"encoding/binary"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// inShard moves an entry's reference to another shard.
func inShard(shard string) func(*manifest.Quantity) {
	return func(e *manifest.Quantity) { e.File = shard }
}

// regroup packs key again with groups of another size.
func regroup(group int64) func(*submission) {
	return func(s *submission) {
		entry := s.quant.Tensors[key]
		entry.GroupSize = group
		s.pack(key, smallShard, entry, safetensors.F16, quantize(trained(key, 64*256), group))
	}
}

// side stores a tensor that no entry refers to.
func side(name string, dtype safetensors.DType, shape ...int64) func(*submission) {
	return func(s *submission) {
		n := int64(dtype.Bits() / 8)
		for _, d := range shape {
			n *= d
		}
		s.put(floatShard, name, &tensor{dtype, shape, make([]byte, n)})
	}
}

// rescale stores key's scales in another form.
func rescale(dtype safetensors.DType, bytes int, shape ...int64) func(*submission) {
	return func(s *submission) {
		t := s.stored(key, "scales")
		repeated := slices.Repeat(t.data, 1+bytes/len(t.data))
		s.put(smallShard, key+".scales", &tensor{dtype, shape, repeated[:bytes]})
	}
}

// counting are ways to count more as ternary, or less as stored, than is there.
func counting() []vector {
	ternary := func(id, fault string, alter func(*submission)) vector {
		return vector{id: id, fault: fault, gate: "ternary", names: key, alter: alter}
	}
	unreferenced := func(id, fault, name string, alter func(*submission)) vector {
		return vector{id: id, fault: fault, gate: "coverage", names: name, says: "no entry", rules: "strict", alter: alter}
	}
	stored := vector{
		id: "A27", fault: "floats in U8 that no entry refers to", gate: "stored", names: manifest.QuantizationPath, rules: "task bounds",
		alter: side("side", safetensors.U8, 8000), twin: side("side", safetensors.U8, 2000), twinText: "fewer of them, each of which counts as four weights",
	}
	wider := vector{
		id: "A29", fault: "a float entry of a 16-bit tensor in F32", gate: "ternary", names: conv, says: "wider", rules: "strict",
		alter: func(s *submission) {
			t := s.stored(conv, "")
			out := &tensor{safetensors.F32, t.shape, nil}
			for i := range int64(len(t.data) / 2) { // the low half carries another number
				out.data = binary.LittleEndian.AppendUint32(out.data, uint32(t.get16(i))<<16|uint32(t.get16(i)))
			}
			s.put(floatShard, conv, out)
		},
	}
	return []vector{
		with(ternary("A20", "a scale for 16 weights", regroup(16)), regroup(32), "a scale for 32 weights"),
		with(ternary("A20", "a scale for 8 weights", regroup(8)), regroup(128), "a scale for 128 weights"),
		ternary("A20", "a scale for each weight", rescale(safetensors.F16, 2*64*256, 64, 256)),
		ternary("A21", "scales as a row vector", rescale(safetensors.F16, 2*256, 256)),
		unreferenced("A21", "a scale for each column beside those of the rows", key+".columns", side(key+".columns", safetensors.F16, 256)),
		unreferenced("A22", "scales of the scales", key+".scales.scales", side(key+".scales.scales", safetensors.F32, 64, 4)),
		unreferenced("A23", "biases that no entry names", key+".biases", func(s *submission) {
			s.put(smallShard, key+".biases", s.stored(key, "scales").copy())
		}),
		{id: "A24", fault: "one tensor as two entries", gate: "coverage", names: key + ".more", alter: func(s *submission) {
			entry := s.quant.Tensors[key]
			s.quant.Tensors[key+".more"] = entry
		}},
		{id: "A25", fault: "padding counted as weights", gate: "coverage", names: key, says: "another shape", alter: func(s *submission) {
			entry := s.quant.Tensors[key]
			entry.Shape = []int64{64, 320}
			s.pack(key, smallShard, entry, safetensors.F16, quantize(trained(key, 64*320), 64))
		}},
		{id: "A26", fault: "the embedding under a layer's name", gate: "coverage", names: "model.layers.0.mlp.memory.weight", alter: func(s *submission) {
			s.rename(embedding, "model.layers.0.mlp.memory.weight")
		}},
		{id: "A26", fault: "a linear under the head's name", gate: "coverage", names: "lm_head.weight", alter: func(s *submission) { s.rename(key, "lm_head.weight") }},
		ternary("A27", "codes as I32", func(s *submission) { t := s.stored(key, "codes"); t.dtype, t.shape = safetensors.I32, []int64{64, 16} }),
		ternary("A27", "codes as U16", func(s *submission) { t := s.stored(key, "codes"); t.dtype, t.shape = safetensors.U16, []int64{64, 32} }),
		ternary("A27", "codes as I64", func(s *submission) { t := s.stored(key, "codes"); t.dtype, t.shape = safetensors.I64, []int64{64, 8} }),
		{id: "A27", fault: "a float entry stored as U8", gate: "ternary", names: norm, says: "another type", alter: func(s *submission) {
			t := s.stored(norm, "")
			t.dtype, t.shape = safetensors.U8, []int64{512}
		}},
		stored,
		ternary("A28", "floats stored as codes", func(s *submission) {
			r := random("floats")
			t := s.stored(key, "codes")
			for i := range t.data {
				t.data[i] = byte(r.Uint32())
			}
		}),
		wider,
	}
}

// with gives a vector a twin of its own.
func with(v vector, twin func(*submission), text string) vector {
	v.twin, v.twinText = twin, text
	return v
}

// rename gives an entry another name.
func (s *submission) rename(from, to string) {
	s.quant.Tensors[to] = s.quant.Tensors[from]
	delete(s.quant.Tensors, from)
}
