package manifest

import (
	"reflect"
	"strings"
	"testing"
)

// The task's own spelling of cleanQuantization.
const foreignQuantization = `{"base":null,"base_revision":null,"entries":{
 "a":{"packed":{"shard":"w","name":"a.codes"},"group_size":128,"kind":"two_bit","scales":{"shard":"w","name":"a.scales"},"shape":[4,128]},
 "b":{"shard":"w","kind":"full","shape":[4],"name":"b"}}}`

var foreignNames = FieldNames{
	"base_model": "base", "tensors": "entries", "codes": "packed", "file": "shard", "tensor": "name", "packed_2bit": "two_bit", "float": "full",
}

func TestQuantizationUnderOtherNames(t *testing.T) {
	want, err := DecodeQuantization([]byte(cleanQuantization))
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeQuantizationAs([]byte(foreignQuantization), foreignNames)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := DecodeQuantizationAs([]byte(cleanQuantization), nil); err != nil {
		t.Errorf("without names: %v", err)
	}
	for _, tc := range []struct{ name, old, new, fault string }{
		{"our spelling", `"base":`, `"base_model":`, `unknown key "base_model"`},
		{"our spelling in an entry", `"packed":`, `"codes":`, `tensor "a": unknown key "codes"`},
		{"our word", `"two_bit"`, `"packed_2bit"`, `kind: "packed_2bit" is written "two_bit"`},
		{"unknown word", `"two_bit"`, `"three_bit"`, `kind "three_bit" is not`},
		{"key twice", `"kind":"full"`, `"kind":"full","kind":"full"`, "given twice"},
		{"not an object", `{"shard":"w","name":"a.codes"}`, `7`, "packed: "},
		{"no entries", `"entries"`, `"tensors"`, `unknown key "tensors"`},
	} {
		_, err := DecodeQuantizationAs([]byte(strings.Replace(foreignQuantization, tc.old, tc.new, 1)), foreignNames)
		if err == nil || !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.fault)
		}
	}
}

func TestSpellings(t *testing.T) {
	for _, tc := range []struct {
		names FieldNames
		fault string
	}{
		{foreignNames, ""},
		{FieldNames{"tensor": "file", "file": "tensor"}, ""},
		{FieldNames{"codes": "scales"}, `codes and scales are both spelt "scales"`},
		{FieldNames{"literal": "float"}, `literal and float are both spelt "float"`},
		{FieldNames{"model": "x"}, `"model" is no name`},
	} {
		err := tc.names.Check()
		if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || err.Error()[:len(tc.fault)] != tc.fault) {
			t.Errorf("%v: error %v, want %q", tc.names, err, tc.fault)
		}
	}
}

// Every json key of the manifest's types can be renamed, so that a field which
// is added is not forgotten here.
func TestAllKeysCanBeRenamed(t *testing.T) {
	for keys, of := range map[*[]string]reflect.Type{
		&manifestKeys: reflect.TypeFor[Quantization](), &entryKeys: reflect.TypeFor[Quantity](), &storedKeys: reflect.TypeFor[StoredTensor](),
	} {
		var declared []string
		for i := range of.NumField() {
			key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			declared = append(declared, key)
		}
		if !reflect.DeepEqual(*keys, declared) {
			t.Errorf("%s has keys %v, renamed are %v", of, declared, *keys)
		}
	}
}

func FuzzDecodeQuantizationAs(f *testing.F) {
	f.Add([]byte(foreignQuantization))
	f.Add([]byte(cleanQuantization))
	f.Fuzz(func(t *testing.T, in []byte) {
		q, err := DecodeQuantizationAs(in, foreignNames)
		if err != nil {
			return
		}
		if _, err := q.Encode(); err != nil {
			t.Errorf("decoded %+v cannot be encoded: %v", q, err)
		}
	})
}
