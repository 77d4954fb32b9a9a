package verify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/scan"
)

func TestReportIsAFunctionOfItsInput(t *testing.T) {
	f := newFixture()
	f.codes(gate0).data[9] |= 3
	f.float("side.weight", f.shards[floatShard][norm].dtype, []int64{2, 2})
	first := jsonOf(t, f.write(t), Options{Profile: toyProfile(), Workers: 1})
	second := jsonOf(t, f.write(t), Options{Profile: toyProfile(), Workers: 8}) // in another folder
	if !bytes.Equal(first, second) {
		t.Errorf("reports differ:\n%s\n%s", first, second)
	}
	if bytes.Contains(first, []byte(os.TempDir())) {
		t.Error("the report names a folder of this machine")
	}
}

func jsonOf(t *testing.T, root string, options Options) []byte {
	t.Helper()
	data, err := run(t, root, options).JSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCancelledRunHasNoVerdict(t *testing.T) {
	tree := openFolder(t, newFixture().write(t))
	ctx, cancel := context.WithCancel(t.Context())
	options := Options{Profile: toyProfile(), Workers: 1, Progress: func(int64, int64) { cancel() }}
	if r, err := Run(ctx, tree, options); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("report %v, error %v", r, err)
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	root := newFixture().write(t)
	var done, total int64
	r := run(t, root, Options{Profile: toyProfile(), Progress: func(d, all int64) {
		if d < done {
			t.Errorf("progress fell from %d to %d", done, d)
		}
		done, total = d, all
	}})
	if done != total || total != r.Bytes {
		t.Errorf("ended at %d of %d, %d bytes in all", done, total, r.Bytes)
	}
}

// A file that changes between listing and reading is a finding, not an abort.
func TestFileThatChanges(t *testing.T) {
	for _, name := range []string{"weights/ternary-00001.safetensors", "weights/config.json", "DATA.md"} {
		root := newFixture().write(t)
		tree := openFolder(t, root)
		if err := os.Truncate(filepath.Join(root, name), 9); err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), tree, Options{Profile: toyProfile()})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := r.Gate("digests")
		if g.Status != report.Fail || len(g.Findings) != 1 || g.Findings[0].Path != name || r.Set != "" {
			t.Errorf("%s: %+v, set %q", name, g, r.Set)
		}
	}
}

func TestExpectedDigest(t *testing.T) {
	root := newFixture().write(t)
	set, err := manifest.ParseDigest(run(t, root, Options{Profile: toyProfile()}).Set)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t, root, Options{Profile: toyProfile(), Expect: set}).Err(); err != nil {
		t.Error(err)
	}
	other := run(t, root, Options{Profile: toyProfile(), Expect: manifest.DigestBytes([]byte("other"))})
	if got := other.Failed(); !slices.Equal(got, []string{"digests"}) {
		t.Errorf("another digest fails %v", got)
	}
}

// The set digest is the one that coreutils compute.
func TestSetDigestIsRecomputable(t *testing.T) {
	root := t.TempDir()
	for name, data := range map[string]string{"b.md": "two", "a.md": "one"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := manifest.DigestBytes([]byte("one")).Hex() + "  a.md\n" + manifest.DigestBytes([]byte("two")).Hex() + "  b.md\n"
	if got, want := run(t, root, Options{Profile: toyProfile()}).Set, manifest.DigestBytes([]byte(lines)).String(); got != want {
		t.Errorf("set digest %s, want %s", got, want)
	}
}

func TestContractOverridesTheProfile(t *testing.T) {
	root := newFixture().write(t)
	contract := toyModel().Contract()
	delete(contract.Tensors, norm)
	r := run(t, root, Options{Profile: toyProfile(), Contract: &contract})
	if got := r.Failed(); !slices.Equal(got, []string{"declared", "coverage"}) {
		t.Errorf("%v fail\n%s", got, text(t, r))
	}
}

// A text-only submission may name its tensors without the part of the prefix
// that the multimodal base has.
func TestContractUnderTheLongPrefix(t *testing.T) {
	long := toyModel()
	long.Prefix = "model.language_model."
	contract := long.Contract()
	f := newFixture()
	f.files[backbonePath], _ = contract.Encode()
	r := run(t, f.write(t), Options{Profile: toyProfile(), Contract: &contract})
	if err := r.Err(); err != nil {
		t.Errorf("%v\n%s", err, text(t, r))
	}
	delete(f.quant.Tensors, norm)
	delete(f.shards[floatShard], norm)
	r = run(t, f.write(t), Options{Profile: toyProfile(), Contract: &contract})
	if got := r.Failed(); !slices.Equal(got, []string{"coverage"}) {
		t.Errorf("%v fail\n%s", got, text(t, r))
	}
}

func TestUndecidedGatesNeedTheProfilesLeave(t *testing.T) {
	profile := toyProfile()
	profile.Gates = append(slices.Clone(profile.Gates), "wheels")
	root := newFixture().write(t)
	r := run(t, root, Options{Profile: profile})
	if got := r.Open(); !slices.Equal(got, []string{"wheels"}) || r.Err() == nil {
		t.Errorf("open %v, error %v", got, r.Err())
	}
	profile.MayUndecided = []string{"wheels"}
	if err := run(t, root, Options{Profile: profile}).Err(); err != nil {
		t.Error(err)
	}
}

func TestBrokenShardLeavesOtherGatesUndecided(t *testing.T) {
	f := newFixture()
	f.files["weights/bad.safetensors"] = rawShard(`{}`, 3)
	r := run(t, f.write(t), Options{Profile: toyProfile()})
	for _, id := range []string{"index", "coverage", "ternary", "stored", "config"} {
		g, _ := r.Gate(id)
		if g.Status != report.Undecided || len(g.Notes) == 0 || !strings.Contains(strings.Join(g.Notes, " "), "weights/bad.safetensors") {
			t.Errorf("gate %s: %+v", id, g)
		}
	}
}

func TestGatesExplainThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range All() {
		if seen[g.ID] {
			t.Errorf("gate %s stands twice", g.ID)
		}
		seen[g.ID] = true
		if g.Promise == "" || g.Source == "" || (g.decide == nil) != (g.Elsewhere != "") || g.Example == "" {
			t.Errorf("gate %s lacks a text, or has one too many", g.ID)
		}
		explained, err := Explain(g.ID)
		if err != nil || !strings.Contains(explained, g.Promise) {
			t.Errorf("Explain(%s) = %q, %v", g.ID, explained, err)
		}
	}
	if _, err := Explain("no-such"); err == nil || !strings.Contains(err.Error(), "paths") {
		t.Errorf("an unknown gate: %v", err)
	}
	want := strings.Fields("paths digests files declared size safetensors index coverage ternary stored data lookup text-only script secrets config rebuild")
	if got := decided(); !slices.Equal(got, want) {
		t.Errorf("decided %v", got)
	}
}

func TestTextIsBounded(t *testing.T) {
	f := newFixture()
	for _, name := range f.quant.Names() {
		f.float(name+".side", f.shards[floatShard][norm].dtype, []int64{2})
	}
	r := run(t, f.write(t), Options{Profile: toyProfile()})
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	g, _ := r.Gate("coverage")
	if len(g.Findings) != 27 || !strings.Contains(out.String(), "and 7 more") {
		t.Errorf("%d findings\n%s", len(g.Findings), out.String())
	}
}

// memory is a store for tests: blobs that can be damaged after they were put.
type memory struct {
	mutex sync.Mutex
	blobs map[manifest.Digest][]byte
	tags  map[string]manifest.Descriptor
}

func (m *memory) add(mediaType string, data []byte) manifest.Descriptor {
	d := manifest.DescribeBytes(mediaType, data)
	m.blobs[d.Digest] = data
	return d
}

func (m *memory) Has(_ context.Context, d manifest.Descriptor) (bool, error) {
	return m.blobs[d.Digest] != nil, nil
}

func (m *memory) Open(_ context.Context, d manifest.Descriptor, offset int64) (io.ReadCloser, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	data, ok := m.blobs[d.Digest]
	if !ok {
		return nil, content.ErrNotFound
	}
	return io.NopCloser(content.NewCheckedReader(bytes.NewReader(data[offset:]), d)), nil
}

func (m *memory) Put(context.Context, manifest.Descriptor, content.Source) error {
	return errors.New("not needed here")
}

func (m *memory) Tag(context.Context, manifest.Descriptor, string) error {
	return errors.New("not needed here")
}

func (m *memory) Resolve(_ context.Context, name string) (manifest.Descriptor, error) {
	d, ok := m.tags[name]
	if !ok {
		return d, content.ErrNotFound
	}
	return d, nil
}

// bundle puts a folder into a store: shards as raw layers, all else in a tar.
func bundle(t *testing.T, root string, change func(*manifest.Artifact, *manifest.ModelConfig)) *memory {
	t.Helper()
	m := &memory{blobs: map[manifest.Digest][]byte{}, tags: map[string]manifest.Descriptor{}}
	read := func(f manifest.File) []byte {
		data, err := os.ReadFile(filepath.Join(root, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var artifact manifest.Artifact
	var all, rest []manifest.File
	for _, f := range openFolder(t, root).Files {
		file := f.File
		file.Digest = manifest.DigestBytes(read(file))
		all = append(all, file)
		if !scan.IsShard(file.Path) {
			rest = append(rest, file)
			continue
		}
		m.blobs[file.Digest] = read(file)
		artifact.Layers = append(artifact.Layers, manifest.RawLayer(manifest.KindWeight, file))
	}
	var tar bytes.Buffer
	err := content.WriteTar(&tar, rest, func(f manifest.File) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(read(f))), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	layer := manifest.TarLayer(manifest.KindCode, manifest.DigestBytes(tar.Bytes()), int64(tar.Len()))
	m.blobs[layer.Digest] = tar.Bytes()
	artifact.Layers = append(artifact.Layers, layer)
	artifact.Annotations = map[string]string{manifest.AnnotationSetDigest: manifest.SetDigest(all).String()}
	config := manifest.ModelConfig{ModelFS: manifest.ModelFS{Type: "layers"}}
	for _, l := range artifact.Layers {
		config.ModelFS.DiffIDs = append(config.ModelFS.DiffIDs, l.Digest)
	}
	change(&artifact, &config)
	data, err := config.Encode()
	if err != nil {
		t.Fatal(err)
	}
	artifact.Config = m.add(manifest.MediaTypeConfig, data)
	if data, err = artifact.Encode(); err != nil {
		t.Fatal(err)
	}
	m.tags["toy"] = m.add(manifest.MediaTypeManifest, data)
	return m
}

func verifyBundle(t *testing.T, m *memory, options Options) *report.Report {
	t.Helper()
	tree, err := content.OpenArtifact(t.Context(), m, "toy", content.OriginLayout, "toy")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	r, err := Run(t.Context(), tree, options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestArtifactAndFolderAgree(t *testing.T) {
	root := newFixture().write(t)
	m := bundle(t, root, func(*manifest.Artifact, *manifest.ModelConfig) {})
	folder := run(t, root, Options{Profile: toyProfile()})
	artifact := verifyBundle(t, m, Options{Profile: toyProfile(), Expect: m.tags["toy"].Digest})
	if err := artifact.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text(t, artifact))
	}
	if artifact.Set != folder.Set || artifact.Artifact != m.tags["toy"].Digest.String() || folder.Artifact != "" {
		t.Errorf("sets %s and %s, artifact %s", artifact.Set, folder.Set, artifact.Artifact)
	}
}

func TestDamagedArtifacts(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*manifest.Artifact, *manifest.ModelConfig)
		damage func(*memory)
		names  string
	}{
		{name: "a flipped bit in a shard", names: ternaryShard, damage: func(m *memory) {
			for digest, data := range m.blobs {
				if bytes.Contains(data, []byte(gate0+".codes")) && data[8] == '{' {
					damaged := slices.Clone(data)
					damaged[len(damaged)-1] ^= 1
					m.blobs[digest] = damaged
				}
			}
		}},
		{name: "a diffId of something else", names: "diffId 0", change: func(_ *manifest.Artifact, c *manifest.ModelConfig) {
			c.ModelFS.DiffIDs[0] = manifest.DigestBytes(nil)
		}},
		{name: "a layer without diffId", names: "another number of layers", change: func(_ *manifest.Artifact, c *manifest.ModelConfig) {
			c.ModelFS.DiffIDs = c.ModelFS.DiffIDs[1:]
		}},
		{name: "another set digest", names: manifest.AnnotationSetDigest, change: func(a *manifest.Artifact, _ *manifest.ModelConfig) {
			a.Annotations[manifest.AnnotationSetDigest] = manifest.DigestBytes(nil).String()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := test.change
			if change == nil {
				change = func(*manifest.Artifact, *manifest.ModelConfig) {}
			}
			m := bundle(t, newFixture().write(t), change)
			if test.damage != nil {
				test.damage(m)
			}
			r := verifyBundle(t, m, Options{Profile: toyProfile()})
			v := vector{names: test.names}
			if got := r.Failed(); !slices.Equal(got, []string{"digests"}) {
				t.Fatalf("%v fail\n%s", got, text(t, r))
			}
			v.look(t, r, "digests", report.Error)
		})
	}
}

func TestLimitsOf(t *testing.T) {
	if got := limitsOf(profiles.Profile{Ternary: &profiles.Ternary{}}); got != (report.Limits{}) {
		t.Errorf("a profile without bounds gives %+v", got)
	}
	p := practice()
	p.MaxBytes, p.Load.StartSeconds = 1000, 300
	want := report.Limits{Bytes: 1000, FractionAbove: "95/100", StoredAtMost: "11/10", StartSeconds: 300}
	if got := limitsOf(p); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
