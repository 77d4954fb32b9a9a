package generate

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"slipway/manifest/safetensors"
)

// Values are drawn by looking up twelve random bits in a table of 4096 values,
// five to a 64-bit word of the source; the top four bits are not used.
const (
	tableSize   = 1 << 12
	perWord     = 5
	perWordBits = 12
)

// blockBytes is how much of a tensor is made at once: a whole number of words
// for every element size, so that blocks leave no trace in the stream.
const blockBytes = perWord * 4 << 16

// fill writes the next values of a tensor. All calls but a tensor's last have
// blocks of blockBytes.
type fill func(source *rand.ChaCha8, block []byte)

// newSource returns the random bits of one tensor: ChaCha8 (math/rand/v2) keyed
// by the SHA-256 of the seed, eight bytes little endian, and the tensor's name.
// Each tensor has a key of its own, so the order in which they are made does
// not matter.
func newSource(seed uint64, name string) *rand.ChaCha8 {
	key := append(binary.LittleEndian.AppendUint64(nil, seed), name...)
	return rand.NewChaCha8(sha256.Sum256(key))
}

var (
	fillCodes  = eights(codesTable())
	fillScales = sixteens(quantiles(func(p float64) float64 { return 0.02 * math.Exp(0.3*normal(p)) }), float16)

	fillAlpha = sixteens(alphas, bfloat16)
	alphas    = quantiles(func(p float64) float64 { return 0.04 * math.Exp(0.3*normal(p)) })

	fillWeights = sixteens(quantiles(func(p float64) float64 { return 0.02 * normal(p) }), bfloat16)
	// A gain that is stored around zero is applied as 1+w.
	fillCentredGain = sixteens(quantiles(func(p float64) float64 { return 0.05 * normal(p) }), bfloat16)
	fillGain        = quantiles(func(p float64) float64 { return 1 + 0.05*normal(p) })
	// The decay exp(A_log) is uniform in 1 to 16, and the step softplus(dt_bias)
	// log-uniform in 0.001 to 0.1: the initialisation of state-space models.
	fillDecay = thirtyTwos(quantiles(func(p float64) float64 { return math.Log(1 + 15*p) }))
	fillStep  = sixteens(quantiles(func(p float64) float64 {
		return math.Log(math.Expm1(0.001 * math.Pow(100, p)))
	}), bfloat16)
	fillGain16, fillGain32 = sixteens(fillGain, bfloat16), thirtyTwos(fillGain)
)

// valuesOf chooses the values of a float tensor by its name.
func valuesOf(name string, dtype safetensors.DType) (fill, error) {
	visual := strings.Contains(name, "visual.")
	gain := strings.HasSuffix(name, "norm.weight") || strings.HasSuffix(name, "layernorm.weight") ||
		strings.HasSuffix(name, "norm1.weight") || strings.HasSuffix(name, "norm2.weight") || strings.Contains(name, ".pre_fc_norm_")
	switch {
	case dtype == safetensors.F32 && strings.HasSuffix(name, ".A_log"):
		return fillDecay, nil
	case dtype == safetensors.F32 && gain:
		return fillGain32, nil
	case dtype != safetensors.BF16:
		return nil, fmt.Errorf("tensor %q: no values are known for %s", name, dtype)
	case strings.HasSuffix(name, ".dt_bias"):
		return fillStep, nil
	case gain && visual:
		return fillGain16, nil
	case gain:
		return fillCentredGain, nil
	}
	return fillWeights, nil
}

// normal is the quantile function of the standard normal distribution.
func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// quantiles evaluates a quantile function at the middles of equal parts of
// [0, 1]: never at a half, so that no value around zero is zero.
func quantiles(of func(p float64) float64) *[tableSize]float64 {
	var table [tableSize]float64
	for i := range table {
		table[i] = of((float64(i) + 0.5) / tableSize)
	}
	return &table
}

// codesTable lists bytes of four codes: 0, 1 and 2 with probabilities 0.3, 0.4
// and 0.3, rounded so that each of the 81 bytes has a whole number of places.
func codesTable() *[tableSize]byte {
	probability := [3]float64{0.3, 0.4, 0.3}
	var table [tableSize]byte
	place, cumulated := 0, 0.0
	for i := range 81 {
		b, p, rest := byte(0), 1.0, i
		for position := range 4 {
			b |= byte(rest%3) << (2 * position)
			p *= probability[rest%3]
			rest /= 3
		}
		cumulated += p
		for place < tableSize && float64(place) < cumulated*tableSize-0.5 {
			table[place] = b
			place++
		}
	}
	for ; place < tableSize; place++ {
		table[place] = table[place-1]
	}
	return &table
}

func eights(table *[tableSize]byte) fill {
	return func(source *rand.ChaCha8, block []byte) {
		for len(block) >= perWord {
			w := source.Uint64()
			out := block[:perWord]
			out[0] = table[w%tableSize]
			out[1] = table[w>>12%tableSize]
			out[2] = table[w>>24%tableSize]
			out[3] = table[w>>36%tableSize]
			out[4] = table[w>>48%tableSize]
			block = block[perWord:]
		}
		w := source.Uint64()
		for i := range block {
			block[i] = table[w%tableSize]
			w >>= perWordBits
		}
	}
}

func sixteens(values *[tableSize]float64, encode func(float64) uint16) fill {
	var table [tableSize]uint16
	for i, v := range values {
		table[i] = encode(v)
	}
	return func(source *rand.ChaCha8, block []byte) {
		for len(block) >= 2*perWord {
			w := source.Uint64()
			out := block[:2*perWord]
			binary.LittleEndian.PutUint16(out, table[w%tableSize])
			binary.LittleEndian.PutUint16(out[2:], table[w>>12%tableSize])
			binary.LittleEndian.PutUint16(out[4:], table[w>>24%tableSize])
			binary.LittleEndian.PutUint16(out[6:], table[w>>36%tableSize])
			binary.LittleEndian.PutUint16(out[8:], table[w>>48%tableSize])
			block = block[2*perWord:]
		}
		w := source.Uint64()
		for ; len(block) >= 2; block = block[2:] {
			binary.LittleEndian.PutUint16(block, table[w%tableSize])
			w >>= perWordBits
		}
	}
}

// literalRows fills BF16 rows of so many bytes with {-a, 0, +a}: a is drawn for
// each row, and zeros of both signs, a and -a are equally frequent. Rows
// divide blockBytes.
func literalRows(rowBytes int64) fill {
	const lanes = 0x0001_0001_0001_0001
	signs := func(b uint64) (keep uint64) { // four elements of two bits: what is kept of the sign and of a
		for i := range 4 {
			keep |= []uint64{0, 0x8000, 0x7fff, 0xffff}[b>>(2*i)&3] << (16 * i)
		}
		return keep
	}
	var table [256]uint64
	for b := range table {
		table[b] = signs(uint64(b))
	}
	return func(source *rand.ChaCha8, block []byte) {
		for row := range slices.Chunk(block, int(rowBytes)) {
			a := uint64(bfloat16(alphas[source.Uint64()%tableSize]))*lanes | 0x8000*lanes
			w := uint64(0)
			for i := 0; i < len(row); i += 8 {
				if i%64 == 0 {
					w = source.Uint64()
				}
				binary.LittleEndian.PutUint64(row[i:], table[w&0xff]&a)
				w >>= 8
			}
		}
	}
}

// thirtyTwos serves the few small float32 tensors.
func thirtyTwos(values *[tableSize]float64) fill {
	return func(source *rand.ChaCha8, block []byte) {
		for ; len(block) >= 4; block = block[4:] {
			v := float32(values[source.Uint64()%tableSize])
			binary.LittleEndian.PutUint32(block, math.Float32bits(v))
		}
	}
}

// bfloat16 rounds to the nearest value, ties to even. v is finite.
func bfloat16(v float64) uint16 {
	b := math.Float32bits(float32(v))
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// float16 rounds to the nearest value, ties to even. v is positive and, after
// rounding, neither subnormal nor infinite (IEEE 754 binary16).
func float16(v float64) uint16 {
	fraction, exponent := math.Frexp(v) // v = fraction * 2^exponent, fraction in [0.5, 1)
	mantissa := int(math.RoundToEven(fraction * 2048))
	return uint16((exponent+14)<<10 + mantissa - 1024) // a mantissa of 2048 carries into the exponent
}
