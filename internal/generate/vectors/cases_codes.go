package main

import (
	"slices"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// setCode writes the code of a weight of an entry.
func (s *submission) setCode(name string, element int64, code byte) {
	l := layoutOf(s.quant.Tensors[name])
	at, slot := l.Slot(element)
	data := s.stored(name, "codes").data
	b, ok := l.Format.Packing.Set(data[at], slot, code)
	if !ok {
		panic("no byte of " + l.Format.ID + " holds that")
	}
	data[at] = b
}

// recode packs an entry again from trits that a function makes of the old ones.
func (s *submission) recode(name string, change func(trits []int8) []int8) {
	l := layoutOf(s.quant.Tensors[name])
	trits := make([]int8, l.Elements())
	data := s.stored(name, "codes").data
	for i := range trits {
		trits[i] = int8(l.Read(data, 0, int64(i))) - 1
	}
	codes, err := l.EncodeCodes(change(trits))
	if err != nil {
		panic(err)
	}
	s.stored(name, "codes").data = codes
}

// codes are faults of the codes, and of the shapes that say where they lie.
func codes() []vector {
	fault := func(id, fault, name, says string, alter func(*submission)) vector {
		return vector{id: id, fault: fault, gate: "ternary", names: name, says: says, alter: alter}
	}
	bad := func(id, text, name, says string, element int64) vector {
		v := fault(id, text, name, says, func(s *submission) { s.setCode(name, element, ternary.Bad) })
		return with(v, func(s *submission) { s.setCode(name, element, ternary.Zero) }, "another code in its place")
	}
	// What only the base's own weights show.
	untrained := func(id, text, name string, alter func(*submission)) vector {
		return vector{id: id, fault: text, gate: "ternary", names: name, says: "agree with the base", base: true, alter: alter}
	}
	return []vector{
		bad("A30", "code 3 once", key, "row 30, input 5", 30*256+5),
		bad("A30", "code 3 in the last place of the last word", affine, "row 63, input 255", 64*256-1),
		bad("A30", "code 3 only in the last row", alphas, "row 63, input 0", 63*256),
		bad("A30", "code 3 in the last quarter of the rows", bitnet, "row 255, input 63", 256*64-1),
		with(fault("A30", "code 3 in the padding", padded, "padding", func(s *submission) { s.stored(padded, "codes").data[255] |= 0xc0 }),
			func(s *submission) { s.setCode(padded, 255, ternary.Plus) }, "another code in the row beside the padding"),
		fault("A31", "codes 1, 2 and 3 for -1, 0 and +1", key, "code 3 stands", func(s *submission) {
			data := s.stored(key, "codes").data
			for i := range data {
				data[i] += 0x55
			}
		}),
		fault("A31", "codes 0, 1 and 2 for -1, 0 and +1 where they are 1, 2 and 3", minusTwo, "code 0 stands", func(s *submission) {
			data := s.stored(minusTwo, "codes").data
			for i := range data {
				data[i] -= 0x55
			}
		}),
		fault("A32", "packed along the outputs", key, "codes do not fit", func(s *submission) { s.stored(key, "codes").shape = []int64{16, 256} }),
		untrained("A32", "codes of the transposed matrix", key, func(s *submission) {
			s.recode(key, func(trits []int8) []int8 {
				out := make([]int8, len(trits))
				for row := range 64 {
					for input := range 256 {
						out[input*64+row] = trits[row*256+input]
					}
				}
				return out
			})
		}),
		untrained("A33", "the first code in the highest bits", key, func(s *submission) {
			data := s.stored(key, "codes").data
			for i, c := range data {
				data[i] = c<<6 | c>>2&3<<4 | c>>4&3<<2 | c>>6
			}
		}),
		{id: "A34", fault: "the shape of the transposed matrix", gate: "coverage", names: key, says: "another shape", alter: func(s *submission) {
			entry := s.quant.Tensors[key]
			entry.Shape = []int64{256, 64}
			s.pack(key, smallShard, entry, safetensors.F16, quantize(trained(key, 64*256), 64))
		}},
		fault("A35", "all codes zero", key, "does not look like", func(s *submission) { fill(s.stored(key, "codes").data, 0x55) }),
		fault("A35", "all codes equal", key, "does not look like", func(s *submission) { fill(s.stored(key, "codes").data, 0xaa) }),
		untrained("A35", "one code for each row", key, func(s *submission) {
			s.recode(key, func(trits []int8) []int8 {
				for i := range trits {
					trits[i] = int8(i/256%3) - 1
				}
				return trits
			})
		}),
		untrained("A36", "random codes", key, func(s *submission) {
			s.recode(key, func(trits []int8) []int8 {
				r := random("codes")
				for i := range trits {
					trits[i] = int8(r.IntN(3) - 1)
				}
				return trits
			})
		}),
		fault("A37", "a group size that does not divide the inputs", key, "not a multiple of group_size 96", func(s *submission) {
			s.edit(key, func(e *manifest.Quantity) { e.GroupSize = 96 })
		}),
		untrained("A38", "tensors of two layers in each other's place", key, func(s *submission) {
			a, b := s.quant.Tensors[key], s.quant.Tensors[wide]
			s.quant.Tensors[key], s.quant.Tensors[wide] = b, a
		}),
		untrained("A38", "two tensors of one shape in each other's place", value, func(s *submission) {
			a, b := s.quant.Tensors[key], s.quant.Tensors[value]
			s.quant.Tensors[key], s.quant.Tensors[value] = b, a
		}),
	}
}

func fill(data []byte, b byte) {
	for i := range data {
		data[i] = b
	}
}

// scales are faults of the scales and of the biases.
func scales() []vector {
	set := func(id, text, says string, at int64, bits uint16) vector {
		v := vector{id: id, fault: text, gate: "ternary", names: key, says: says, alter: func(s *submission) { s.stored(key, "scales").set16(at, bits) }}
		return with(v, func(s *submission) { s.stored(key, "scales").set16(at, 0x2800) }, "another scale in its place")
	}
	warns := func(v vector) vector { v.gate, v.warns = "", "ternary"; return v }
	// Zero may stand where all codes of the group mean zero.
	quiet := func(s *submission) {
		s.stored(key, "scales").set16(4*5+2, 0)
		for i := range int64(64) {
			s.setCode(key, 5*256+2*64+i, ternary.Zero)
		}
	}
	return []vector{
		set("A39", "a scale that is not a number", "row 3, group 1", 4*3+1, 0x7e00),
		set("A39", "an infinite scale", "row 0, group 0", 0, 0x7c00),
		warns(set("A39", "a negative scale", "negative", 7, 0xa800)),
		warns(set("A39", "a subnormal scale", "subnormal", 7, 0x0001)),
		{id: "A40", fault: "scales in F64", gate: "ternary", names: key, says: "F64", alter: rescale(safetensors.F64, 8*64*4, 64, 4)},
		{id: "A40", fault: "whole numbers as scales", gate: "ternary", names: key, says: "I16", alter: rescale(safetensors.I16, 2*64*4, 64, 4)},
		with(set("A41", "scale zero over codes that are not", "row 5, group 2", 4*5+2, 0), quiet, "the codes of the group mean zero too"),
		with(set("A41", "scale minus zero over codes that are not", "row 5, group 2", 4*5+2, 0x8000), quiet, "the codes of the group mean zero too"),
		{id: "A42", fault: "a scale that a loader is to divide by", gate: "ternary", names: padded, says: "not of the size of the base's", base: true, alter: func(s *submission) {
			entry := s.quant.Tensors[padded]
			values := s.decoded(padded)
			for i := range values { // the scale is a power of two away from its inverse, so that it stays exact
				values[i] *= 4096
			}
			s.pack(padded, bitnetShard, entry, safetensors.F32, values)
		}},
		{id: "A43", fault: "the code of zero shifted by one", gate: "ternary", names: affine, says: "not the negative of the scale", alter: func(s *submission) {
			scales, biases := s.stored(affine, "scales"), s.stored(affine, "biases")
			for i := range int64(len(scales.data) / 2) { // -2 times the scale: one more in the exponent
				biases.set16(i, scales.get16(i)|0x8000+0x80)
			}
		}},
		{id: "A44", fault: "a bias one unit in the last place from minus its scale", gate: "ternary", names: affine, says: "row 17, group 2", alter: func(s *submission) {
			t := s.stored(affine, "biases")
			t.set16(17*4+2, t.get16(17*4+2)+1)
		}, twin: func(s *submission) {
			at := int64(17*4 + 2)
			scales, biases := s.stored(affine, "scales"), s.stored(affine, "biases")
			scales.set16(at, scales.get16(at)+1)
			biases.set16(at, biases.get16(at)+1)
		}, twinText: "the scale moved by as much"},
		{id: "A45", fault: "scales of another tensor", warns: "ternary", names: value, says: "its scales begin like those of " + key, alter: func(s *submission) {
			s.stored(value, "scales").data = slices.Clone(s.stored(key, "scales").data)
		}},
		{id: "A45", fault: "scales and codes of another tensor", gate: "ternary", names: value, says: "those of " + key, alter: func(s *submission) {
			s.stored(value, "scales").data = slices.Clone(s.stored(key, "scales").data)
			s.stored(value, "codes").data = slices.Clone(s.stored(key, "codes").data)
		}},
	}
}
