package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// The tests hold each operation against a direct float64 computation of its
// formula over the same stored inputs, at odd sizes.

// testDevice is where the programs of tests compute: nil for plain Go. The tests
// of operations are bodies for every implementation.
var testDevice *Device

func newTestProgram(t testing.TB, pool *Pool, shape Shape) *Program {
	if testDevice == nil {
		return NewProgram(pool, shape)
	}
	p := testDevice.NewProgram(shape)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func runProgram(t testing.TB, p *Program) {
	t.Helper()
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func fill(random *rand.Rand, values []float32) []float32 {
	for i := range values {
		values[i] = float32(random.NormFloat64())
	}
	return values
}

func fillRows(random *rand.Rand, a *Activation, rows int) {
	for r := range rows {
		fill(random, a.Row(r))
	}
}

func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	difference, norm := 0.0, 0.0
	for i := range want {
		d := float64(got[i]) - want[i]
		difference += d * d
		norm += want[i] * want[i]
	}
	if e := math.Sqrt(difference / norm); !(e <= tolerance) || len(got) != len(want) {
		t.Errorf("%s: relative error %.2g of %d values, at most %.0g allowed", what, e, len(want), tolerance)
	}
}

func widen(values []float32) []float64 {
	wide := make([]float64, len(values))
	for i, x := range values {
		wide[i] = float64(x)
	}
	return wide
}

// randomMatrix makes a matrix of that format, and its values.
func randomMatrix(random *rand.Rand, format, scaleFormat Format, rows, columns, groupRows, groupColumns int) (*Matrix, []float64) {
	m := &Matrix{Rows: rows, Columns: columns, Format: format}
	values := make([]float64, rows*columns)
	for i := range values {
		x := float32(random.NormFloat64())
		switch format {
		case BF16:
			bits := math.Float32bits(x) >> 16
			m.Data = binary.LittleEndian.AppendUint16(m.Data, uint16(bits))
			values[i] = float64(math.Float32frombits(bits << 16))
		case F16: // a random sign, exponent and mantissa, subnormals too
			bits := uint16(random.IntN(2)<<15 | random.IntN(18)<<10 | random.IntN(1024))
			m.Data = binary.LittleEndian.AppendUint16(m.Data, bits)
			values[i] = halfValue(bits)
		case F32:
			m.Data = binary.LittleEndian.AppendUint32(m.Data, math.Float32bits(x))
			values[i] = float64(x)
		case E4M3:
			code := byte(random.IntN(2)<<7 | random.IntN(127))
			m.Data = append(m.Data, code)
			values[i] = float64(fromE4M3[code])
		case Packed:
			code := random.IntN(3)
			if i%4 == 0 {
				m.Data = append(m.Data, 0)
			}
			m.Data[i/4] |= byte(code << (2 * (i % 4)))
			values[i] = float64(code - 1)
		}
	}
	if groupRows > 0 {
		addScales(random, m, scaleFormat, groupRows, groupColumns, values)
	}
	return m, values
}

func addScales(random *rand.Rand, m *Matrix, format Format, groupRows, groupColumns int, values []float64) {
	m.ScaleFormat, m.GroupRows, m.GroupColumns = format, groupRows, groupColumns
	perRow := (m.Columns + groupColumns - 1) / groupColumns
	scales := make([]float64, perRow*((m.Rows+groupRows-1)/groupRows))
	for i := range scales {
		x := float32(random.Float64() + 0.1)
		switch format {
		case F16:
			bits := uint16((10+random.IntN(8))<<10 | random.IntN(1024))
			m.Scales, scales[i] = binary.LittleEndian.AppendUint16(m.Scales, bits), halfValue(bits)
		case BF16:
			bits := math.Float32bits(x) >> 16
			m.Scales, scales[i] = binary.LittleEndian.AppendUint16(m.Scales, uint16(bits)), float64(math.Float32frombits(bits<<16))
		case F32:
			m.Scales, scales[i] = binary.LittleEndian.AppendUint32(m.Scales, math.Float32bits(x)), float64(x)
		}
	}
	for i := range values {
		row, column := i/m.Columns, i%m.Columns
		values[i] *= scales[row/groupRows*perRow+column/groupColumns]
	}
}

// halfValue is an IEEE half by its definition.
func halfValue(bits uint16) float64 {
	exponent, mantissa := int(bits>>10&31), float64(bits&1023)
	value := math.Ldexp(mantissa, -24)
	if exponent > 0 {
		value = math.Ldexp(1024+mantissa, exponent-25)
	}
	if bits&0x8000 != 0 {
		value = -value
	}
	return value
}

// batchOf fills a program's batch with runs of those lengths from those starts.
func batchOf(p *Program, starts, lengths []int) {
	p.Batch.Clear()
	for i := range p.Batch.Pages {
		p.Batch.Pages[i] = int32(len(p.Batch.Pages) - 1 - i) // not in order
	}
	for slot, length := range lengths {
		if length > 0 {
			p.Batch.Append(slot, starts[slot], make([]int32, length))
		}
	}
}

func TestFromF16(t *testing.T) {
	for bits := range 1 << 16 {
		got := float64(fromF16(uint16(bits)))
		if bits>>10&31 == 31 {
			if bits&1023 == 0 != math.IsInf(got, 0) || bits&1023 != 0 != math.IsNaN(got) {
				t.Fatalf("%#x is %v", bits, got)
			}
		} else if got != halfValue(uint16(bits)) {
			t.Fatalf("%#x is %v, want %v", bits, got, halfValue(uint16(bits)))
		}
	}
}

func TestFromE4M3(t *testing.T) {
	for _, tc := range []struct {
		code  byte
		value float32
	}{{0, 0}, {1, 0x1p-9}, {7, 7 * 0x1p-9}, {8, 0x1p-6}, {0x38, 1}, {0x3C, 1.5}, {0x7E, 448}, {0xFE, -448}, {0xB8, -1}} {
		if got := fromE4M3[tc.code]; got != tc.value {
			t.Errorf("%#x is %v, want %v", tc.code, got, tc.value)
		}
	}
	if !math.IsNaN(float64(fromE4M3[0x7F])) || !math.IsNaN(float64(fromE4M3[0xFF])) {
		t.Error("0x7F and 0xFF are not NaN")
	}
}
