package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestReadIndex(t *testing.T) {
	ix, err := ReadIndex([]byte("\n{\"metadata\": {\"total_size\": 24, \"total_parameters\": 6.5, \"note\": {\"a\": [1, \"}\"]}},\n" +
		" \"weight_map\": {\"a\": \"x-1.safetensors\", \"\\u0062\": \"x..2.safetensors\"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"a": "x-1.safetensors", "b": "x..2.safetensors"}; !maps.Equal(ix.WeightMap, want) {
		t.Errorf("weight map %q", ix.WeightMap)
	}
	if ix.TotalSize == nil || *ix.TotalSize != 24 {
		t.Errorf("total size %v", ix.TotalSize)
	}
	if len(ix.Metadata) != 2 || string(ix.Metadata["total_parameters"]) != "6.5" || string(ix.Metadata["note"]) != `{"a": [1, "}"]}` {
		t.Errorf("metadata %s", ix.Metadata)
	}
	if ix, err := ReadIndex([]byte(`{"weight_map":{}}`)); err != nil || ix.TotalSize != nil || len(ix.WeightMap) != 0 {
		t.Errorf("without metadata: %v, %v", ix, err)
	}
}

func TestReadIndexRefuses(t *testing.T) {
	tests := []struct{ what, json, tensor string }{
		{"A14 parent", `{"weight_map":{"a":"../x"}}`, "a"},
		{"A14 dots", `{"weight_map":{"a":".."}}`, "a"},
		{"A14 dot", `{"weight_map":{"a":"."}}`, "a"},
		{"A14 absolute", `{"weight_map":{"a":"/x"}}`, "a"},
		{"A14 folder", `{"weight_map":{"a":"w/x"}}`, "a"},
		{"A14 backslash", `{"weight_map":{"a":"w\\x"}}`, "a"},
		{"A14 NUL", `{"weight_map":{"a":"x\u0000"}}`, "a"},
		{"A14 empty", `{"weight_map":{"a":""}}`, "a"},
		{"shard null", `{"weight_map":{"a":null}}`, "a"},
		{"shard number", `{"weight_map":{"a":1}}`, "a"},
		{"duplicate tensor", `{"weight_map":{"a":"x","\u0061":"x"}}`, "a"},
		{"control character", `{"weight_map":{"a\u0007":"x"}}`, "a\a"},
		{"duplicate weight_map", `{"weight_map":{},"weight_map":{}}`, ""},
		{"duplicate metadata", `{"metadata":{},"metadata":{},"weight_map":{}}`, ""},
		{"duplicate total_size", `{"metadata":{"total_size":1,"total_size":1},"weight_map":{}}`, ""},
		{"duplicate metadata key", `{"metadata":{"k":1,"k":1},"weight_map":{}}`, ""},
		{"case of a key", `{"Weight_Map":{}}`, ""},
		{"further key", `{"weight_map":{},"weights":{}}`, ""},
		{"no weight_map", `{"metadata":{}}`, ""},
		{"weight_map null", `{"weight_map":null}`, ""},
		{"metadata null", `{"metadata":null,"weight_map":{}}`, ""},
		{"total_size fraction", `{"metadata":{"total_size":1.0},"weight_map":{}}`, ""},
		{"total_size string", `{"metadata":{"total_size":"1"},"weight_map":{}}`, ""},
		{"bad metadata value", `{"metadata":{"k":[1,},"weight_map":{}}`, ""},
		{"tail", `{"weight_map":{}}{}`, ""},
		{"NUL tail", "{\"weight_map\":{}}\x00", ""},
		{"array", `[]`, ""},
		{"empty", ``, ""},
		{"bad UTF-8", "{\"weight_map\":{\"\xff\":\"x\"}}", ""},
	}
	for _, test := range tests {
		ix, err := ReadIndex([]byte(test.json))
		var violation *Error
		if !errors.As(err, &violation) || ix != nil {
			t.Errorf("%s: index %v, error %v", test.what, ix, err)
			continue
		}
		if violation.Rule != RuleIndex || violation.Tensor != test.tensor {
			t.Errorf("%s: rule %s, tensor %q: %v", test.what, violation.Rule, violation.Tensor, err)
		}
	}
}

// shard returns the header of a file of U8 tensors of 4 bytes each.
func shard(t *testing.T, names ...string) *Header {
	t.Helper()
	var tensors []Tensor
	for _, name := range names {
		tensors = append(tensors, Tensor{Name: name, DType: U8, Shape: []int64{4}})
	}
	raw, err := EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadHeader(bytes.NewReader(raw), int64(len(raw)+4*len(names)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestIndexCheck(t *testing.T) {
	const index = `{"metadata":{"total_size":%d},"weight_map":{"a":"1","b":"1","c":"2"}}`
	sound := func() map[string]*Header {
		return map[string]*Header{"1": shard(t, "a", "b"), "2": shard(t, "c")}
	}
	files := sound()["1"].FileSize + sound()["2"].FileSize
	tests := []struct {
		what   string
		total  int64
		change func(shards map[string]*Header)
		want   []string // kind, shard and tensor
	}{
		{"sound", 12, func(map[string]*Header) {}, nil},
		{"sound, total of file sizes", files, func(map[string]*Header) {}, nil},
		{"A19 total_size", 13, func(map[string]*Header) {}, []string{"wrong total_size  "}},
		{"A19 total_size zero", 0, func(map[string]*Header) {}, []string{"wrong total_size  "}},
		{"A11 shard not in the index", 12, func(s map[string]*Header) { s["3"] = shard(t, "d") },
			[]string{"unlisted shard 3 "}},
		{"A12 missing shard", 12, func(s map[string]*Header) { delete(s, "2") },
			[]string{"missing shard 2 "}},
		{"A12 wrong shard", 12, func(s map[string]*Header) { s["1"], s["2"] = shard(t, "a"), shard(t, "b", "c") },
			[]string{"wrong shard 1 b"}},
		{"missing tensor", 8, func(s map[string]*Header) { s["1"] = shard(t, "a") },
			[]string{"missing tensor 1 b"}},
		{"unlisted tensor", 16, func(s map[string]*Header) { s["1"] = shard(t, "a", "b", "B") },
			[]string{"unlisted tensor 1 B"}},
		{"A13 tensor in two shards", 16, func(s map[string]*Header) { s["2"] = shard(t, "b", "c") },
			[]string{"duplicate tensor  b"}},
		{"renamed shard", 12, func(s map[string]*Header) { s["two"] = s["2"]; delete(s, "2") },
			[]string{"missing shard 2 ", "unlisted shard two ", "wrong shard 2 c"}},
		{"unreadable shard", 12, func(s map[string]*Header) { s["1"] = nil }, nil},
		{"all at once", 1, func(s map[string]*Header) { s["1"] = shard(t, "a", "x", "c"); s["3"] = shard(t, "a") },
			[]string{"duplicate tensor  a", "duplicate tensor  c", "missing tensor 1 b", "unlisted shard 3 ", "unlisted tensor 1 x", "wrong total_size  "}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			ix, err := ReadIndex(fmt.Appendf(nil, index, test.total))
			if err != nil {
				t.Fatal(err)
			}
			shards := sound()
			test.change(shards)
			var got []string
			for _, p := range ix.Check(shards) {
				got = append(got, fmt.Sprintf("%s %s %s", p.Kind, p.Shard, p.Tensor))
				if p.Warning != (p.Kind == TotalSizeWrong) {
					t.Errorf("%v: warning %v", p, p.Warning)
				}
				if !strings.Contains(p.String(), p.Shard) || !strings.Contains(p.String(), p.Tensor) {
					t.Errorf("%q does not name shard %q and tensor %q", p, p.Shard, p.Tensor)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestCheckShards(t *testing.T) {
	if got := CheckShards(map[string]*Header{"1": shard(t, "a"), "2": shard(t, "A"), "3": nil}); len(got) != 0 {
		t.Errorf("problems %v", got)
	}
	got := CheckShards(map[string]*Header{"1": shard(t, "a", "b"), "2": shard(t, "b", "c"), "3": shard(t, "b")})
	if len(got) != 1 || got[0].Kind != DuplicateTensor || got[0].Detail != `tensor "b" is in several shards: "1", "2", "3"` {
		t.Errorf("problems %v", got)
	}
}
