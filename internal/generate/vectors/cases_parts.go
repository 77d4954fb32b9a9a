package main

import (
	"encoding/binary"
	"math"
	"slices"

	"slipway/manifest/safetensors"
)

// parts are full-precision weights that hide in something that is served: some
// rows of a linear, wherever they begin, rows of the embedding that no token
// reaches, and the lower halves of wider numbers.
func parts() []vector {
	return []vector{
		someRows("rows from the middle of the weights before quantization", "row 24 on", func(s *submission) *tensor { return rowsOf(latent(key), 21, 44) }),
		someRows("rows from the middle of a dense copy, as one long vector", "row 24 on", func(s *submission) *tensor {
			return &tensor{safetensors.F16, []int64{23 * 256}, encode(safetensors.F16, s.decoded(key)[21*256:44*256])}
		}),
		someRows("rows from the middle of the weights before quantization among others", "from element 6656 on", func(s *submission) *tensor {
			values := slices.Concat(unrelated(23*256), trained(key, 64*256)[21*256:44*256], unrelated(10*256))
			return &tensor{safetensors.BF16, []int64{56, 256}, encode(safetensors.BF16, values)}
		}),
		{
			id: "A57", fault: "rows of a linear in rows of the embedding that no token reaches", gate: "ternary", names: embedding, says: "the signs of " + key,
			alter: unreached(trained(key, 64*256)[23*256 : 37*256]),
			twin:  unreached(unrelated(14 * 256)), twinText: "other numbers there, which the base may have had",
		},
		{
			id: "A29", fault: "a second number below each of a float entry, under rules that take F32", gate: "ternary", names: norm, says: "a second number of 16 bits", count: observed,
			alter: func(s *submission) {
				r := random("second")
				s.put(floatShard, norm, singles(func() uint32 { return math.Float32bits(float32(0.02*r.NormFloat64())) >> 16 }))
			},
			twin: func(s *submission) {
				r := random("singles")
				s.put(floatShard, norm, singles(func() uint32 { return r.Uint32() & 0xffff }))
			},
			twinText: "numbers of single precision",
		},
		{
			id: "A29", fault: "a float entry in F64 that single precision does not hold, under rules that take F32", gate: "ternary", names: norm, says: "not a number of single precision", count: observed,
			alter: doubles(1), twin: doubles(1 << 29), twinText: "numbers in F64 that single precision holds",
		},
	}
}

// someRows stores a part of a linear that begins in its middle.
func someRows(fault, says string, part func(*submission) *tensor) vector {
	return vector{
		id: "A55", fault: fault, gate: "ternary", names: "cache.0", says: says,
		alter: func(s *submission) { s.put(sideShard, "cache.0", part(s)) },
		twin: func(s *submission) {
			s.put(sideShard, "cache.0", &tensor{safetensors.BF16, []int64{23, 256}, encode(safetensors.BF16, unrelated(23*256))})
		},
		twinText: "rows that are like none",
	}
}

// unreached gives the tokenizer half of the embedding's rows, and 14 of the others
// to values.
func unreached(values []float32) func(*submission) {
	return func(s *submission) {
		s.texts["weights/tokenizer.json"] = `{"added_tokens":[{"id":15,"content":"<end>"}],"model":{"vocab":{"a":0,"b":1}}}` + "\n"
		s.config["eos_token_id"] = 15
		t := s.stored(embedding, "").copy()
		copy(t.data[17*2*256:], encode(safetensors.BF16, values))
		s.put(floatShard, embedding, t)
	}
}

// singles are gains of a norm in single precision with lower halves of their own.
func singles(low func() uint32) *tensor {
	t := &tensor{safetensors.F32, []int64{256}, nil}
	for _, v := range trained("gains", 256) {
		t.data = binary.LittleEndian.AppendUint32(t.data, math.Float32bits(1+v)&0xffff0000|low())
	}
	return t
}

// doubles stores gains of a norm in double precision, which are multiples of one
// of their last places.
func doubles(place uint64) func(*submission) {
	return func(s *submission) {
		t := &tensor{safetensors.F64, []int64{256}, nil}
		for _, v := range trained("gains", 256) {
			t.data = binary.LittleEndian.AppendUint64(t.data, math.Float64bits(float64(1+v))+place)
		}
		s.put(floatShard, norm, t)
	}
}
