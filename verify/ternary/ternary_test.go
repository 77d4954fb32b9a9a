package ternary_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	. "slipway/verify/ternary"
	"slipway/verify/ternary/ternarytest"
)

func entry(format, unit string, group int64, shape ...int64) manifest.Quantity {
	return manifest.Quantity{Kind: manifest.KindPacked2Bit, Format: format, Unit: unit, GroupSize: group, Shape: shape}
}

func layout(t *testing.T, e manifest.Quantity) Layout {
	t.Helper()
	f, ok := Lookup(e.FormatID())
	if !ok {
		t.Fatalf("no format %q", e.FormatID())
	}
	l, err := f.Geometry(e)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sixteens(words ...uint16) []byte {
	var out []byte
	for _, w := range words {
		out = binary.LittleEndian.AppendUint16(out, w)
	}
	return out
}

func concat(parts ...[]float32) []float32 { return slices.Concat(parts...) }

func row(values ...float32) []float32 { return values }

func repeat(v float32, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// at returns n zeros but for some places.
func at(n int, values map[int]float32) []float32 {
	out := make([]float32, n)
	for i, v := range values {
		out[i] = v
	}
	return out
}

// Bytes and values that were worked out by hand.
func TestKnownAnswers(t *testing.T) {
	answered := map[string]bool{}
	for _, tc := range []struct {
		name   string
		entry  manifest.Quantity
		stored Stored
		want   []float32
	}{
		{
			// 0b10010001: codes 1, 0, 1, 2 from the lowest bits on; 0x01 in the
			// second byte: 1, 0, 0, 0. F16 0x3800 is 0.5, 0x4000 is 2.
			name: "packed_2bit", entry: entry("", "", 4, 1, 8),
			stored: Stored{Codes: []byte{0x91, 0x01}, Scales: sixteens(0x3800, 0x4000), ScaleDType: safetensors.F16},
			want:   row(0, -0.5, 0, 0.5, 0, -2, -2, -2),
		},
		{
			// BF16 0xbf80 is -1: a negative scale turns the signs.
			name: "packed_2bit by row", entry: entry("packed_2bit", "row", 0, 2, 4),
			stored: Stored{Codes: []byte{0xaa, 0x00}, Scales: sixteens(0xbf80, 0x3f80), ScaleDType: safetensors.BF16},
			want:   row(-1, -1, -1, -1, -1, -1, -1, -1),
		},
		{
			name: "packed_2bit, one scale", entry: entry("packed_2bit", "tensor", 0, 2, 4),
			stored: Stored{Codes: []byte{0xaa, 0x95}, Scales: []byte{0, 0, 0xc0, 0x3f}, ScaleDType: safetensors.F32}, // 1.5
			want:   row(1.5, 1.5, 1.5, 1.5, 0, 0, 0, 1.5),
		},
		{
			// The word 0x00000006 has codes 2, 1, then fourteen times 0: scale
			// 1.5 and bias -1.5 give 1.5, 0, -1.5.
			name: "mlx_affine_2bit", entry: entry("mlx_affine_2bit", "", 16, 1, 16),
			stored: Stored{Codes: []byte{6, 0, 0, 0}, Scales: sixteens(0x3fc0), Biases: sixteens(0xbfc0), ScaleDType: safetensors.BF16},
			want:   concat(row(1.5, 0), repeat(-1.5, 14)),
		},
		{
			// Affine in general: code 3 times 0.5 plus 1, and no -scale bias.
			name: "mlx_affine_2bit, asymmetric", entry: entry("mlx_affine_2bit", "", 16, 1, 16),
			stored: Stored{Codes: []byte{7, 0, 0, 0}, Scales: sixteens(0x3800), Biases: sixteens(0x3c00), ScaleDType: safetensors.F16},
			want:   concat(row(2.5, 1.5), repeat(1, 14)),
		},
		{
			// The highest two bits of the word are the last code.
			name: "mlx_row_alpha_2bit", entry: entry("mlx_row_alpha_2bit", "", 0, 1, 16),
			stored: Stored{Codes: []byte{0x55, 0x55, 0x55, 0x95}, Scales: sixteens(0x3d00), ScaleDType: safetensors.BF16}, // 1/32
			want:   concat(repeat(0, 15), row(0.03125)),
		},
		{
			// Five rows of two: R = 2. Byte row 0 holds rows 0, 2, 4 and the
			// padding row 6, byte row 1 rows 1, 3 and the padding rows 5 and 7.
			// 0x15 is codes 1, 1, 1, 0 and 0x06 is 2, 1, 0, 0.
			name: "bitnet_u8", entry: entry("bitnet_u8", "", 0, 5, 2),
			stored: Stored{Codes: []byte{0x15, 0x20, 0x06, 0x00}, Scales: sixteens(0x4000), ScaleDType: safetensors.BF16}, // 2
			want:   row(0, -2, 2, -2, 0, -2, 0, -2, 0, 2),
		},
		{
			// Seventeen inputs: two words a row. Codes 1, 2 and 3 are -1, 0 and +1:
			// 0b10101110 is codes 2, 3, 2, 2, and the second word has one code, 1,
			// and padding. The second row has the bad code 0, which is -2.
			name: "compressed_tensors_2bit", entry: entry("compressed_tensors_2bit", "row", 0, 2, 17),
			stored: Stored{Codes: []byte{0xae, 0xaa, 0xaa, 0xaa, 1, 0, 0, 0, 0xa8, 0xaa, 0xaa, 0xea, 3, 0, 0, 0}, Scales: sixteens(0x3f00, 0x3f80), ScaleDType: safetensors.BF16},
			want:   concat(row(0, 0.5), repeat(0, 14), row(-0.5), row(-2), repeat(0, 14), row(1, 1)),
		},
		{
			// Byte 0 of a block holds weights 0, 32, 64, 96 and 128, byte 32 weights
			// 160, 176, ..., byte 51 weights 243, 247, 251, 255 and nothing. 128 is
			// ceil(256*121/243), five zeros; 255 five +1; 2 is v = 1, -1 four times
			// and then 0. 126 is v = 119, 1*81+1*27+1*9+0*3+2, and as four trits and
			// -1 zeros are v = 120: ceil(126.4) = 127.
			name: ternarytest.TQ1, entry: entry(ternarytest.TQ1, "", 256, 1, 256),
			stored: Stored{Codes: slices.Concat([]byte{255, 2}, bytes.Repeat([]byte{128}, 30), []byte{126}, bytes.Repeat([]byte{128}, 15), []byte{127, 127, 127, 0}),
				Scales: sixteens(0x4000), ScaleDType: safetensors.F16}, // 2
			want: at(256, map[int]float32{0: 2, 32: 2, 64: 2, 96: 2, 128: 2, 1: -2, 33: -2, 65: -2, 97: -2, 208: -2, 224: 2, 243: -2, 247: -2, 251: -2, 255: -2}),
		},
		{
			// Byte 0 holds weights 0, 32, 64 and 96, highest bits first: 0b10010001
			// is 2, 1, 0, 1.
			name: ternarytest.I2S, entry: entry(ternarytest.I2S, "", 0, 1, 128),
			stored: Stored{Codes: slices.Concat([]byte{0x91}, bytes.Repeat([]byte{0x55}, 30), []byte{0x56}), Scales: []byte{0, 0, 0xc0, 0x3f}, ScaleDType: safetensors.F32},
			want:   at(128, map[int]float32{0: 1.5, 64: -1.5, 127: 1.5}),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answered[tc.entry.FormatID()] = true
			l := layout(t, tc.entry)
			got, err := l.Decode(tc.stored)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("decoded %v, want %v", got, tc.want)
			}
		})
	}
	for _, f := range Formats() {
		if !answered[f.ID] {
			t.Errorf("format %s has no known answer", f.ID)
		}
	}
}

// A pack of five rows has two byte rows, which unpack to eight: the last three
// are padding of code 0, which decodes to -1.
func TestBitNetPadding(t *testing.T) {
	l := layout(t, entry("bitnet_u8", "", 0, 5, 3))
	if want := []int64{2, 3}; !slices.Equal(l.Codes.Shape, want) {
		t.Fatalf("codes %v, want %v", l.Codes.Shape, want)
	}
	codes, err := l.EncodeCodes(make([]int8, 15)) // zeros
	if err != nil {
		t.Fatal(err)
	}
	// Byte row 0: rows 0, 2, 4 and padding 6. Byte row 1: rows 1, 3, padding 5 and 7.
	if want := []byte{0x15, 0x15, 0x15, 0x05, 0x05, 0x05}; !slices.Equal(codes, want) {
		t.Errorf("codes %x, want %x", codes, want)
	}
	var padding [][2]int64
	for at := range l.CodeBytes() {
		for slot := range 4 {
			if _, ok := l.Element(at, slot); !ok {
				padding = append(padding, [2]int64{at / 3, int64(slot)})
			}
		}
	}
	want := [][2]int64{{0, 3}, {0, 3}, {0, 3}, {1, 2}, {1, 3}, {1, 2}, {1, 3}, {1, 2}, {1, 3}}
	if !reflect.DeepEqual(padding, want) {
		t.Errorf("padding %v, want %v", padding, want)
	}
}

func TestGeometry(t *testing.T) {
	axis := func(e manifest.Quantity, a int64) manifest.Quantity { e.Axis = &a; return e }
	for _, tc := range []struct {
		entry         manifest.Quantity
		codes, scales []int64
		fault         string
	}{
		{entry("", "", 128, 512, 2048), []int64{512, 512}, []int64{512, 16}, ""},
		{entry("", "row", 0, 8, 512, 2048), []int64{8, 512, 512}, []int64{8, 512, 1}, ""},
		{axis(entry("", "", 32, 2, 64), 1), []int64{2, 16}, []int64{2, 2}, ""},
		{axis(entry("", "", 32, 2, 64), 0), nil, nil, "axis 0 is not the last one"},
		{entry("", "", 32, 64), nil, nil, "fewer than two dimensions"},
		{entry("", "", 32, 1<<40, 1<<40), nil, nil, "out of range"},
		{entry("", "", 32, 0, 32), nil, nil, "is empty"},
		{entry("", "", 2, 1, 6), nil, nil, "6 inputs are not a multiple of the 4 codes of a byte"},
		{entry("", "", 6, 1, 12), nil, nil, "group_size 6 is not a multiple of the 4 codes of a byte"},
		{entry("", "", 96, 1, 128), nil, nil, "128 inputs are not a multiple of group_size 96"},
		{entry("mlx_affine_2bit", "", 64, 3, 256), []int64{3, 16}, []int64{3, 4}, ""},
		{entry("mlx_affine_2bit", "", 4, 3, 24), nil, nil, "24 inputs are not a multiple of the 16 codes of a word"},
		{entry("mlx_row_alpha_2bit", "", 0, 256, 512, 2048), []int64{256, 512, 128}, []int64{256, 512}, ""},
		{entry("mlx_row_alpha_2bit", "group", 32, 4, 64), nil, nil, "unit group is not row"},
		{entry("bitnet_u8", "", 0, 10, 7), []int64{3, 7}, []int64{1}, ""},
		{entry("bitnet_u8", "", 0, 2, 5, 7), nil, nil, "not that of a matrix"},
		{entry("bitnet_u8", "row", 0, 5, 7), nil, nil, "unit row is not tensor"},
		{axis(entry("bitnet_u8", "", 0, 10, 7), 0), []int64{3, 7}, []int64{1}, ""},
		{axis(entry("bitnet_u8", "", 0, 10, 7), 1), nil, nil, "axis 1 is not the first one"},
		{entry("compressed_tensors_2bit", "", 32, 3, 96), []int64{3, 6}, []int64{3, 3}, ""},
		{entry("compressed_tensors_2bit", "row", 0, 3, 97), []int64{3, 7}, []int64{3, 1}, ""},
		{entry("compressed_tensors_2bit", "tensor", 0, 3, 97), []int64{3, 7}, []int64{1}, ""},
		{entry("compressed_tensors_2bit", "row", 0, 2, 3, 96), nil, nil, "not that of a matrix"},
		{axis(entry("compressed_tensors_2bit", "row", 0, 3, 97), 0), nil, nil, "axis 0 is not the last one"},
		{entry(ternarytest.TQ1, "", 256, 3, 512), []int64{3, 104}, []int64{3, 2}, ""},
		{entry(ternarytest.TQ1, "", 128, 3, 512), nil, nil, "group_size 128 is not 256"},
	} {
		f, _ := Lookup(tc.entry.FormatID())
		l, err := f.Geometry(tc.entry)
		switch {
		case tc.fault != "":
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%+v: error %v, want %q", tc.entry, err, tc.fault)
			}
		case err != nil:
			t.Errorf("%+v: %v", tc.entry, err)
		case !slices.Equal(l.Codes.Shape, tc.codes) || !slices.Equal(l.Scales.Shape, tc.scales):
			t.Errorf("%+v: codes %v and scales %v, want %v and %v", tc.entry, l.Codes.Shape, l.Scales.Shape, tc.codes, tc.scales)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	l := layout(t, entry("", "row", 0, 2, 4))
	nan := float32(math.NaN())
	for _, tc := range []struct {
		values []float32
		dtype  safetensors.DType
		fault  string
	}{
		{row(0, 1, -1, 0, 2, -2, 0, 0), safetensors.F16, ""},
		{row(0, 1, -1, 0, 2, -2, 0, 3), safetensors.F16, "row 1, input 3: 3 is not 0 or 2"},
		{row(0, 1, nan, 0, 0, 0, 0, 0), safetensors.F16, "row 0, input 2"},
		{row(0, float32(math.Inf(1)), 0, 0, 0, 0, 0, 0), safetensors.F32, "row 0, input 1"},
		{row(0, 0, 0, 0, 1<<20, 0, 0, 0), safetensors.F16, "row 1: F16 does not hold the magnitude"},
		{row(1.0009765625, 0, 0, 0, 0, 0, 0, 0), safetensors.BF16, "row 0: BF16 does not hold"},
	} {
		_, err := l.Encode(tc.values, tc.dtype)
		if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%v: error %v, want %q", tc.values, err, tc.fault)
		}
	}
}

func TestNegatedBiases(t *testing.T) {
	for _, tc := range []struct {
		dtype       safetensors.DType
		scale, bias uint64
		want        bool
	}{
		{safetensors.BF16, 0x3f80, 0xbf80, true}, {safetensors.BF16, 0x3f80, 0xbf81, false}, {safetensors.BF16, 0x3f80, 0x3f80, false},
		{safetensors.F16, 0, 0, true}, {safetensors.F16, 0, 0x8000, true}, {safetensors.F16, 1, 0x8001, true}, {safetensors.F16, 0, 0x8001, false},
		{safetensors.F32, 0x3f800000, 0xbf800000, true}, {safetensors.F32, 0x3f800000, 0xbf800001, false},
	} {
		if got := IsNegated(tc.dtype, tc.scale, tc.bias); got != tc.want {
			t.Errorf("%s %x, %x: %v", tc.dtype, tc.scale, tc.bias, got)
		}
	}
}

// The two-bit form of a mixture of experts: 24 layers of q, k, v, o and of
// stacked experts, with a BF16 magnitude for each row.
func TestMapleRowAlphaBytes(t *testing.T) {
	codes, alphas, rows := int64(0), int64(0), int64(0)
	for _, shape := range [][]int64{{2048, 2048}, {512, 2048}, {512, 2048}, {2048, 2048}, {256, 512, 2048}, {256, 512, 2048}, {256, 2048, 512}} {
		l := layout(t, entry("mlx_row_alpha_2bit", "", 0, shape...))
		codes += 24 * l.CodeBytes()
		alphas += 24 * 2 * l.Units
		rows += 24 * l.Units
	}
	if codes != 4_894_752_768 || alphas != 37_994_496 || rows != 18_997_248 {
		t.Errorf("%d bytes of codes, %d of row_alpha, %d rows", codes, alphas, rows)
	}
}

func TestValueOfHalfPrecision(t *testing.T) {
	for bits, want := range map[uint64]float64{
		0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0400: math.Ldexp(1, -14), 0x0001: math.Ldexp(1, -24), 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := Value(safetensors.F16, bits); got != want {
			t.Errorf("Value(%#04x) = %v, want %v", bits, got, want)
		}
	}
	if got := Value(safetensors.F16, 0x7e00); !math.IsNaN(got) {
		t.Errorf("NaN reads as %v", got)
	}
}
