package compare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// shard writes a safetensors file of one-row U8 tensors.
func shard(t *testing.T, name string, tensors map[string]string, order ...string) {
	t.Helper()
	var list []safetensors.Tensor
	var data string
	for _, n := range order {
		list = append(list, safetensors.Tensor{Name: n, DType: mustDType(t, "U8"), Shape: []int64{int64(len(tensors[n]))}})
		data += tensors[n]
	}
	header, err := safetensors.EncodeHeader(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(header)+data)
}

func mustDType(t *testing.T, name string) safetensors.DType {
	t.Helper()
	d, ok := safetensors.ParseDType(name)
	if !ok {
		t.Fatalf("no dtype %s", name)
	}
	return d
}

func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, a, b string) *Difference {
	t.Helper()
	var trees []*content.Tree
	for _, folder := range []string{a, b} {
		tree, err := content.OpenFolder(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tree.Close() })
		trees = append(trees, tree)
	}
	d, err := Trees(t.Context(), trees[0], trees[1], Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTrees(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	values := map[string]string{"same": "aaaa", "value": "bbbb", "gone": "cc", "shape": "dddd", "moved": "ee"}
	shard(t, filepath.Join(a, "w/1.safetensors"), values, "same", "value", "gone", "shape", "moved")
	values["value"], values["shape"], values["new"] = "bbbB", "ddddd", "f"
	shard(t, filepath.Join(b, "w/1.safetensors"), values, "shape", "same", "value")
	shard(t, filepath.Join(b, "w/2.safetensors"), values, "moved", "new")
	write(t, filepath.Join(a, "serve.sh"), "x")
	write(t, filepath.Join(b, "serve.sh"), "x")
	if err := os.Chmod(filepath.Join(b, "serve.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(a, "README.md"), "a")
	write(t, filepath.Join(a, "kept"), "a")
	write(t, filepath.Join(b, "kept"), "a")

	d := compare(t, a, b)
	var files, tensors []string
	for _, f := range d.Files {
		files = append(files, string(f.Change)+" "+f.Path)
	}
	for _, f := range d.Tensors {
		tensors = append(tensors, string(f.Change)+" "+f.Name+" "+f.Detail)
	}
	wantFiles := []string{"removed README.md", "changed serve.sh", "changed w/1.safetensors", "added w/2.safetensors"}
	wantTensors := []string{
		"removed gone U8 [2]", "moved moved w/1.safetensors -> w/2.safetensors", "added new U8 [1]",
		"changed shape U8 [4] -> U8 [5]", "changed value values of U8 [4]",
	}
	if diff := cmp.Diff(wantFiles, files) + cmp.Diff(wantTensors, tensors); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(d.Files[1].Detail, "mode 0644 -> 0755") || d.SetA == d.SetB {
		t.Errorf("%+v", d)
	}
	if same := compare(t, a, a); !same.Same() || same.SetA != same.SetB {
		t.Errorf("a folder differs from itself: %+v", same)
	}
}

func TestTreesNameTheDamagedFile(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write(t, filepath.Join(a, "w.safetensors"), "no header")
	write(t, filepath.Join(b, "w.safetensors"), "none either")
	var trees []*content.Tree
	for _, folder := range []string{a, b} {
		tree, err := content.OpenFolder(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		trees = append(trees, tree)
	}
	if _, err := Trees(t.Context(), trees[0], trees[1], Options{}); err == nil || !strings.Contains(err.Error(), "w.safetensors") {
		t.Errorf("error %v", err)
	}
}
