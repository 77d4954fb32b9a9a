package safetensors

import (
	"bytes"
	"io"
	"testing"
)

func TestSection(t *testing.T) {
	raw, err := EncodeHeader([]Tensor{
		{Name: "a", DType: U8, Shape: []int64{3}},
		{Name: "none", DType: F32, Shape: []int64{0}},
		{Name: "b", DType: U16, Shape: []int64{2}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := append(raw, "aaabbbb"...)
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "aaa", "none": "", "b": "bbbb"} {
		section, ok := f.Section(name)
		if !ok {
			t.Fatalf("no section %q", name)
		}
		got, err := io.ReadAll(section)
		if err != nil || string(got) != want || section.Size() != int64(len(want)) {
			t.Errorf("section %q is %q of %d bytes, %v", name, got, section.Size(), err)
		}
	}
	if _, ok := f.Section("c"); ok {
		t.Error("a section for a tensor that is not there")
	}
	if _, err := Open(bytes.NewReader(file), int64(len(file)-1)); err == nil {
		t.Error("a file cut short opens")
	}
}
