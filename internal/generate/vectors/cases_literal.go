package main

import (
	"encoding/binary"
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// firstWeight returns the first element of a row that is not zero.
func (t *tensor) firstWeight(row, inputs int64) int64 {
	for i := row * inputs; ; i++ {
		if t.get16(i)&0x7fff != 0 {
			return i
		}
	}
}

// literals are floating-point tensors that are not as ternary as they claim,
// and some that are although they do not look so.
func literals() []vector {
	fault := func(id, text, name, says string, change func(t *tensor)) vector {
		return vector{id: id, fault: text, gate: "ternary", names: name, says: says, alter: func(s *submission) { change(s.stored(name, "")) }}
	}
	passes := func(id, text string, change func(t *tensor)) vector {
		return vector{id: id, fault: text, names: rows, says: nothing, alter: func(s *submission) { change(s.stored(rows, "")) }}
	}
	near := fault("A47", "a magnitude one unit in the last place away", rows, "within 2^-7", func(t *tensor) {
		i := t.firstWeight(40, 256)
		t.set16(i, t.get16(i)+1)
	})
	near = with(near, func(s *submission) {
		t := s.stored(rows, "")
		magnitude := t.get16(t.firstWeight(40, 256)) & 0x7fff
		for i := int64(40 * 256); i < 41*256; i++ {
			if v := t.get16(i); v&0x7fff == magnitude {
				t.set16(i, v+1)
			}
		}
	}, "all magnitudes of the row moved by as much")
	return []vector{
		with(fault("A46", "one row has a second magnitude", rows, "row 50, input 77", func(t *tensor) { t.set16(50*256+77, 0x4000) }),
			func(s *submission) { s.stored(rows, "").set16(50*256+77, 0x8000) }, "minus zero in its place"),
		fault("A46", "a second magnitude in the last place", groups, "row 63, input 255", func(t *tensor) { t.set16(64*256-1, 0x4000) }),
		near,
		fault("A48", "another magnitude below zero than above", rows, "row 9", func(t *tensor) {
			for i := int64(9 * 256); i < 10*256; i++ {
				if v := t.get16(i); v > 0x8000 {
					t.set16(i, v+0x10)
				}
			}
		}),
		fault("A49", "weights before quantization", rows, "is ternary in no unit", func(t *tensor) { t.data = encode(safetensors.BF16, trained(rows, 64*256)) }),
		fault("A50", "ternary by four weights only", rows, "is ternary in no unit", func(t *tensor) {
			t.data = encode(safetensors.BF16, quantizeBriefly(trained(rows, 64*256), 4))
		}),
		with(fault("A50", "ternary by blocks of 16 rows and 16 inputs only", rows, "is ternary in no unit", func(t *tensor) { t.data = inBlocks(16, 16) }),
			func(s *submission) { s.stored(rows, "").data = inBlocks(16, 32) }, "blocks of 16 rows and 32 inputs"),
		{id: "A50", fault: "a magnitude for 16 weights, as the entry says", gate: "ternary", names: rows, says: "group_size does not fit",
			alter: func(s *submission) { s.edit(rows, func(e *manifest.Quantity) { e.GroupSize = 16 }) },
			twin:  func(s *submission) { s.edit(rows, func(e *manifest.Quantity) { e.GroupSize = 32 }) }, twinText: "a magnitude for 32 weights, as the entry says"},
		passes("A51", "minus zero is zero", func(t *tensor) {
			for i := int64(0); i < 64*256; i += 3 {
				if t.get16(i) == 0 {
					t.set16(i, 0x8000)
				}
			}
		}),
		with(passes("A52", "a row of zeros is ternary", func(t *tensor) { fill(t.data[512:1024], 0) }),
			func(s *submission) { fill(s.stored(rows, "").data[:512], 0) }, "another row of zeros"),
		fault("A53", "not a number", rows, "element 3", func(t *tensor) { t.set16(3, 0x7fc1) }),
		fault("A53", "infinity", rows, "element 3", func(t *tensor) { t.set16(3, 0xff80) }),
		fault("A54", "numbers in the low bits of F32", wide, "row 20", func(t *tensor) {
			for i := int64(20 * 256); i < 21*256; i++ {
				if v := t.get32(i); v&0x7fffffff != 0 {
					t.set32(i, v|uint32(i&0xff))
				}
			}
		}),
	}
}

// quantizeBriefly is quantize without zeros, so that every unit has a magnitude
// of its own.
func quantizeBriefly(values []float32, unit int) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		a := float32(32+i/unit%32) / 2048
		out[i] = float32(math.Copysign(float64(a), float64(v)))
		if i%unit == 0 {
			out[i] = 0
		}
	}
	return out
}

// latent is a linear before quantization, in a wider type: F32 of BF16 values.
func latent(name string) *tensor {
	out := &tensor{safetensors.BF16, []int64{64, 256}, nil}
	for _, v := range trained(name, 64*256) {
		out.data = binary.LittleEndian.AppendUint16(out.data, uint16(math.Float32bits(v)>>16))
	}
	return out
}

// inBlocks makes the weights of rows ternary, with a magnitude for each block of
// so many rows and inputs.
func inBlocks(height, width int) []byte {
	values := trained(rows, 64*256)
	for row := 0; row < 64; row += height {
		for input := 0; input < 256; input += width {
			var block []float32
			for r := row; r < row+height; r++ {
				block = append(block, values[r*256+input:r*256+input+width]...)
			}
			block = quantize(block, int64(len(block)))
			for r := range height {
				copy(values[(row+r)*256+input:][:width], block[r*width:])
			}
		}
	}
	return encode(safetensors.BF16, values)
}
