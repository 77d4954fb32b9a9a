package ternary

import (
	"encoding/binary"
	"fmt"
	"math"

	"slipway/manifest/safetensors"
)

// HoldsValues reports whether scales and literal weights may have a type.
func HoldsValues(dtype safetensors.DType) bool {
	return dtype == safetensors.F16 || dtype == safetensors.BF16 || dtype == safetensors.F32
}

// Value returns the number that the bits of an F16, BF16 or F32 stand for.
func Value(dtype safetensors.DType, b uint64) float64 {
	switch dtype {
	case safetensors.BF16:
		return float64(math.Float32frombits(uint32(b) << 16))
	case safetensors.F32:
		return float64(math.Float32frombits(uint32(b)))
	}
	sign, exponent, mantissa := 1.0, int(b>>10&0x1f), float64(b&0x3ff)
	if b>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0x1f:
		if mantissa != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case 0:
		return sign * math.Ldexp(mantissa, -24)
	}
	return sign * math.Ldexp(1+mantissa/1024, exponent-15)
}

// Bits returns the bits of element i of an F16, BF16 or F32 tensor.
func Bits(dtype safetensors.DType, data []byte, i int64) uint64 {
	if dtype == safetensors.F32 {
		return uint64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return uint64(binary.LittleEndian.Uint16(data[2*i:]))
}

// IsNegated reports whether a bias is the negative of a scale bit for bit; both
// zeros are the same.
func IsNegated(dtype safetensors.DType, scale, bias uint64) bool {
	sign := uint64(1) << (dtype.Bits() - 1)
	return scale^bias == sign || (scale|bias)&^sign == 0
}

// Stored is a packed tensor's bytes. Biases have the scales' type.
type Stored struct {
	Codes, Scales, Biases []byte
	ScaleDType            safetensors.DType
}

// fits checks that the bytes are as many as the layout needs.
func (l *Layout) fits(s Stored) error {
	if !HoldsValues(s.ScaleDType) || l.Scales.DType != 0 && s.ScaleDType != l.Scales.DType {
		return fmt.Errorf("scales of type %s", s.ScaleDType)
	}
	scaleBytes := l.Units * int64(s.ScaleDType.Bits()) / 8
	switch {
	case int64(len(s.Codes)) != l.CodeBytes():
		return fmt.Errorf("%d bytes of codes, want %d", len(s.Codes), l.CodeBytes())
	case int64(len(s.Scales)) != scaleBytes:
		return fmt.Errorf("%d bytes of scales, want %d", len(s.Scales), scaleBytes)
	case l.Biases != nil && int64(len(s.Biases)) != scaleBytes:
		return fmt.Errorf("%d bytes of biases, want %d", len(s.Biases), scaleBytes)
	}
	return nil
}

// Decode returns the weights, [Rows, Inputs] in C order. Every product of a
// code and a scale is exact; a sum with a bias is rounded once.
func (l *Layout) Decode(s Stored) ([]float32, error) {
	if err := l.fits(s); err != nil {
		return nil, err
	}
	values := make([]float32, l.Elements())
	for i := range values {
		level := l.Format.Packing.level(l.Read(s.Codes, 0, int64(i)))
		if level != level {
			return nil, fmt.Errorf("weight %d: %s", i, l.Format.Packing.BadOne)
		}
		unit := int64(i) / l.UnitSize
		scale := Value(s.ScaleDType, Bits(s.ScaleDType, s.Scales, unit))
		if l.Biases != nil {
			values[i] = float32((level+1)*scale + Value(s.ScaleDType, Bits(s.ScaleDType, s.Biases, unit)))
		} else {
			values[i] = float32(level * scale)
		}
	}
	return values, nil
}

// EncodeCodes packs one trit, -1, 0 or +1, for each weight in C order.
func (l *Layout) EncodeCodes(trits []int8) ([]byte, error) {
	if int64(len(trits)) != l.Elements() {
		return nil, fmt.Errorf("%d weights, want %d", len(trits), l.Elements())
	}
	packing, codes := l.Format.Packing, make([]byte, l.CodeBytes())
	for i, trit := range trits {
		if trit < -1 || trit > 1 {
			return nil, fmt.Errorf("weight %d is %d", i, trit)
		}
		at, slot := l.Slot(int64(i))
		b, ok := packing.Set(codes[at], slot, byte(trit+1))
		if !ok {
			return nil, fmt.Errorf("weight %d: no byte of %s holds it", i, l.Format.ID)
		}
		codes[at] = b
	}
	return codes, nil
}

// Biases returns the biases that make scales of a type ternary.
func Biases(dtype safetensors.DType, scales []byte) []byte {
	biases := make([]byte, len(scales))
	copy(biases, scales)
	for i := dtype.Bits()/8 - 1; i < len(biases); i += dtype.Bits() / 8 {
		biases[i] ^= 0x80
	}
	return biases
}

// Encode packs weights, [Rows, Inputs] in C order, without changing a value but
// the sign of zero. The error names the first weight that is not its unit's
// magnitude, or whose magnitude the scale type does not hold. A unit of zeros
// has scale zero.
func (l *Layout) Encode(values []float32, dtype safetensors.DType) (Stored, error) {
	if int64(len(values)) != l.Elements() {
		return Stored{}, fmt.Errorf("%d weights, want %d", len(values), l.Elements())
	}
	s := Stored{ScaleDType: dtype, Scales: make([]byte, l.Units*int64(dtype.Bits())/8)}
	trits := make([]int8, len(values))
	for unit := range l.Units {
		begin := unit * l.UnitSize
		magnitude, err := l.unit(values[begin:begin+l.UnitSize], trits[begin:], begin)
		if err != nil {
			return Stored{}, err
		}
		b, ok := bitsOf(dtype, magnitude)
		if !ok {
			return Stored{}, fmt.Errorf("row %d: %s does not hold the magnitude %v", begin/l.Inputs, dtype, magnitude)
		}
		if dtype == safetensors.F32 {
			binary.LittleEndian.PutUint32(s.Scales[4*unit:], uint32(b))
		} else {
			binary.LittleEndian.PutUint16(s.Scales[2*unit:], uint16(b))
		}
	}
	if l.Biases != nil {
		s.Biases = Biases(dtype, s.Scales)
	}
	var err error
	s.Codes, err = l.EncodeCodes(trits)
	return s, err
}

// unit finds the magnitude of a unit that begins at an element, and its trits.
func (l *Layout) unit(values []float32, trits []int8, begin int64) (magnitude float32, err error) {
	for i, v := range values {
		size := float32(math.Abs(float64(v)))
		switch {
		case size == 0:
			continue
		case magnitude == 0 && !math.IsInf(float64(v), 0) && v == v:
			magnitude = size
		case size != magnitude:
			at := begin + int64(i)
			return 0, fmt.Errorf("row %d, input %d: %v is not 0 or %v", at/l.Inputs, at%l.Inputs, v, magnitude)
		}
		trits[i] = 1
		if v < 0 {
			trits[i] = -1
		}
	}
	return magnitude, nil
}

// bitsOf returns the bits of a number that is not negative; ok is false where
// the type does not hold it exactly.
func bitsOf(dtype safetensors.DType, v float32) (b uint64, ok bool) {
	wide := math.Float32bits(v)
	switch dtype {
	case safetensors.F32:
		return uint64(wide), true
	case safetensors.BF16:
		return uint64(wide >> 16), wide&0xffff == 0
	}
	if v == 0 {
		return 0, true
	}
	fraction, exponent := math.Frexp(float64(v)) // v = fraction * 2^exponent, fraction in [0.5, 1)
	if exponent < -13 {                          // subnormal: whole multiples of 2^-24
		b = uint64(math.Ldexp(float64(v), 24))
	} else {
		b = uint64(exponent+14)<<10 + uint64(math.Ldexp(fraction, 11)) - 1024
	}
	return b, b < 0x7c00 && Value(safetensors.F16, b) == float64(v)
}
