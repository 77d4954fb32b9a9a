package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

var layouts = []struct {
	name                    string
	format, scales          Format
	groupRows, groupColumns int
	columnsMultiple         int
}{
	{"bf16", BF16, 0, 0, 0, 1},
	{"f16", F16, 0, 0, 0, 1},
	{"f32", F32, 0, 0, 0, 1},
	{"fp8 bf16 scales", E4M3, BF16, 128, 128, 1},
	{"fp8 f16 scales", E4M3, F16, 128, 128, 1},
	{"fp8 f32 scales, small blocks", E4M3, F32, 3, 24, 1},
	{"ternary", Packed, F16, 1, 128, 4},
	{"ternary, long groups", Packed, F16, 1, 256, 4},
	{"ternary, a scale a row", Packed, BF16, 1, 1024, 4},
	{"ternary, one scale", Packed, F32, 4096, 1024, 4},
}

func TestLinear(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			random := newRandom(3)
			for _, size := range [][3]int{{1, 1, 8}, {1, 5, 4}, {3, 7, 100}, {2, 130, 256}, {35, 9, 416}, {65, 6, 388}, {33, 3, 132}} {
				rows, outputs, inputs := size[0], size[1], size[2]+size[2]%layout.columnsMultiple
				p := newTestProgram(t, SharedPool(), Shape{Rows: rows, Slots: 1, Context: rows})
				x := p.Activation(inputs)
				fillRows(random, x, rows)
				first, firstValues := randomMatrix(random, layout.format, layout.scales, outputs, inputs, layout.groupRows, layout.groupColumns)
				second, secondValues := randomMatrix(random, layout.format, layout.scales, 2*outputs, inputs, layout.groupRows, layout.groupColumns)
				y, z := p.Activation(outputs), p.Activation(2*outputs)
				p.Linear(x, Projection{y, first}, Projection{z, second})
				batchOf(p, []int{0}, []int{rows})
				runProgram(t, p)
				var got []float32
				var want []float64
				for r := range rows {
					got = append(append(got, y.Row(r)...), z.Row(r)...)
					want = append(append(want, product(firstValues, x.Row(r))...), product(secondValues, x.Row(r))...)
				}
				near(t, fmt.Sprintf("%d rows, [%d %d]", rows, outputs, inputs), got, want, 1e-6)
			}
		})
	}
}

func product(matrix []float64, x []float32) []float64 {
	y := make([]float64, len(matrix)/len(x))
	for i := range y {
		for k, v := range x {
			y[i] += matrix[i*len(x)+k] * float64(v)
		}
	}
	return y
}

// A row's outputs are bitwise the same alone, in any batch, and with any number
// of workers.
func TestLinearRowsAreIndependent(t *testing.T) {
	for _, layout := range layouts {
		random := newRandom(4)
		const inputs, outputs = 392, 1030
		weight, _ := randomMatrix(random, layout.format, layout.scales, outputs, inputs, layout.groupRows, layout.groupColumns)
		var rows [67][]float32
		for i := range rows {
			rows[i] = fill(random, make([]float32, inputs))
		}
		var want [67][]float32
		for _, workers := range []int{1, 2, 5} {
			pool := NewPool(workers)
			p := newTestProgram(t, pool, Shape{Rows: 67, Slots: 1, Context: 67})
			x, y := p.Activation(inputs), p.Activation(outputs)
			p.Linear(x, Projection{y, weight})
			for _, count := range []int{1, 2, 16, 31, 32, 33, 67} {
				for first := 0; first+count <= len(rows); first += max(count, 9) {
					for i := range count {
						copy(x.Row(i), rows[first+i])
					}
					batchOf(p, []int{0}, []int{count})
					runProgram(t, p)
					for i := range count {
						if want[first+i] == nil {
							want[first+i] = slices.Clone(y.Row(i))
						} else if !slices.Equal(want[first+i], y.Row(i)) {
							t.Fatalf("%s: row %d differs in a batch of %d with %d workers", layout.name, first+i, count, workers)
						}
					}
				}
			}
			pool.Close()
		}
	}
}

// The machine's own versions of the inner loops equal the Go ones bitwise.
func TestVectorLoops(t *testing.T) {
	random := newRandom(5)
	for _, n := range []int{0, 1, 7, 8, 9, 24, 64, 100, 127, 128} {
		x, y := fill(random, make([]float32, n)), fill(random, make([]float32, n))
		if got, want := dot(x, y), dotGo(x, y); got != want {
			t.Errorf("dot of %d is %v, want %v", n, got, want)
		}
		got, want := slices.Clone(y), slices.Clone(y)
		addScaled(got, 1.7, x)
		addScaledGo(want, 1.7, x)
		if !slices.Equal(got, want) {
			t.Errorf("addScaled of %d differs", n)
		}
		bytes := make([]byte, 2*n)
		for i := range bytes {
			bytes[i] = byte(random.IntN(256)) & 0x7E
		}
		decodeBF16(got, bytes)
		decodeBF16Go(want, bytes)
		if !slices.Equal(got, want) {
			t.Errorf("decodeBF16 of %d differs", n)
		}
		decodePacked(got[:n&^3], bytes[:n/4])
		decodePackedGo(want[:n&^3], bytes[:n/4])
		if !slices.Equal(got, want) {
			t.Errorf("decodePacked of %d differs", n)
		}
	}
	codes, got, want := make([]byte, 256), make([]float32, 256), make([]float32, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	codes[0x7F], codes[0xFF] = 1, 2 // not numbers; no checkpoint holds them
	decodeE4M3(got, codes)
	decodeE4M3Go(want, codes)
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("decodeE4M3 of %#x is %v, want %v", codes[i], got[i], want[i])
		}
	}
}

func TestTileProduct(t *testing.T) {
	random := newRandom(6)
	var tile [tileRows * blockColumns]float32
	fill(random, tile[:])
	scales := [tileRows]float32{1, 0.5, -3, 7}
	for _, n := range []int{8, 16, 40, 128} {
		for count := 1; count <= 5; count++ {
			const stride = 136
			x := fill(random, make([]float32, count*stride))
			got := fill(random, make([]float32, count*tileRows*8))
			want := slices.Clone(got)
			tileProduct(&tile, x, stride, count, n, &scales, got)
			tileProductGo(&tile, x, stride, count, n, &scales, want)
			if !slices.Equal(got, want) {
				t.Errorf("%d rows of %d differ", count, n)
			}
		}
	}
}

func TestMatrixCheck(t *testing.T) {
	clean := func() *Matrix {
		m, _ := randomMatrix(newRandom(8), Packed, F16, 3, 256, 1, 128)
		return m
	}
	for _, tc := range []struct {
		name  string
		fault func(*Matrix)
		ok    bool
	}{
		{"clean", func(*Matrix) {}, true},
		{"data", func(m *Matrix) { m.Data = m.Data[1:] }, false},
		{"scales", func(m *Matrix) { m.Scales = m.Scales[2:] }, false},
		{"no scales", func(m *Matrix) { m.Scales = nil }, false},
		{"group", func(m *Matrix) { m.GroupColumns = 4 }, false},
		{"columns", func(m *Matrix) { m.Columns = 255 }, false},
		{"format", func(m *Matrix) { m.Format = 9 }, false},
		{"scale format", func(m *Matrix) { m.ScaleFormat = Packed }, false},
	} {
		m := clean()
		tc.fault(m)
		if err := m.Check(); (err == nil) != tc.ok {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
}

func TestEmbed(t *testing.T) {
	for _, layout := range layouts {
		random := newRandom(9)
		table, values := randomMatrix(random, layout.format, layout.scales, 11, 392, layout.groupRows, layout.groupColumns)
		p := newTestProgram(t, SharedPool(), Shape{Rows: 3, Slots: 1, Context: 3})
		x := p.Activation(392)
		p.Embed(x, table)
		p.Batch.Append(0, 0, []int32{10, 0, 7})
		runProgram(t, p)
		for i, token := range []int{10, 0, 7} {
			near(t, layout.name, x.Row(i), values[token*392:][:392], 1e-7)
		}
	}
}

func TestExponential(t *testing.T) {
	inputs := []float32{0, 1, -1, 88, 89, 1e30, -87, -88, -1e30, float32(math.Inf(1)), float32(math.Inf(-1)), 0.34657, -0.34657, 1e-20}
	for x := float32(-87); x < 88; x += 0.0137 {
		inputs = append(inputs, x)
	}
	for _, x := range inputs {
		want := math.Exp(min(max(float64(x), expLow), expHigh))
		if got := float64(exp32(x)); math.Abs(got-want) > 1.5e-7*want {
			t.Errorf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	if nan := float32(math.NaN()); exp32(nan) == exp32(nan) {
		t.Error("NaN is lost")
	}
	got, want := slices.Clone(inputs), slices.Clone(inputs)
	exponentials(got, 0.25)
	exponentialsGo(want, 0.25)
	if !slices.Equal(got, want) {
		t.Error("exponentials differs from its Go version")
	}
	silu(got, inputs)
	siluGo(want, inputs)
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("silu(%v) is %v, its Go version %v", inputs[i], got[i], want[i])
		}
	}
	row := []float32{1, 2, 3, 4, 5, float32(math.NaN()), 7, 8}
	exponentials(row, 0)
	if row[5] == row[5] || row[4] != exp32(5) {
		t.Errorf("exponentials of NaN: %v", row)
	}
}
