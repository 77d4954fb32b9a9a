package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"testing"
)

// FuzzReadHeader holds what is accepted against encoding/json, against the
// second reader and against a round trip through EncodeHeader.
func FuzzReadHeader(f *testing.F) {
	for _, name := range []string{"abacus-float.header", "abacus-ternary.header"} {
		raw, size := golden(f, name)
		f.Add(raw[8:], size-int64(len(raw)))
	}
	for _, v := range vectors {
		for _, change := range []func(*sample){v.fault, v.twin} {
			s := clean()
			if change != nil {
				change(&s)
			}
			text := s.before + "{" + s.first + "," + s.second + s.extra + "}" + s.after
			if len(text) < 4096 {
				f.Add([]byte(text), s.data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, data int64) {
		raw := withLength(string(text))
		if data < 0 || data > 1<<40 {
			return
		}
		size := int64(len(raw)) + data
		h, err := ReadHeader(bytes.NewReader(raw), size)
		if err != nil {
			if violation := (*Error)(nil); !errors.As(err, &violation) {
				t.Fatalf("%v is no *Error", err)
			}
			return
		}
		compareWithJSON(t, h, text)
		verdict, err := SecondOpinion(raw, size)
		if verdict == Refused {
			t.Fatalf("the second reader refuses: %v", err)
		}
		again, err := EncodeHeader(h.Tensors, h.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		h2, err := ReadHeader(bytes.NewReader(again), int64(len(again))+data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(h.Tensors, h2.Tensors) || !maps.Equal(h.Metadata, h2.Metadata) {
			t.Fatalf("after a round trip %v, before %v", h2.Tensors, h.Tensors)
		}
	})
}

func compareWithJSON(t *testing.T, h *Header, text []byte) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	if raw, ok := entries[metadataKey]; ok {
		var metadata map[string]string
		if err := json.Unmarshal(raw, &metadata); err != nil || !maps.Equal(metadata, h.Metadata) {
			t.Fatalf("metadata %q, encoding/json says %q (%v)", h.Metadata, metadata, err)
		}
		delete(entries, metadataKey)
	}
	if len(entries) != len(h.Tensors) {
		t.Fatalf("%d tensors, encoding/json says %d", len(h.Tensors), len(entries))
	}
	for _, tensor := range h.Tensors {
		var entry struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(entries[tensor.Name], &entry); err != nil {
			t.Fatal(err)
		}
		dtype, _ := ParseDType(entry.DType)
		want := Tensor{tensor.Name, dtype, entry.Shape, entry.Offsets[0], entry.Offsets[1]}
		if len(want.Shape) == 0 && len(tensor.Shape) == 0 {
			want.Shape = tensor.Shape
		}
		if !reflect.DeepEqual(tensor, want) {
			t.Fatalf("tensor %v, encoding/json says %v", tensor, want)
		}
	}
}

// FuzzReadIndex holds what is accepted against encoding/json.
func FuzzReadIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":24,"k":{"a":[1]}},"weight_map":{"a":"x","\u0062":"y"}}`))
	f.Add([]byte("{ \"weight_map\" : { \"a\" : \"../x\" } }\n"))
	f.Add([]byte(`{"weight_map":{},"metadata":{"total_size":1e3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ix, err := ReadIndex(data)
		if err != nil {
			if violation := (*Error)(nil); !errors.As(err, &violation) || violation.Rule != RuleIndex {
				t.Fatalf("%v is no *Error of the index", err)
			}
			return
		}
		var want struct {
			Metadata  map[string]json.RawMessage `json:"metadata"`
			WeightMap map[string]string          `json:"weight_map"`
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(ix.WeightMap, want.WeightMap) {
			t.Fatalf("weight map %q, encoding/json says %q", ix.WeightMap, want.WeightMap)
		}
		if ix.TotalSize != nil {
			var total int64
			if err := json.Unmarshal(want.Metadata["total_size"], &total); err != nil || total != *ix.TotalSize {
				t.Fatalf("total_size %d, encoding/json says %d (%v)", *ix.TotalSize, total, err)
			}
			delete(want.Metadata, "total_size")
		}
		if !maps.EqualFunc(ix.Metadata, want.Metadata, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("metadata %s, encoding/json says %s", ix.Metadata, want.Metadata)
		}
	})
}
