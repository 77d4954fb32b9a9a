package shrink

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// fill writes the next values of a tensor; all calls but its last have a block
// of blockBytes.
type fill func(source *rand.ChaCha8, block []byte)

const blockBytes = 1 << 18

// newSource returns the random bits of one tensor: ChaCha8 (math/rand/v2) keyed
// by the SHA-256 of its seed, so that twins of one submission are equal.
func newSource(seed string) *rand.ChaCha8 { return rand.NewChaCha8(sha256.Sum256([]byte(seed))) }

// tableSize values are drawn from a table by twelve random bits each.
const tableSize = 1 << 12

// fillOf chooses plausible values: of the size that initialisation gives, so
// that activations stay finite, and legal in the format.
func fillOf(p part, dtype safetensors.DType, centred bool) (fill, error) {
	switch {
	case p.kind == partCodes && (dtype == safetensors.U8 || dtype == safetensors.U32):
		return fillCodes, nil
	case p.kind == partScales, p.kind == scaleSuffix:
		return tabulated(dtype, scale)
	case p.kind == partBiases: // of affine codes, whose middle is zero
		return tabulated(dtype, func(u float64) float64 { return -scale(u) })
	case p.kind == manifest.KindLiteral:
		return tabulated(dtype, func(u float64) float64 { return 0.02 * (math.Floor(3*u) - 1) })
	case strings.HasSuffix(p.logical, ".A_log"): // exp(A_log) uniform in 1 to 16
		return tabulated(dtype, func(u float64) float64 { return math.Log(1 + 15*u) })
	case strings.HasSuffix(p.logical, ".dt_bias"): // softplus(dt_bias) log-uniform in 0.001 to 0.1
		return tabulated(dtype, func(u float64) float64 { return math.Log(math.Expm1(0.001 * math.Pow(100, u))) })
	case isGain(p.logical) && !(centred && !strings.HasSuffix(p.logical, "linear_attn.norm.weight")):
		return tabulated(dtype, func(u float64) float64 { return 1 + 0.1*(u-0.5) })
	case dtype == safetensors.F8E4M3:
		return fillEights, nil
	}
	return tabulated(dtype, func(u float64) float64 { return 0.02 * math.Sqrt2 * math.Erfinv(2*u-1) })
}

// scale is a quantile function of scales.
func scale(u float64) float64 { return 0.02 * (0.75 + 0.5*u) }

// isGain reports whether a tensor is a norm's weight: around one, or around zero
// where the model adds one.
func isGain(name string) bool {
	return strings.HasSuffix(name, "norm.weight") || strings.HasSuffix(name, "norm1.weight") || strings.HasSuffix(name, "norm2.weight") || strings.HasSuffix(name, ".ln_q.weight") || strings.Contains(name, ".pre_fc_norm_")
}

// fillCodes writes bytes of four ternary codes: 0, 1 or 2, never 3.
func fillCodes(source *rand.ChaCha8, block []byte) {
	for i := range block {
		rest := source.Uint64() >> 32 % 81
		block[i] = byte(rest%3 | rest/3%3<<2 | rest/9%3<<4 | rest/27<<6)
	}
}

// fillEights writes F8_E4M3 values of either sign from 1/16 to 1.875: exponents
// 3 to 7 with a bias of 7, never the NaN of all bits set.
func fillEights(source *rand.ChaCha8, block []byte) {
	for i := range block {
		word := source.Uint64()
		block[i] = byte(word&0x87 | (3+word>>8%5)<<3)
	}
}

// tabulated draws values of a quantile function, evaluated at the middles of
// equal parts of [0, 1].
func tabulated(dtype safetensors.DType, quantile func(u float64) float64) (fill, error) {
	var encode func(value float64) uint64
	switch dtype {
	case safetensors.BF16:
		encode = func(v float64) uint64 { return uint64(math.Float32bits(float32(v)) >> 16) }
	case safetensors.F16:
		encode = func(v float64) uint64 { return uint64(half(v)) }
	case safetensors.F32:
		encode = func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
	default:
		return nil, unshrinkable("no values are known for its type %s", dtype)
	}
	var table [tableSize]uint64
	for i := range table {
		table[i] = encode(quantile((float64(i) + 0.5) / tableSize))
	}
	width := dtype.Bits() / 8
	return func(source *rand.ChaCha8, block []byte) {
		var word [8]byte
		for at := 0; at < len(block); {
			bits := source.Uint64()
			for range 5 {
				binary.LittleEndian.PutUint64(word[:], table[bits%tableSize])
				at += copy(block[at:], word[:width])
				bits >>= 12
			}
		}
	}, nil
}

// half returns the bits of a value as F16, cut off; what is below the smallest
// normal value is zero.
func half(value float64) uint16 {
	bits := math.Float32bits(float32(value))
	sign, exponent := uint16(bits>>16&0x8000), int(bits>>23&0xFF)-127+15
	if exponent <= 0 {
		return sign
	}
	return sign | uint16(min(exponent, 30))<<10 | uint16(bits>>13&0x3FF)
}
