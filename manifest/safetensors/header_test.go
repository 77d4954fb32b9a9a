package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// withLength puts the length prefix before a header's JSON.
func withLength(json string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(json))), json...)
}

// read reads a header in front of data bytes of data.
func read(json string, data int64) (*Header, error) {
	raw := withLength(json)
	return ReadHeader(bytes.NewReader(raw), int64(len(raw))+data)
}

// golden returns a header of testdata and the size of the file it was taken from.
func golden(t testing.TB, name string) (raw []byte, fileSize int64) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return raw, map[string]int64{"abacus-float.header": 328184, "abacus-ternary.header": 1403640}[name]
}

func TestGoldenHeaders(t *testing.T) {
	tests := []struct {
		file     string
		start    int64
		metadata map[string]string
		dtypes   map[DType]int
		tensors  map[int]Tensor
	}{
		{
			file: "abacus-float.header", start: 5992,
			metadata: map[string]string{"format": "pt"},
			dtypes:   map[DType]int{BF16: 46, F32: 12},
			tensors: map[int]Tensor{
				0:  {"model.layers.0.linear_attn.A_log", F32, []int64{4}, 0, 16},
				29: {"model.layers.2.linear_attn.in_proj_b.weight", BF16, []int64{4, 256}, 288888, 290936},
				57: {"model.norm.weight", BF16, []int64{256}, 321680, 322192},
			},
		},
		{
			file: "abacus-ternary.header", start: 11000,
			dtypes: map[DType]int{F16: 50, U8: 50},
			tensors: map[int]Tensor{
				0:  {"model.layers.0.linear_attn.in_proj_qkv.weight.scales", F16, []int64{512, 2}, 0, 2048},
				50: {"model.layers.0.linear_attn.in_proj_qkv.weight.codes", U8, []int64{512, 64}, 81920, 114688},
				99: {"model.layers.7.self_attn.v_proj.weight.codes", U8, []int64{128, 64}, 1384448, 1392640},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			raw, size := golden(t, test.file)
			h, err := ReadHeader(bytes.NewReader(raw), size)
			if err != nil {
				t.Fatal(err)
			}
			if h.DataStart != test.start || h.FileSize != size || !maps.Equal(h.Metadata, test.metadata) {
				t.Errorf("data start %d, file size %d, metadata %v", h.DataStart, h.FileSize, h.Metadata)
			}
			dtypes := map[DType]int{}
			for _, tensor := range h.Tensors {
				dtypes[tensor.DType]++
				if got, ok := h.Lookup(tensor.Name); !ok || !reflect.DeepEqual(got, tensor) {
					t.Errorf("Lookup(%q) = %v, %v", tensor.Name, got, ok)
				}
			}
			if !maps.Equal(dtypes, test.dtypes) {
				t.Errorf("dtypes %v, want %v", dtypes, test.dtypes)
			}
			for i, want := range test.tensors {
				if !reflect.DeepEqual(h.Tensors[i], want) {
					t.Errorf("tensor %d is %v, want %v", i, h.Tensors[i], want)
				}
			}
			again, err := EncodeHeader(h.Tensors, h.Metadata)
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("encoding gives other bytes than the file's writer (error %v)", err)
			}
		})
	}
}

func TestReadHeaderOrder(t *testing.T) {
	h, err := read(`{"late":{"shape":[2],"data_offsets":[4,6],"dtype":"U8"},`+
		`"z":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},"a":{"dtype":"I64","shape":[0],"data_offsets":[4,4]},`+
		"\t\"\\u0061\\ud83d\\ude00\\/\\\"\" : { \"dtype\" : \"F32\" , \"shape\" : [ ] ,\r\n \"data_offsets\" : [ 0 , 4 ] } }  ", 6)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, tensor := range h.Tensors {
		names = append(names, tensor.Name)
		if got, _ := h.Lookup(tensor.Name); !reflect.DeepEqual(got, h.Tensors[i]) {
			t.Errorf("Lookup(%q) = %v", tensor.Name, got)
		}
	}
	if want := []string{"a\U0001F600/\"", "a", "z", "late"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if scalar := h.Tensors[0]; scalar.Elements() != 1 || scalar.Bytes() != 4 {
		t.Errorf("scalar has %d elements, %d bytes", scalar.Elements(), scalar.Bytes())
	}
	if empty := h.Tensors[2]; empty.Elements() != 0 || empty.Bytes() != 0 {
		t.Errorf("empty tensor has %d elements, %d bytes", empty.Elements(), empty.Bytes())
	}
	if _, ok := h.Lookup("A"); ok {
		t.Error("Lookup ignores case")
	}
}

// A stream is left at the first byte of data, however small its reads are, and
// the raw bytes come back whole.
func TestReadHeaderConsumesHeaderOnly(t *testing.T) {
	raw, size := golden(t, "abacus-float.header")
	stream := iotest.OneByteReader(io.MultiReader(bytes.NewReader(raw), strings.NewReader("DATA")))
	_, again, err := ReadHeaderRaw(stream, size)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, raw) {
		t.Error("raw bytes differ from the stream's")
	}
	if rest, _ := io.ReadAll(stream); string(rest) != "DATA" {
		t.Errorf("left in the stream: %q", rest)
	}
}

func TestReadHeaderOfShortStream(t *testing.T) {
	raw, size := golden(t, "abacus-float.header")
	for _, length := range []int{0, 7, 8, 100, len(raw) - 1} {
		_, err := ReadHeader(bytes.NewReader(raw[:length]), size)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: error %v", length, err)
		}
		if violation := (*Error)(nil); errors.As(err, &violation) {
			t.Errorf("%d bytes: a read error is reported as rule %s", length, violation.Rule)
		}
	}
	broken := errors.New("disk on fire")
	if _, err := ReadHeader(iotest.ErrReader(broken), size); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// A claim of 90 MB costs no memory until the bytes arrive.
func TestReadHeaderTrustsBytesNotClaims(t *testing.T) {
	claim := binary.LittleEndian.AppendUint64(nil, 90_000_000)
	claim = append(claim, make([]byte, 5000)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadHeader(bytes.NewReader(claim), 1<<40)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes allocated for 5008", got)
	}
}

func TestDTypes(t *testing.T) {
	widths := map[string]int{
		"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
		"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
		"I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	}
	if len(dtypeByName) != len(widths) {
		t.Errorf("%d dtypes, want %d", len(dtypeByName), len(widths))
	}
	for name, bits := range widths {
		d, ok := ParseDType(name)
		if !ok || d.String() != name || d.Bits() != bits {
			t.Errorf("%s parses as %v of %d bits, %v", name, d, d.Bits(), ok)
		}
		bytes := int64(bits) * 8 / 8
		json := fmt.Sprintf(`{"w":{"dtype":%q,"shape":[2,4],"data_offsets":[0,%d]}}`, name, bytes)
		if _, err := read(json, bytes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "u8", "F8", "invalid", "U8 "} {
		if d, ok := ParseDType(name); ok {
			t.Errorf("%q parses as %v", name, d)
		}
	}
	if DType(0).String() != "invalid" || DType(200).Bits() != 0 {
		t.Error("a value that is no dtype has a name or width")
	}
}

func TestTwins(t *testing.T) {
	names := []string{"model.A", "model.a", "MODEL.a", "k", "\u212a", "plain", "stra\u00dfe", "STRASSE"}
	var tensors []Tensor
	for _, name := range names {
		tensors = append(tensors, Tensor{Name: name, DType: U8, Shape: []int64{1}})
	}
	raw, err := EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadHeader(bytes.NewReader(raw), int64(len(raw)+len(names)))
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"MODEL.a", "model.A"}, {"MODEL.a", "model.a"}, {"k", "\u212a"}}
	if got := h.Twins(strings.ToLower); !slices.Equal(got, want) {
		t.Errorf("twins %q, want %q", got, want)
	}
}

func TestErrorText(t *testing.T) {
	long := strings.Repeat("é", 200)
	tests := []struct {
		err  Error
		want string
	}{
		{Error{"S5", "x", "offsets [8,4] end before they begin"}, `tensor "x": offsets [8,4] end before they begin (rule S5)`},
		{Error{"S8", "a\nb", "control"}, `tensor "a\nb": control (rule S8)`},
		{Error{"S1", "", "too short"}, "too short (rule S1)"},
		{Error{RuleIndex, "x", "twice"}, `tensor "x": twice`},
		{Error{"S3", long, "twice"}, `tensor "` + long[:200] + `"... (400 bytes): twice (rule S3)`},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// manyTensors returns the header of a model with n tensors, as in a mixture of
// experts, and its file's size.
func manyTensors(t testing.TB, n int) ([]byte, int64) {
	t.Helper()
	tensors := make([]Tensor, n)
	for i := range tensors {
		tensors[i] = Tensor{Name: fmt.Sprintf("model.layers.%d.mlp.experts.%d.gate_proj.weight", i/256, i%256), DType: BF16, Shape: []int64{512, 2048}}
	}
	raw, err := EncodeHeader(tensors, map[string]string{"format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	return raw, int64(len(raw)) + int64(n)*512*2048*2
}

func BenchmarkReadHeader(b *testing.B) {
	for _, n := range []int{10_000, 18_651} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			raw, size := manyTensors(b, n)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadHeader(bytes.NewReader(raw), size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
