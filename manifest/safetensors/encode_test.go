package safetensors

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestEncodeHeaderGolden(t *testing.T) {
	raw, err := EncodeHeader([]Tensor{
		{Name: "b/<\"\\\n", DType: F32, Shape: []int64{2, 3}},
	}, nil)
	if err == nil {
		t.Errorf("a name with a newline is written: %q", raw)
	}
	raw, err = EncodeHeader([]Tensor{
		{Name: "b/<\"\\é", DType: F32, Shape: []int64{2, 3}, Begin: 99, End: 1},
		{Name: "a", DType: F4, Shape: []int64{4}},
		{Name: "s", DType: BF16},
	}, map[string]string{"z": "1", "a": "\x01\b\f\n\r\t\x1f"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"__metadata__":{"a":"\u0001\b\f\n\r\t\u001f","z":"1"},` +
		`"b/<\"\\é":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},` +
		`"a":{"dtype":"F4","shape":[4],"data_offsets":[24,26]},` +
		`"s":{"dtype":"BF16","shape":[],"data_offsets":[26,28]}}`
	for len(want)%8 != 0 {
		want += " "
	}
	if !bytes.Equal(raw, withLength(want)) {
		t.Errorf("got  %s\nwant %s", raw[8:], want)
	}
	if raw, err = EncodeHeader(nil, nil); err != nil || string(raw) != "\x08\x00\x00\x00\x00\x00\x00\x00{}      " {
		t.Errorf("no tensors: %q, %v", raw, err)
	}
}

func TestEncodeHeaderRefuses(t *testing.T) {
	one := Tensor{Name: "a", DType: U8, Shape: []int64{1}}
	tests := []struct {
		what, rule, tensor string
		tensors            []Tensor
		metadata           map[string]string
	}{
		{"duplicate name", "S3", "a", []Tensor{one, one}, nil},
		{"reserved name", "S3", "", []Tensor{{Name: "__metadata__", DType: U8}}, nil},
		{"no dtype", "S6", "a", []Tensor{{Name: "a"}}, nil},
		{"negative dimension", "S4", "a", []Tensor{{Name: "a", DType: U8, Shape: []int64{-1, -1}}}, nil},
		{"half a byte", "S4", "a", []Tensor{{Name: "a", DType: F4}}, nil},
		{"overflow", "S4", "a", []Tensor{{Name: "a", DType: U8, Shape: []int64{math.MaxInt64}}}, nil},
		{"data above 2^63-1", "S5", "e", huge(5), nil},
		{"data and header above 2^63-1", "S5", "", huge(4), nil},
		{"bad UTF-8", "S2", "", []Tensor{{Name: "\xff", DType: U8}}, nil},
		{"control character", "S8", "\x7f", []Tensor{{Name: "\x7f", DType: U8}}, nil},
		{"large metadata", "S3", "", []Tensor{one}, map[string]string{"k": string(make([]byte, MaxMetadata))}},
	}
	for _, test := range tests {
		raw, err := EncodeHeader(test.tensors, test.metadata)
		var violation *Error
		if !errors.As(err, &violation) || violation.Rule != test.rule || violation.Tensor != test.tensor || raw != nil {
			t.Errorf("%s: error %v, want rule %s", test.what, err, test.rule)
		}
	}
	if _, err := EncodeHeader(huge(3), nil); err != nil {
		t.Errorf("three tensors of 2^61-1 bytes: %v", err)
	}
}

// huge returns n tensors of 2^61-1 bytes, the largest there can be.
func huge(n int) []Tensor {
	tensors := make([]Tensor, n)
	for i := range tensors {
		tensors[i] = Tensor{Name: string(rune('a' + i)), DType: U8, Shape: []int64{1<<61 - 1}}
	}
	return tensors
}

// TestRoundTrip reads back what it writes, for random tensors.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		tensors := randomTensors(random)
		metadata := map[string]string{"seed": string(rune(random.IntN(0xd800)))}
		raw, err := EncodeHeader(tensors, metadata)
		if err != nil {
			t.Fatal(err)
		}
		placed, err := Layout(tensors)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(len(raw))
		if len(placed) > 0 {
			size += placed[len(placed)-1].End
		}
		if len(raw)%8 != 0 {
			t.Fatalf("data begins at %d", len(raw))
		}
		h, err := ReadHeader(bytes.NewReader(raw), size)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(h.Metadata, metadata) || len(h.Tensors) != len(placed) {
			t.Fatalf("metadata %q and %d tensors, want %q and %d", h.Metadata, len(h.Tensors), metadata, len(placed))
		}
		for _, want := range placed {
			if got, _ := h.Lookup(want.Name); !reflect.DeepEqual(got, want) {
				t.Fatalf("tensor %v, want %v", got, want)
			}
		}
	}
}

func randomTensors(random *rand.Rand) []Tensor {
	tensors := make([]Tensor, random.IntN(12))
	for i := range tensors {
		name := string(rune('A' + i))
		for range random.IntN(6) {
			r := rune(0xa0 + random.IntN(0x10ffff-0xa0))
			if random.IntN(2) == 0 {
				r = rune(0x20 + random.IntN(0x5f))
			}
			name += string(r) // a surrogate becomes U+FFFD
		}
		tensors[i] = Tensor{Name: name, DType: DType(1 + random.IntN(len(dtypes)-1)), Shape: []int64{4}}
		for range random.IntN(4) {
			tensors[i].Shape = append(tensors[i].Shape, random.Int64N(5))
		}
	}
	return tensors
}
