package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Format is how a matrix's elements are stored, little endian.
type Format int

const (
	BF16   Format = iota
	F16           // IEEE half precision
	F32           //
	E4M3          // 1 sign, 4 exponent (bias 7), 3 mantissa bits, no infinities; with scales
	Packed        // four codes 0, 1, 2 a byte, lowest bits first; value (code-1) * scale
)

// Matrix is a [Rows, Columns] parameter in its stored form. Packed and E4M3
// have one scale, of ScaleFormat BF16, F16 or F32, for each block of GroupRows x
// GroupColumns, in a row-major [ceil(Rows/GroupRows), ceil(Columns/GroupColumns)]
// matrix.
type Matrix struct {
	Rows, Columns           int
	Format                  Format
	Data                    []byte
	Scales                  []byte
	ScaleFormat             Format
	GroupRows, GroupColumns int

	// Stored, if set, reads the two instead of Data and Scales: a device takes them
	// piece by piece, and they are never whole in this machine's memory.
	Stored Stored
}

// Stored is a matrix in its file. Its methods may be called at once; they refuse
// what is not a weight.
type Stored interface {
	DataSize() int64
	ScalesSize() int64 // 0: there are none
	ReadData(dst []byte, offset int64) error
	ReadScales(dst []byte, offset int64) error
}

// StoredError is the error of a Stored, as Program.Finish returns it.
type StoredError struct{ Err error }

func (e *StoredError) Error() string { return e.Err.Error() }

// dataBytes and scaleBytes are the sizes of the two parts.
func (m *Matrix) dataBytes() int64 {
	if m.Stored != nil {
		return m.Stored.DataSize()
	}
	return int64(len(m.Data))
}

func (m *Matrix) scaleBytes() int64 {
	if m.Stored != nil {
		return m.Stored.ScalesSize()
	}
	return int64(len(m.Scales))
}

// Check says what is inconsistent in m, or returns nil.
func (m *Matrix) Check() error {
	bits, ok := map[Format]int{BF16: 16, F16: 16, F32: 32, E4M3: 8, Packed: 2}[m.Format]
	switch {
	case !ok:
		return fmt.Errorf("unknown format %d", m.Format)
	case m.Rows <= 0 || m.Columns <= 0 || m.Columns*bits%8 != 0:
		return fmt.Errorf("shape [%d %d]", m.Rows, m.Columns)
	case m.dataBytes() != int64(m.Rows*m.Columns*bits/8):
		return fmt.Errorf("%d bytes for shape [%d %d]", m.dataBytes(), m.Rows, m.Columns)
	}
	if m.Format != Packed && m.Format != E4M3 {
		return nil
	}
	if m.GroupRows <= 0 || m.GroupColumns <= 0 || m.GroupColumns%8 != 0 {
		return fmt.Errorf("groups of [%d %d]: columns must be a multiple of 8", m.GroupRows, m.GroupColumns)
	}
	width, ok := map[Format]int{BF16: 2, F16: 2, F32: 4}[m.ScaleFormat]
	if !ok || m.scaleBytes() != int64(width*m.groups()*((m.Rows+m.GroupRows-1)/m.GroupRows)) {
		return fmt.Errorf("%d bytes of scales for shape [%d %d] in groups of [%d %d]", m.scaleBytes(), m.Rows, m.Columns, m.GroupRows, m.GroupColumns)
	}
	return nil
}

// groups returns how many scales a row has.
func (m *Matrix) groups() int {
	if m.GroupColumns == 128 { // the usual size, without a division
		return (m.Columns + 127) / 128
	}
	return (m.Columns + m.GroupColumns - 1) / m.GroupColumns
}

// groupEnd returns the column at which a group of a row ends; without scales a
// row is one group.
func (m *Matrix) groupEnd(group int) int {
	if m.Scales == nil {
		return m.Columns
	}
	return min((group+1)*m.GroupColumns, m.Columns)
}

// scale returns the factor of a group of row.
func (m *Matrix) scale(row, group int) float32 {
	if m.Scales == nil {
		return 1
	}
	if m.GroupRows > 1 {
		row /= m.GroupRows
	}
	i := row*m.groups() + group
	switch m.ScaleFormat {
	case BF16:
		return fromBF16(binary.LittleEndian.Uint16(m.Scales[2*i:]))
	case F16:
		return fromF16(binary.LittleEndian.Uint16(m.Scales[2*i:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(m.Scales[4*i:]))
}

// decode widens row's columns k..k+len(dst)-1, without their scale; k is a
// multiple of 8.
func (m *Matrix) decode(dst []float32, row, k int) {
	at := row*m.Columns + k
	switch m.Format {
	case BF16:
		decodeBF16(dst, m.Data[2*at:][:2*len(dst)])
	case F16:
		src := m.Data[2*at:]
		for i := range dst {
			dst[i] = fromF16(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case F32:
		src := m.Data[4*at:]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case E4M3:
		decodeE4M3(dst, m.Data[at:][:len(dst)])
	case Packed:
		decodePacked(dst, m.Data[at/4:][:len(dst)/4])
	}
}

// Row writes one row, scales applied, to dst.
func (m *Matrix) Row(dst []float32, row int) {
	for k, group := 0, 0; k < m.Columns; group++ {
		end := m.groupEnd(group)
		part := dst[k:end]
		m.decode(part, row, k)
		if m.Scales != nil {
			scale(part, m.scale(row, group))
		}
		k = end
	}
}

func fromBF16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// fromF16 widens an IEEE half: exponent 5 bits, bias 15; mantissa 10 bits. With
// its bits moved to float32's places the value is 2^-112 times too small, for
// subnormals too.
func fromF16(bits uint16) float32 {
	sign, magnitude := uint32(bits&0x8000)<<16, uint32(bits&0x7FFF)<<13
	if magnitude >= 31<<23 { // infinite or not a number
		return math.Float32frombits(sign | 0x7F800000 | magnitude)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(magnitude)*0x1p112))
}

// fromE4M3 is the value of each F8_E4M3 ("fn") code.
var fromE4M3 = func() (table [256]float32) {
	for code := range table {
		exponent, mantissa := code>>3&15, float64(code&7)
		value := math.Ldexp(mantissa, -9) // subnormal: mantissa/8 * 2^-6
		if exponent > 0 {
			value = math.Ldexp(8+mantissa, exponent-10)
		}
		if code&127 == 127 {
			value = math.NaN()
		}
		if code >= 128 {
			value = -value
		}
		table[code] = float32(value)
	}
	return table
}()

// fromPacked is the four values code-1 of each byte.
var fromPacked = func() (table [256][4]float32) {
	for b := range table {
		for i := range 4 {
			table[b][i] = float32(b>>(2*i)&3) - 1
		}
	}
	return table
}()

func decodeBF16Go(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = fromBF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeE4M3Go(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = fromE4M3[src[i]]
	}
}

func decodePackedGo(dst []float32, src []byte) {
	for i, b := range src {
		*(*[4]float32)(dst[4*i:]) = fromPacked[b]
	}
}
