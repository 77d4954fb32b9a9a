package contract

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// write makes a folder of the given files.
func write(t *testing.T, files map[string][]byte) *content.Tree {
	t.Helper()
	root := t.TempDir()
	for name, data := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := content.OpenFolder(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

func shard(t *testing.T, data string, tensors ...safetensors.Tensor) []byte {
	t.Helper()
	header, err := safetensors.EncodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(header, data...)
}

func model(t *testing.T, config string) map[string][]byte {
	return map[string][]byte{
		"a.safetensors": shard(t, "abcdefgh",
			safetensors.Tensor{Name: "model.embed_tokens.weight", DType: safetensors.BF16, Shape: []int64{2, 1}},
			safetensors.Tensor{Name: "model.norm.weight", DType: safetensors.F32, Shape: []int64{1}}),
		"more/b.safetensors": shard(t, "ij",
			safetensors.Tensor{Name: "mtp.fc.weight", DType: safetensors.BF16, Shape: []int64{1}},
			safetensors.Tensor{Name: "model.empty", DType: safetensors.BF16, Shape: []int64{0, 3}}),
		"config.json": []byte(config),
	}
}

func TestContractOfAFolder(t *testing.T) {
	sum := func(text string) string { return manifest.DigestBytes([]byte(text)).Hex() }
	want := manifest.Contract{Schema: 1, Repository: "o/n", Revision: strings.Repeat("0", 40), TiedHead: true, Tensors: map[string]manifest.ContractTensor{
		"model.embed_tokens.weight": {DType: "BF16", Shape: []int64{2, 1}, Role: manifest.RoleEmbedding, SHA256: sum("abcd")},
		"model.norm.weight":         {DType: "F32", Shape: []int64{1}, Role: manifest.RoleBackbone, SHA256: sum("efgh")},
		"mtp.fc.weight":             {DType: "BF16", Shape: []int64{1}, Role: manifest.RoleMTP, SHA256: sum("ij")},
		"model.empty":               {DType: "BF16", Shape: []int64{0, 3}, Role: manifest.RoleBackbone, SHA256: sum("")},
	}}
	options := Options{Repository: want.Repository, Revision: want.Revision, Digests: true, Workers: 2}
	last := int64(0)
	options.Progress = func(done, total int64) { last = total - done }
	tree := write(t, model(t, `{"text_config":{"tie_word_embeddings":true}}`))
	got, err := Of(t.Context(), tree, options)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("error %v\n got %+v\nwant %+v", err, got, want)
	}
	if last != 0 {
		t.Errorf("%d bytes are left at the end", last)
	}
	options.Digests = false
	got, err = Of(t.Context(), tree, options)
	for name, tensor := range want.Tensors {
		tensor.SHA256 = ""
		want.Tensors[name] = tensor
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("from headers alone: error %v\n got %+v\nwant %+v", err, got, want)
	}
	data, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := manifest.DecodeContract(data); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("read back: %v, %+v", err, again)
	}
}

func TestTiedHead(t *testing.T) {
	head := safetensors.Tensor{Name: "lm_head.weight", DType: safetensors.U8, Shape: []int64{1}}
	for _, tc := range []struct {
		config string
		stored bool
		want   bool
	}{
		{`{}`, false, true}, {`{}`, true, false},
		{`{"tie_word_embeddings":true}`, true, true}, {`{"tie_word_embeddings":false}`, false, false},
	} {
		files := model(t, tc.config)
		if tc.stored {
			files["head.safetensors"] = shard(t, "x", head)
		}
		got, err := Of(t.Context(), write(t, files), Options{})
		if err != nil || got.TiedHead != tc.want {
			t.Errorf("%s, head stored %v: tied %v, error %v", tc.config, tc.stored, got.TiedHead, err)
		}
	}
}

func TestContractRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, fault string
		alter       func(map[string][]byte)
	}{
		{"no shard", "holds no .safetensors file", func(f map[string][]byte) { delete(f, "a.safetensors"); delete(f, "more/b.safetensors") }},
		{"cut shard", "read a.safetensors: ", func(f map[string][]byte) { f["a.safetensors"] = f["a.safetensors"][:20] }},
		{"name twice", `is in another shard too`, func(f map[string][]byte) { f["c.safetensors"] = f["a.safetensors"] }},
		{"config", "read config.json: ", func(f map[string][]byte) { f["config.json"] = []byte(`{"tie_word_embeddings":3}`) }},
	} {
		files := model(t, `{}`)
		tc.alter(files)
		if _, err := Of(t.Context(), write(t, files), Options{Workers: 1, Digests: true}); err == nil || !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.fault)
		}
	}
}
