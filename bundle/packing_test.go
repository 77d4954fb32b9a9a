package bundle

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/bundle/config"
	"slipway/bundle/pack/packtest"
	"slipway/manifest"
	"slipway/manifest/layout"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
)

const denseHCL = `slipway = 1
bundle "abacus" {
  profile = "practice"
}
base "language" {
  repository = "owner/name"
  revision   = "0123456789012345678901234567890123456789"
}
weights "language" {
  from = "model"
  pack = "ternary"
}
`

// denseSource writes a folder to build from: the trained ternary example as
// dense weights.
func denseSource(t *testing.T, hcl string) string {
	t.Helper()
	folder := t.TempDir()
	if err := packtest.Dense("../examples/abacus/ternary", filepath.Join(folder, "model")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "bundle.hcl"), hcl)
	return folder
}

// Dense weights become the packed ones that they are, by every way of writing
// them, with one digest.
func TestPackTernary(t *testing.T) {
	folder := denseSource(t, denseHCL)
	plan := mustPlan(t, folder)
	var paths []string
	for _, f := range plan.Files {
		paths = append(paths, f.Path)
	}
	for _, want := range []string{"quantization_manifest.json", "weights/float-00001.safetensors", "weights/ternary-00001.safetensors", "weights/config.json", "weights/tokenizer.json"} {
		if !slices.Contains(paths, want) {
			t.Errorf("no %s in %v", want, paths)
		}
	}
	if slices.Contains(paths, "weights/model.safetensors") || plan.Model.Quantization != "packed_2bit" || plan.Model.Parameters != 5403568 {
		t.Errorf("paths %v, model %+v", paths, plan.Model)
	}
	sealed, err := Seal(t.Context(), plan, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	out := filepath.Join(t.TempDir(), "out")
	for range 2 { // the second finds what the first wrote
		written, err := WriteFolder(t.Context(), plan, out, Options{Workers: 5})
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		if written.Descriptor.Digest != sealed.Descriptor.Digest {
			t.Error("the folder has another digest")
		}
	}
	for _, link := range []bool{false, true} {
		target, err := layout.Create(filepath.Join(t.TempDir(), "layout"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		laid, err := WriteLayout(t.Context(), plan, target, LayoutOptions{Tag: "x", Link: link}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer laid.Close()
		if laid.Descriptor.Digest != sealed.Descriptor.Digest {
			t.Error("the layout has another digest")
		}
	}

	// Byte for byte what the example was trained to.
	data, err := os.ReadFile(filepath.Join(out, manifest.QuantizationPath))
	if err != nil {
		t.Fatal(err)
	}
	q, err := manifest.DecodeQuantization(data)
	if err != nil {
		t.Fatal(err)
	}
	if q.BaseModel == nil || *q.BaseModel != "owner/name" {
		t.Errorf("base %v", q.BaseModel)
	}
	for name, e := range q.Tensors {
		for i, s := range e.Stored() {
			_, got, err := packtest.Read(out, s)
			if err != nil {
				t.Fatal(err)
			}
			original := manifest.StoredTensor{File: "float-00001.safetensors", Tensor: name}
			if e.Kind == manifest.KindPacked2Bit {
				original = manifest.StoredTensor{File: "ternary-00001.safetensors", Tensor: name + []string{".codes", ".scales"}[i]}
			}
			_, want, err := packtest.Read("../examples/abacus/ternary", original)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s: other bytes, or %v", original.Tensor, err)
			}
		}
	}
}

// A blob of a made shard can be read from any offset.
func TestOpenPackedBlob(t *testing.T) {
	sealed, err := Seal(t.Context(), mustPlan(t, denseSource(t, denseHCL)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	read := func(offset int64) string {
		r, err := sealed.Open(context.Background(), sealed.Artifact.Layers[0], offset)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if whole := read(0); whole[1000:] != read(1000) {
		t.Error("other bytes from offset 1000 on")
	}
}

// Weights that change after the plan are noticed, and leave nothing.
func TestPackedSourceChanges(t *testing.T) {
	folder := denseSource(t, denseHCL)
	plan := mustPlan(t, folder)
	name := filepath.Join(folder, "model", "model.safetensors")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(data))
	out := filepath.Join(t.TempDir(), "out")
	if _, err := WriteFolder(t.Context(), plan, out, Options{}); err == nil || !strings.Contains(err.Error(), "model/model.safetensors: changed") {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(out)); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
}

func TestReshardAndDropHead(t *testing.T) {
	embedding := strings.Repeat("ab", 64)
	header, err := safetensors.EncodeHeader([]safetensors.Tensor{
		{Name: "model.embed_tokens.weight", DType: safetensors.BF16, Shape: []int64{8, 8}},
		{Name: "model.norm.weight", DType: safetensors.BF16, Shape: []int64{8}},
		{Name: "lm_head.weight", DType: safetensors.BF16, Shape: []int64{8, 8}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shard := string(header) + embedding + strings.Repeat("n", 16) + embedding
	for _, tc := range []struct {
		name, wishes string
		head         string
		paths        []string // of weights
		parameters   int64
		fault        string
	}{
		{"kept", "", embedding, []string{"weights/model.safetensors"}, 136, ""},
		{"large enough", `max_shard = "1MiB"`, embedding, []string{"weights/model.safetensors"}, 136, ""},
		{"cut", `max_shard = "300B"`, embedding, []string{"weights/model-00001-of-00003.safetensors", "weights/model-00002-of-00003.safetensors", "weights/model-00003-of-00003.safetensors", "weights/model.safetensors.index.json"}, 136, ""},
		{"dropped", "drop_tied_head = true", embedding, []string{"weights/model.safetensors"}, 72, ""},
		{"differs", "drop_tied_head = true", strings.Repeat("ba", 64), nil, 0, "lm_head.weight of model/model.safetensors differs from model.embed_tokens.weight"},
		{"not ternary", `pack = "ternary"`, embedding, nil, 0, "no tensor of model is exactly ternary"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			wishes := tc.wishes
			write(t, filepath.Join(folder, "bundle.hcl"), "slipway = 1\nbundle \"x\" {\n profile = \"practice\"\n}\nweights \"language\" {\n from = \"model\"\n "+wishes+"\n}\n")
			write(t, filepath.Join(folder, "model/config.json"), `{"tie_word_embeddings":true}`)
			write(t, filepath.Join(folder, "model/model.safetensors"), strings.TrimSuffix(shard, embedding)+tc.head)
			plan, err := makePlan(t, folder)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("error %v, want %q", err, tc.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, f := range plan.Files {
				if f.Path != "weights/config.json" {
					paths = append(paths, f.Path)
				}
			}
			if !slices.Equal(paths, tc.paths) || plan.Model.Parameters != tc.parameters {
				t.Errorf("paths %v, %d parameters; want %v, %d", paths, plan.Model.Parameters, tc.paths, tc.parameters)
			}
			written, err := WriteFolder(t.Context(), plan, filepath.Join(t.TempDir(), "out"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			_ = written.Close()
		})
	}
}

// A profile that wants the base's tensors unchanged refuses packing.
func TestPackRefusedByProfile(t *testing.T) {
	folder := denseSource(t, denseHCL)
	wanted, err := config.LoadBundle(filepath.Join(folder, "bundle.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	profile, _, err := config.LoadProfile("practice")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Inspect(t.Context(), wanted, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, presence := range []profiles.Presence{profiles.MayOmit, profiles.Needed, profiles.Added} {
		profile.VisionMTP = presence
		_, err := MakePlan(wanted, profile, found)
		if refused := err != nil && strings.Contains(err.Error(), "bundle.hcl:11,3: profile practice wants the base's tensors unchanged"); refused != (presence != profiles.MayOmit) {
			t.Errorf("vision and MTP %s: error %v", presence, err)
		}
	}
}
