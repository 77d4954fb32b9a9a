package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/modelconfig"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/ternary"
)

// errorsOf returns a gate's errors.
func errorsOf(r *report.Report, gate string) []report.Finding {
	g, _ := r.Gate(gate)
	return slices.DeleteFunc(slices.Clone(g.Findings), func(f report.Finding) bool { return f.Level != report.Error })
}

// only demands that a gate has exactly one error, with texts in it.
func only(t *testing.T, r *report.Report, gate string, texts ...string) {
	t.Helper()
	found := errorsOf(r, gate)
	if len(found) != 1 {
		t.Fatalf("gate %s has %d errors, want 1\n%s", gate, len(found), text(t, r))
	}
	all := fmt.Sprintf("%+v", found[0])
	for _, want := range texts {
		if !strings.Contains(all, want) {
			t.Errorf("gate %s: %s\nlacks %q", gate, all, want)
		}
	}
	if found[0].Hint == "" {
		t.Errorf("gate %s: %s has no remedy", gate, all)
	}
}

func whenDeclared(p profiles.Profile) profiles.Profile {
	rules := *p.Ternary
	rules.WhenDeclared = true
	p.Ternary = &rules
	return p
}

// secondModel adds a whole plain model of other dimensions in another folder.
func secondModel(f *fixture, folder string) {
	config := maps.Clone(f.config)
	config["architectures"], config["hidden_size"], config["num_hidden_layers"] = []string{"Qwen3ForCausalLM"}, 32, 1
	config["intermediate_size"] = 16
	delete(config, "layer_types")
	parsed, err := modelconfig.Parse(mustJSON(config))
	if err != nil {
		panic(err)
	}
	expected, _, err := modelconfig.Tensors(parsed, modelconfig.ShortPrefix)
	if err != nil {
		panic(err)
	}
	tensors := map[string]*stored{}
	for _, tensor := range expected {
		n, _ := ternary.Product(tensor.Shape)
		tensors[tensor.Name] = &stored{safetensors.BF16, tensor.Shape, make([]byte, 2*n)}
	}
	f.shards[folder+"/model.safetensors"] = tensors
	f.files[folder+"/config.json"] = mustJSON(config)
	f.files[folder+"/tokenizer.json"] = f.files["weights/tokenizer.json"]
}

func TestSeveralModels(t *testing.T) {
	f := newFixture()
	clean := run(t, f.write(t), Options{Profile: toyProfile()}).Counts
	secondModel(f, "draft")
	for _, profile := range []profiles.Profile{whenDeclared(toyProfile()), whenDeclared(withoutBase())} {
		r := run(t, f.write(t), Options{Profile: profile})
		if err := r.Err(); err != nil {
			t.Fatalf("%v\n%s", err, text(t, r))
		}
		if r.Counts.Unreferenced != 0 || r.Counts.Stored() != clean.Stored() {
			t.Errorf("a second model is counted: %+v", *r.Counts)
		}
		if g, _ := r.Gate("coverage"); !strings.Contains(strings.Join(g.Notes, " "), "draft/config.json: another model") {
			t.Errorf("notes %v", g.Notes)
		}
	}
	r := run(t, f.write(t), Options{Profile: toyProfile()})
	if got := r.Failed(); !slices.Equal(got, []string{"coverage"}) {
		t.Fatalf("%v fail\n%s", got, text(t, r))
	}
	only(t, r, "coverage", "draft/config.json", "second model: 13 tensors")
}

// A head is missing only where the architecture is known to have one, or where an
// embedding says that it is a language model's.
func TestHeadOfAnUnknownArchitecture(t *testing.T) {
	for _, test := range []struct {
		name, architecture string
		without            []string
		fails              bool
	}{
		{"neither", "OtherForCausalLM", []string{"model.embed_tokens.weight", "lm_head.weight"}, false},
		{"no head", "OtherForCausalLM", []string{"lm_head.weight"}, true},
		{"both", "OtherForCausalLM", nil, false},
		{"neither, of a known one", "Qwen3ForCausalLM", []string{"model.embed_tokens.weight", "lm_head.weight"}, true},
	} {
		f := newFixture()
		secondModel(f, "draft")
		var config map[string]any
		if err := json.Unmarshal(f.files["draft/config.json"], &config); err != nil {
			t.Fatal(err)
		}
		config["architectures"], config["tie_word_embeddings"] = []string{test.architecture}, false
		f.files["draft/config.json"] = mustJSON(config)
		f.shards["draft/model.safetensors"]["lm_head.weight"] = f.shards["draft/model.safetensors"]["model.embed_tokens.weight"]
		for _, name := range test.without {
			delete(f.shards["draft/model.safetensors"], name)
		}
		r := run(t, f.write(t), Options{Profile: whenDeclared(withoutBase())})
		g, _ := r.Gate("config")
		if failed := g.Status == report.Fail; failed != test.fails || failed && g.Findings[0].Path != "draft/config.json" {
			t.Errorf("%s: %s, %+v", test.name, g.Status, g.Findings)
		}
		if noted := strings.Contains(strings.Join(g.Notes, " "), "neither an embedding nor a head"); noted != (test.name == "neither") {
			t.Errorf("%s: notes %v", test.name, g.Notes)
		}
	}
}

// Each model is judged by its own config.json, and by nobody else's.
func TestFaultsOfTheSecondModel(t *testing.T) {
	for _, test := range []struct {
		name  string
		alter func(f *fixture)
		gate  string
		texts []string
	}{
		{"missing tensor", func(f *fixture) { delete(f.shards["draft/model.safetensors"], "model.norm.weight") }, "coverage", []string{"model.norm.weight", "missing"}},
		{"other shape", func(f *fixture) {
			f.shards["draft/model.safetensors"]["model.norm.weight"] = &stored{safetensors.BF16, []int64{8}, make([]byte, 16)}
		}, "coverage", []string{"draft/model.safetensors", "[32]", "[8]"}},
		{"unsound config", func(f *fixture) { f.files["draft/config.json"] = []byte(`{"hidden_size":"x"}`) }, "config", []string{"draft/config.json", "hidden_size: want a whole number, got a string"}},
		{"end token", func(f *fixture) {
			f.files["draft/config.json"] = bytes.Replace(f.files["draft/config.json"], []byte(`"eos_token_id":95`), []byte(`"eos_token_id":96`), 1)
		}, "config", []string{"draft/config.json", "vocabulary"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture()
			secondModel(f, "draft")
			test.alter(f)
			r := run(t, f.write(t), Options{Profile: whenDeclared(toyProfile())})
			if got := r.Failed(); !slices.Equal(got, []string{test.gate}) {
				t.Fatalf("%v fail\n%s", got, text(t, r))
			}
			only(t, r, test.gate, test.texts...)
		})
	}
}

func TestTokenizerVectors(t *testing.T) {
	put := func(data []byte) func(*fixture) {
		return func(f *fixture) { f.files["weights/tokenizer.json"] = data }
	}
	runVectors(t, []vector{
		{name: "no tokenizer", alter: func(f *fixture) { delete(f.files, "weights/tokenizer.json") }, warns: "config", names: "weights/tokenizer.json  is missing"},
		{name: "empty object", alter: put([]byte(`{}`)), fails: fails("config"), names: "weights/tokenizer.json  has no token"},
		{name: "empty file", alter: put([]byte{}), fails: fails("config"), names: "weights/tokenizer.json  is empty"},
		{name: "pointer", alter: put([]byte(pointer)), fails: fails("config"), names: "weights/tokenizer.json  is a Git LFS pointer"},
		{name: "cut", alter: put([]byte("{\n\"model\":{")), fails: fails("config"), names: "line 2, column 10"},
	})
}

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 42\n"

// What lies where a shard should be is named, with the remedy that fits.
func TestBrokenShardsAreNamed(t *testing.T) {
	whole := rawShard(oneTensor, 4)
	for _, test := range []struct {
		name       string
		data       []byte
		text, hint string
	}{
		{"pointer", []byte(pointer), "Git LFS pointer", "git lfs pull"},
		{"page", []byte("<!DOCTYPE html><html><body>Sign in</body></html>"), "HTML page", "download"},
		{"page after a line", []byte("\n<HTML lang=en>not found</HTML>"), "HTML page", "download"},
		{"empty", nil, "is empty", getAgain},
		{"cut in the length", whole[:7], "7 bytes", getAgain},
		{"cut in the header", whole[:20], "exceeds the file", getAgain},
		{"cut in the data", whole[:len(whole)-1], "1 bytes earlier", getAgain},
		{"tail", append(slices.Clone(whole), 0), "follow the last tensor", writeAgain},
		{"other bytes", bytes.Repeat([]byte("weights?"), 10), "header length", writeAgain},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture()
			f.files["weights/bad.safetensors"] = test.data
			r := run(t, f.write(t), Options{Profile: toyProfile()})
			only(t, r, "safetensors", "weights/bad.safetensors", test.text, test.hint)
		})
	}
}

func TestExpectedDigestNamesWhatWasCompared(t *testing.T) {
	root := newFixture().write(t)
	other := manifest.DigestBytes([]byte("other"))
	folder := run(t, root, Options{Profile: toyProfile(), Expect: other})
	only(t, folder, "digests", other.String(), folder.Set, "a folder has no artifact digest", "--layout")
	if strings.Contains(text(t, folder), "another submission") {
		t.Error("a folder is called another submission")
	}
	m := bundle(t, root, func(*manifest.Artifact, *manifest.ModelConfig) {})
	artifact := verifyBundle(t, m, Options{Profile: toyProfile(), Expect: other})
	only(t, artifact, "digests", other.String(), "artifact "+artifact.Artifact, "set "+artifact.Set, "another submission")
}

// A floating-point copy of a tensor that is declared ternary is an error, what
// ever its name, and the remedy does not say to list it.
func TestCopiesOfTernaryTensors(t *testing.T) {
	for _, name := range []string{gate0, strings.TrimSuffix(gate0, ".weight"), strings.Replace(gate0, "model.", "model.language_model.", 1)} {
		for _, literal := range []bool{false, true} {
			f := newFixture()
			if literal {
				f.literal(gate0)
				f.edit(gate0, func(e *manifest.Quantity) { e.Tensor = "other" })
				f.shards[floatShard]["other"] = f.shards[floatShard][gate0]
				delete(f.shards[floatShard], gate0)
			}
			f.shards[floatShard][name] = &stored{safetensors.F32, []int64{256, 256}, make([]byte, 4*256*256)}
			r := run(t, f.write(t), Options{Profile: toyProfile()})
			if got := r.Failed(); !slices.Equal(got, []string{"coverage"}) {
				t.Fatalf("%v fail\n%s", got, text(t, r))
			}
			only(t, r, "coverage", "Tensor:"+name, "declares ternary", "remove it: a server")
		}
	}
	f := newFixture() // the clean twin: another shape stands for nothing
	f.shards[floatShard][gate0] = &stored{safetensors.BF16, []int64{2, 2}, make([]byte, 8)}
	if err := run(t, f.write(t), Options{Profile: toyProfile()}).Err(); err != nil {
		t.Error(err)
	}
}

func TestShapesWithoutAContract(t *testing.T) {
	f := newFixture()
	f.float(norm, safetensors.BF16, []int64{255})
	r := run(t, f.write(t), Options{Profile: withoutBase()})
	if got := r.Failed(); !slices.Equal(got, []string{"coverage"}) {
		t.Fatalf("%v fail\n%s", got, text(t, r))
	}
	only(t, r, "coverage", "Path:"+floatShard, norm, "[256]", "[255]")
	unasked := withoutBase()
	unasked.Gates = slices.DeleteFunc(slices.Clone(unasked.Gates), func(id string) bool { return id == "coverage" })
	only(t, run(t, f.write(t), Options{Profile: unasked}), "config", "Path:"+floatShard, norm)
}

func TestWrongPrefix(t *testing.T) {
	long := func(f *fixture) {
		for _, name := range f.quant.Names() {
			f.quant.Tensors[strings.Replace(name, "model.", "model.language_model.", 1)] = f.quant.Tensors[name]
			delete(f.quant.Tensors, name)
		}
	}
	f := newFixture()
	long(f)
	r := run(t, f.write(t), Options{Profile: toyProfile()})
	only(t, r, "coverage", "27 tensors", "model.language_model.")

	plainDense := newFixture()
	plainDense.shards, plainDense.noQuantization = map[string]map[string]*stored{}, true
	secondModel(plainDense, "weights")
	plainDense.config = nil
	tensors := plainDense.shards["weights/model.safetensors"]
	if err := run(t, plainDense.write(t), Options{Profile: whenDeclared(withoutBase())}).Err(); err == nil || strings.Contains(err.Error(), "coverage") {
		t.Errorf("the clean twin: %v", err) // it lacks the quantization manifest that the profile requires
	}
	for _, name := range slices.Collect(maps.Keys(tensors)) {
		if rest, ok := strings.CutPrefix(name, "model."); ok {
			tensors["model.language_model."+rest] = tensors[name]
			delete(tensors, name)
		}
	}
	only(t, run(t, plainDense.write(t), Options{Profile: whenDeclared(withoutBase())}), "coverage", "Qwen3ForCausalLM", "13 tensors")
}

// One cause gives one finding.
func TestCascades(t *testing.T) {
	t.Run("shard is missing", func(t *testing.T) {
		f := newFixture()
		root := f.write(t)
		if err := os.Remove(filepath.Join(root, ternaryShard)); err != nil {
			t.Fatal(err)
		}
		r := run(t, root, Options{Profile: toyProfile()})
		if got := r.Failed(); !slices.Equal(got, []string{"declared", "coverage"}) {
			t.Fatalf("%v fail\n%s", got, text(t, r))
		}
		only(t, r, "coverage", ternaryShard, "26 stored tensors are in it")
		for _, id := range []string{"ternary", "stored"} {
			if g, _ := r.Gate(id); g.Status != report.Undecided || len(g.Findings) > 0 {
				t.Errorf("gate %s: %+v", id, g)
			}
		}
	})
	t.Run("shard is a link", func(t *testing.T) {
		root := newFixture().write(t)
		if err := os.Rename(filepath.Join(root, ternaryShard), filepath.Join(t.TempDir(), "away")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("away", filepath.Join(root, ternaryShard)); err != nil {
			t.Fatal(err)
		}
		r := run(t, root, Options{Profile: toyProfile()})
		only(t, r, "paths", ternaryShard)
		only(t, r, "coverage", ternaryShard, "gate paths")
	})
	t.Run("shard of an index is missing", func(t *testing.T) {
		f := newFixture()
		plain(f)
		f.addIndex(f.index())
		f.shards["weights/b.safetensors"] = map[string]*stored{}
		for name, tensor := range f.shards[floatShard] {
			if strings.HasPrefix(name, "model.layers.1.") {
				f.shards["weights/b.safetensors"][name] = tensor
				delete(f.shards[floatShard], name)
			}
		}
		f.addIndex(f.index())
		root := f.write(t)
		if r := run(t, root, Options{Profile: plainProfile()}); r.Err() != nil {
			t.Fatalf("the clean twin: %v", r.Err())
		}
		if err := os.Remove(filepath.Join(root, "weights/b.safetensors")); err != nil {
			t.Fatal(err)
		}
		r := run(t, root, Options{Profile: plainProfile()})
		only(t, r, "coverage", "weights/b.safetensors", "tensors of the model are in it")
		only(t, r, "index", "weights/b.safetensors")
	})
	t.Run("layers are missing", func(t *testing.T) {
		for _, profile := range []profiles.Profile{toyProfile(), withoutBase()} {
			f := newFixture()
			for _, name := range f.quant.Names() {
				if strings.HasPrefix(name, "model.layers.1.") {
					delete(f.quant.Tensors, name)
					delete(f.shards[floatShard], name)
					delete(f.shards[ternaryShard], name+".codes")
					delete(f.shards[ternaryShard], name+".scales")
				}
			}
			only(t, run(t, f.write(t), Options{Profile: profile}), "coverage", "model.layers", "layer 1 is missing (11 tensors)")
		}
	})
	t.Run("whole file left over", func(t *testing.T) {
		f := newFixture()
		plain(f)
		whole := maps.Clone(f.shards[floatShard])
		f.addIndex(f.index())
		f.shards["weights/model.safetensors"] = whole
		r := run(t, f.write(t), Options{Profile: plainProfile()})
		if got := r.Failed(); !slices.Equal(got, []string{"index"}) {
			t.Fatalf("%v fail\n%s", got, text(t, r))
		}
		only(t, r, "index", "weights/model.safetensors", "repeats 27 tensors", "remove it")
	})
	t.Run("shard that nothing refers to", func(t *testing.T) {
		f := newFixture()
		f.shards["weights/old.safetensors"] = map[string]*stored{}
		for _, name := range []string{gate0, up1} {
			f.shards["weights/old.safetensors"][name] = &stored{safetensors.BF16, []int64{256, 256}, make([]byte, 2*256*256)}
		}
		only(t, run(t, f.write(t), Options{Profile: toyProfile()}), "coverage", "weights/old.safetensors", "2 tensors")
	})
}

// A copy of the tied embedding in another shard of a plain checkpoint is a copy
// still, and no other head.
func TestTiedHeadInAnotherShard(t *testing.T) {
	f := newFixture()
	plain(f)
	f.shards["weights/z.safetensors"] = map[string]*stored{"lm_head.weight": f.shards[floatShard][embed]}
	f.addIndex(f.index())
	r := run(t, f.write(t), Options{Profile: plainProfile()})
	if err := r.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text(t, r))
	}
	vector{names: "is a copy of the embedding"}.look(t, r, "coverage", report.Warning)
}

// A model has one head; of two each is judged, in whatever order they are met.
func TestTwoHeads(t *testing.T) {
	const first, second = "language_model.lm_head.weight", "lm_head.weight"
	for _, tied := range []bool{true, false} {
		f := newFixture()
		f.config["tie_word_embeddings"] = tied
		f.float(first, safetensors.BF16, []int64{96, 256}) // other values than the embedding's
		copied := *f.shards[floatShard][embed]
		f.shards[floatShard][second] = &copied
		f.quant.Tensors[second] = manifest.Quantity{Kind: manifest.KindFloat, Shape: copied.shape, File: floatShard, Tensor: second}
		root := f.write(t)
		var before string
		for range 8 {
			r := run(t, root, Options{Profile: toyProfile()})
			if got := r.Failed(); !slices.Equal(got, []string{"coverage"}) {
				t.Fatalf("tied %v: gates %v fail, want coverage\n%s", tied, got, text(t, r))
			}
			vector{names: second + " is a second head"}.look(t, r, "coverage", report.Error)
			if tied {
				vector{names: first + " differs from the embedding"}.look(t, r, "coverage", report.Error)
				vector{names: second + " is a copy of the embedding"}.look(t, r, "coverage", report.Warning)
			}
			if now := text(t, r); before != "" && now != before {
				t.Fatalf("two reports of one submission differ:\n%s\n%s", before, now)
			} else {
				before = now
			}
		}
	}
}

func TestLayerRanges(t *testing.T) {
	var names []string
	for _, n := range []int{10, 9, 8, 3, 11} {
		names = append(names, fmt.Sprintf("m.layers.%d.x", n), fmt.Sprintf("m.layers.%d.y.0", n))
	}
	single, ranges := byLayer(append(names, "m.layers.5.x", "m.norm"), func(_ layer, n int) bool { return n == 2 })
	want := []layerRange{{layer{"m.layers", 3}, 3, 2}, {layer{"m.layers", 8}, 11, 8}}
	if !slices.Equal(ranges, want) || !slices.Equal(single, []string{"m.layers.5.x", "m.norm"}) {
		t.Errorf("%v, %v", ranges, single)
	}
}

func TestFoldersWithoutWeights(t *testing.T) {
	empty := run(t, t.TempDir(), Options{Profile: withoutBase()})
	for _, id := range []string{"paths", "files", "coverage"} {
		if g, _ := empty.Gate(id); g.Status != report.Fail {
			t.Errorf("an empty folder: gate %s is %q", id, g.Status)
		}
	}
	f := newFixture()
	f.shards, f.quant.Tensors, f.noQuantization = nil, nil, true
	f.files["weights/pytorch_model.bin"] = []byte("PK\x03\x04weights")
	r := run(t, f.write(t), Options{Profile: plainProfile()})
	found := false
	for _, finding := range errorsOf(r, "files") {
		found = found || strings.Contains(finding.Problem, "no weights") && strings.Contains(finding.Hint, "convert the weights to safetensors")
	}
	if !found {
		t.Error(text(t, r))
	}
}

func TestSecondReaderIsNamed(t *testing.T) {
	f := newFixture()
	blockFP8(f)
	r := run(t, f.write(t), Options{Profile: plainProfile()})
	g, _ := r.Gate("safetensors")
	if notes := strings.Join(g.Notes, " "); !strings.Contains(notes, "nlpodyssey/safetensors") || !strings.Contains(notes, "does not know F8_E4M3,") {
		t.Error(notes)
	}
}

func TestFormatText(t *testing.T) {
	const whole = "packed_2bit: U8, four codes a byte, lowest bits first along the input axis; value = (code - 1) * scale; F16 scale per group of 64 inputs"
	format := func(text string) func(*fixture) { return func(f *fixture) { f.quant.Format = text } }
	for _, known := range []string{"", "packed_2bit", whole} {
		f := newFixture()
		format(known)(f)
		if g, _ := run(t, f.write(t), Options{Profile: toyProfile()}).Gate("ternary"); len(g.Findings) > 0 {
			t.Errorf("%q: %v", known, g.Findings)
		}
	}
	runVectors(t, []vector{
		{name: "other packing", alter: format("tq1_0"), warns: "ternary", names: "format names another packing"},
		{name: "other bit order", alter: format(strings.Replace(whole, "lowest", "highest", 1)), warns: "ternary", names: "highest bits first"},
	})
}

// The verdict, what failed, what passed, what is open, and then the rest.
func TestVerdictComesFirst(t *testing.T) {
	f := newFixture()
	pass := text(t, run(t, f.write(t), Options{Profile: toyProfile()}))
	if !strings.HasPrefix(pass, "PASS\n") || !strings.Contains(pass, "\npass paths digests files") {
		t.Error(pass)
	}
	f.codes(gate0).data[9] |= 3
	profile := toyProfile()
	profile.Gates, profile.MayUndecided = append(slices.Clone(profile.Gates), "wheels", "components", "quality"), []string{"components", "quality"}
	r := run(t, f.write(t), Options{Profile: profile})
	failed := text(t, r)
	if !strings.HasPrefix(failed, "FAIL: ternary; 3 gates undecided\n") {
		t.Error(failed)
	}
	order := []string{"\nfail ternary\n  error: ", "\npass paths", "\nundecided\n  components wheels: ", "\n  quality: ", "\nset       ", "\ncounts, observed rules\n", "\nnotes\n"}
	at := 0
	for _, part := range order {
		next := strings.Index(failed[at:], part)
		if next < 0 {
			t.Fatalf("%q is missing, or not in its place\n%s", part, failed)
		}
		at += next
	}
	for _, once := range []string{r.Set, r.Counts.Fraction, r.Counts.StoredRatio, "self-declared, not"} {
		if n := strings.Count(failed, once); n != 1 {
			t.Errorf("%q stands %d times\n%s", once, n, failed)
		}
	}
}

// Rows of the embedding that no token reaches are counted, and are no fault.
func TestUnreachedRowsOfTheEmbedding(t *testing.T) {
	f := newFixture()
	note := func() string {
		r := run(t, f.write(t), Options{Profile: toyProfile()})
		if err := r.Err(); err != nil {
			t.Fatalf("%v\n%s", err, text(t, r))
		}
		g, _ := r.Gate("ternary")
		for _, n := range g.Notes {
			if strings.Contains(n, "no token reaches") {
				return n
			}
		}
		return ""
	}
	if got := note(); got != "" {
		t.Errorf("every row has a token, and the report says: %s", got)
	}
	f.files["weights/tokenizer.json"] = bytes.Replace(f.files["weights/tokenizer.json"], []byte(`"id":95`), []byte(`"id":79`), 1)
	f.config["eos_token_id"] = 79
	if got := note(); !strings.Contains(got, "no token reaches the last 16 rows of 96, ") {
		t.Errorf("the report says: %q", got)
	}
}
