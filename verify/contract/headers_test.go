package contract

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// Headers alone give the contract that the whole files give.
func TestContractOfHeaders(t *testing.T) {
	files := model(t, `{"tie_word_embeddings":true}`)
	want, err := Of(t.Context(), write(t, files), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if strings.HasSuffix(name, ".safetensors") {
			files[name] = data[:8+binary.LittleEndian.Uint64(data)]
		}
	}
	got, err := Of(t.Context(), write(t, files), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	if _, err := Of(t.Context(), write(t, files), Options{Digests: true}); err == nil || !strings.Contains(err.Error(), "read a.safetensors: it is a header alone, and holds no weights to digest") {
		t.Errorf("digests of headers: error %v", err)
	}
	whole := model(t, "{}")["a.safetensors"]
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut within the data", whole[:len(whole)-1], "data ends at 8, the file 1 bytes earlier"},
		{"cut within the header", whole[:40], "exceeds the file"},
		{"broken header alone", []byte("\x02\x00\x00\x00\x00\x00\x00\x00{]"), "rule S3"},
		{"hole in a header alone", []byte("\x3f\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"U8","shape":[1],"data_offsets":[9000000000,9]}}  `)[:8+63], "end before they begin"},
	} {
		if _, err := Of(t.Context(), write(t, map[string][]byte{"a.safetensors": tc.data}), Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}
