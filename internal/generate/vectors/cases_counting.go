package main

import (
	"encoding/binary"
	"math"
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// inShard moves an entry's reference to another shard.
func inShard(shard string) func(*manifest.Quantity) {
	return func(e *manifest.Quantity) { e.File = shard }
}

// regroup packs key, value or both again with groups of another size.
func regroup(group int64, names ...string) func(*submission) {
	return func(s *submission) {
		for _, name := range names {
			entry := s.quant.Tensors[name]
			entry.GroupSize = group
			s.pack(name, smallShard, entry, safetensors.F16, quantize(trained(name, 64*256), group))
		}
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
	const units, codes = "not exactly one of the scales", "codes do not fit"
	ternary := func(id, fault, says string, alter func(*submission)) vector {
		return vector{id: id, fault: fault, gate: "ternary", names: key, says: says, alter: alter}
	}
	unreferenced := func(id, fault, name string, alter func(*submission)) vector {
		return vector{id: id, fault: fault, gate: "coverage", names: name, says: "no entry", rules: "no spare tensors", alter: alter}
	}
	return []vector{
		with(ternary("A20", "a scale for 16 weights", "too few weights", regroup(16, key)), regroup(32, key), "a scale for 32 weights"),
		with(ternary("A20", "a scale for 8 weights", "too few weights", regroup(8, key)), regroup(128, key), "a scale for 128 weights"),
		ternary("A20", "a scale for each weight", units, rescale(safetensors.F16, 2*64*256, 64, 256)),
		{id: "A20", fault: "more scales than the fraction bears", gate: "ternary", names: manifest.QuantizationPath, says: "too little of the model is ternary", rules: "any group",
			alter: regroup(4, key, value), twin: regroup(8, key, value), twinText: "half as many"},
		ternary("A21", "scales of the shape of the weights", units, rescale(safetensors.F32, 4*64*256, 64, 256)),
		ternary("A21", "scales as a row vector", units, rescale(safetensors.F16, 2*256, 256)),
		unreferenced("A21", "a scale for each column beside those of the rows", key+".columns", side(key+".columns", safetensors.F16, 256)),
		unreferenced("A22", "scales of the scales", key+".scales.scales", side(key+".scales.scales", safetensors.F32, 64, 4)),
		tooMany("A22", "scales of the scales that are as large as weights", observed, key+".scales.scales", safetensors.F16, 64, 512, 64, 16, "fewer of them"),
		unreferenced("A23", "zero points that no entry names", key+".zeros", side(key+".zeros", safetensors.U8, 64, 4)),
		unreferenced("A23", "biases that no entry names", key+".biases", func(s *submission) {
			s.put(smallShard, key+".biases", s.stored(key, "scales").copy())
		}),
		{id: "A24", fault: "codes that serve two entries", gate: "coverage", names: key + ".codes", says: "serves more than one entry", alter: func(s *submission) {
			s.edit(value, func(e *manifest.Quantity) { e.Codes = s.quant.Tensors[key].Codes })
			delete(s.shards[smallShard], value+".codes")
		}},
		{id: "A24", fault: "a tensor cut into two entries", gate: "coverage", names: key + ".rows", says: "not a tensor of the base", alter: func(s *submission) {
			entry, values := s.quant.Tensors[key], s.decoded(key)
			entry.Shape = []int64{32, 256}
			s.pack(key, smallShard, entry, safetensors.F16, values[:32*256])
			s.pack(key+".rows", smallShard, entry, safetensors.F16, values[32*256:])
		}},
		{id: "A24", fault: "one tensor as two entries", gate: "coverage", names: key + ".more", says: "not a tensor of the base", alter: func(s *submission) {
			entry := s.quant.Tensors[key]
			s.quant.Tensors[key+".more"] = entry
		}},
		{id: "A25", fault: "padding counted as weights", gate: "coverage", names: key, says: "another shape", alter: func(s *submission) {
			entry := s.quant.Tensors[key]
			entry.Shape = []int64{64, 320}
			s.pack(key, smallShard, entry, safetensors.F16, quantize(trained(key, 64*320), 64))
		}},
		{id: "A26", fault: "the embedding under a layer's name", gate: "coverage", names: "model.layers.0.mlp.memory.weight", says: "not a tensor of the base", alter: func(s *submission) {
			s.rename(embedding, "model.layers.0.mlp.memory.weight")
		}},
		{id: "A26", fault: "a head under a layer's name", gate: "coverage", names: "model.layers.1.mlp.head.weight", says: "not a tensor of the base", alter: func(s *submission) {
			withHead(1)(s)
			s.rename("lm_head.weight", "model.layers.1.mlp.head.weight")
		}},
		{id: "A26", fault: "a linear under the head's name", gate: "coverage", names: "lm_head.weight", says: "another shape than the embedding", alter: func(s *submission) { s.rename(key, "lm_head.weight") }},
		{id: "A26", fault: "a linear under a vision name", gate: "coverage", names: "model.visual.blocks.9.weight", says: "not a tensor of the base", alter: func(s *submission) { s.rename(key, "model.visual.blocks.9.weight") }},
		ternary("A27", "codes as I32", codes, func(s *submission) { t := s.stored(key, "codes"); t.dtype, t.shape = safetensors.I32, []int64{64, 16} }),
		ternary("A27", "codes as U16", codes, func(s *submission) { t := s.stored(key, "codes"); t.dtype, t.shape = safetensors.U16, []int64{64, 32} }),
		ternary("A27", "codes as I64", codes, func(s *submission) { t := s.stored(key, "codes"); t.dtype, t.shape = safetensors.I64, []int64{64, 8} }),
		asBytes(safetensors.U8),
		asBytes(safetensors.I8),
		tooMany("A27", "floats in U8 that no entry refers to", bothCounts, "side", safetensors.U8, 8000, 1, 2000, 1, "fewer of them, each of which counts as four weights"),
		tooMany("A27", "floats in I8 that no entry refers to", bothCounts, "side", safetensors.I8, 8000, 1, 2000, 1, "fewer of them, each of which counts as four weights"),
		tooMany("A27", "I64 that no entry refers to", strict, "side", safetensors.I64, 1000, 1, 250, 1, "fewer of them, each of which counts as 32 weights"),
		ternary("A28", "floats stored as codes", "code 3 stands", func(s *submission) {
			r := random("floats")
			t := s.stored(key, "codes")
			for i := range t.data {
				t.data[i] = byte(r.Uint32())
			}
		}),
		wider(safetensors.F32),
		wider(safetensors.F64),
	}
}

// tooMany is a tensor beside the weights that is more than the task lets be
// stored, and a smaller one that is not.
func tooMany(id, fault, counts, name string, dtype safetensors.DType, rows, columns, fewerRows, fewerColumns int64, twin string) vector {
	return vector{
		id: id, fault: fault, gate: "stored", names: manifest.QuantizationPath, says: "elements too many are stored", rules: "task bounds", count: counts,
		alter: side(name, dtype, rows, columns), twin: side(name, dtype, fewerRows, fewerColumns), twinText: twin,
	}
}

// asBytes stores a float entry's bytes as integers.
func asBytes(dtype safetensors.DType) vector {
	return vector{id: "A27", fault: "a float entry stored as " + dtype.String(), gate: "ternary", names: norm, says: "another type", alter: func(s *submission) {
		t := s.stored(norm, "")
		t.dtype, t.shape = dtype, []int64{512}
	}}
}

// wider stores a float entry in a type with room for other numbers in its low bits,
// which strict rules refuse as it is.
func wider(dtype safetensors.DType) vector {
	return vector{id: "A29", fault: "a float entry of a 16-bit tensor in " + dtype.String(), gate: "ternary", names: conv, says: "wider", count: strict, alter: func(s *submission) {
		t := s.stored(conv, "")
		out := &tensor{dtype, t.shape, nil}
		for i := range int64(len(t.data) / 2) {
			if low := uint32(t.get16(i)); dtype == safetensors.F32 {
				out.data = binary.LittleEndian.AppendUint32(out.data, low<<16|low)
			} else {
				bits := math.Float64bits(float64(math.Float32frombits(low << 16)))
				out.data = binary.LittleEndian.AppendUint64(out.data, bits|uint64(low))
			}
		}
		s.put(floatShard, conv, out)
	}}
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
