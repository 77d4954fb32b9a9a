package verify

import (
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

const visionShard = "weights/vision.safetensors"

// visionFixture is a base of a few tensors as it is, and a vision encoder of two.
func visionFixture() (*fixture, manifest.Contract) {
	base := map[string]*stored{
		"model.word_embeddings.weight": {safetensors.BF16, []int64{8, 4}, make([]byte, 64)}, "lm_head.weight": {safetensors.BF16, []int64{8, 4}, []byte(strings.Repeat("h", 64))},
		"model.norm.weight": {safetensors.BF16, []int64{4}, []byte("norm....")}, "model.layers.0.mlp.gate.weight": {safetensors.BF16, []int64{2, 4}, []byte("gate............")},
	}
	contract := manifest.Contract{Schema: 1, Repository: "example/text", Revision: strings.Repeat("ab", 20), Tensors: map[string]manifest.ContractTensor{}}
	for name, t := range base {
		contract.Tensors[name] = manifest.ContractTensor{DType: t.dtype.String(), Shape: t.shape, Role: manifest.RoleOf(name), SHA256: manifest.DigestBytes(t.data).Hex()}
	}
	return &fixture{
		shards: map[string]map[string]*stored{
			"weights/model.safetensors": base,
			visionShard:                 {"visual.patch_embed.proj.weight": bytes8(), "visual.merger.mlp.0.weight": bytes8()},
		},
		config:         map[string]any{"architectures": []string{"MapleForCausalLM"}, "hidden_size": 4, "vocab_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "tie_word_embeddings": false},
		files:          map[string][]byte{"serve.sh": []byte("#!/bin/sh\nexec python3 -u -m http.server 8000\n"), "weights/model.safetensors.index.json": nil},
		noQuantization: true, noInventory: true,
	}, contract
}

func bytes8() *stored { return &stored{safetensors.BF16, []int64{4}, make([]byte, 8)} }

// A vision submission adds an encoder to a base that stays as it is. Each case but
// the clean ones fails gate coverage alone.
func TestAddedVision(t *testing.T) {
	base := func(f *fixture) map[string]*stored { return f.shards["weights/model.safetensors"] }
	for name, test := range map[string]struct {
		alter func(*fixture)
		want  report.Status
		says  []string
	}{
		"clean":     {func(*fixture) {}, report.Pass, []string{"tensors of the base: 4 unchanged by their digests", "2 tensors added to the base: vision"}},
		"connector": {func(f *fixture) { f.shards[visionShard]["model.connector.proj.weight"] = bytes8() }, report.Pass, []string{"1 tensor added to the base: model.connector"}},
		"changed": {func(f *fixture) { base(f)["model.norm.weight"].data[0]++ }, report.Fail,
			[]string{"model.norm.weight", "differs from the base, where it must be unchanged"}},
		"another type": {func(f *fixture) { base(f)["model.norm.weight"].dtype = safetensors.F16 }, report.Fail, []string{"has another type than in the base"}},
		"missing":      {func(f *fixture) { delete(base(f), "model.norm.weight") }, report.Fail, []string{"model.norm.weight"}},
		"more layers":  {func(f *fixture) { base(f)["model.layers.1.mlp.gate.weight"] = bytes8() }, report.Fail, []string{"model.layers.1", "is not a tensor of the base"}},
		"second head":  {func(f *fixture) { base(f)["lm_head.extra.weight"] = bytes8() }, report.Fail, []string{"lm_head.extra.weight", "is not a tensor of the base"}},
		"MTP":          {func(f *fixture) { f.shards[visionShard]["mtp.norm.weight"] = bytes8() }, report.Fail, []string{"mtp.norm.weight", "is not a tensor of the base"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, contract := visionFixture()
			test.alter(f)
			weightMap := map[string]string{}
			for shard, tensors := range f.shards {
				for name := range tensors {
					weightMap[name] = strings.TrimPrefix(shard, "weights/")
				}
			}
			f.addIndex(weightMap)
			p := profiles.Profile{
				Name: "vision", VisionMTP: profiles.Added, Gates: []string{"paths", "safetensors", "index", "coverage", "config"},
				Bases: []profiles.Base{{Label: "language", Repository: contract.Repository, Revision: contract.Revision, Contract: &contract}},
			}
			r := run(t, f.write(t), Options{Profile: p})
			g, _ := r.Gate("coverage")
			said := strings.Join(g.Notes, "\n")
			for _, finding := range g.Findings {
				said += "\n" + finding.Tensor + " " + finding.Problem
			}
			var failed []string
			if test.want == report.Fail {
				failed = []string{"coverage"}
			}
			if g.Status != test.want || !slices.Equal(r.Failed(), failed) {
				t.Errorf("%s, failed %v\n%s", g.Status, r.Failed(), said)
			}
			for _, says := range test.says {
				if !strings.Contains(said, says) {
					t.Errorf("does not say %q:\n%s", says, said)
				}
			}
		})
	}
}
