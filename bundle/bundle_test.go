package bundle

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
)

var update = flag.Bool("update", false, "rewrite golden files")

const abacusHCL = `slipway = 1
bundle "abacus" {
  profile = "practice"
}
weights "language" {
  from     = "model"
  manifest = "quantization_manifest.json"
}
files "." {
  from = "extra"
}
provenance {
  logs = ["logs/*.log"]
}
`

// source writes a folder to build from: the trained ternary example with a
// script, a document and a log.
func source(t *testing.T, hcl string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "model"), os.DirFS("../examples/abacus/ternary")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, "model", "bundle.hcl")); err != nil { // the example's own
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"bundle.hcl": hcl, "extra/run.sh": "#!/bin/sh\n", "extra/DATA.md": "# Data\n", "extra/code/a.py": "x = 1\n", "logs/train.log": "done\n",
	} {
		write(t, filepath.Join(folder, name), data)
	}
	if err := os.Chmod(filepath.Join(folder, "extra/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
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

func makePlan(t *testing.T, folder string) (*Plan, error) {
	t.Helper()
	wanted, err := config.LoadBundle(filepath.Join(folder, "bundle.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	profile, _, err := config.LoadProfile(wanted.ProfileSource())
	if err != nil {
		t.Fatal(err)
	}
	found, err := Inspect(t.Context(), wanted, Options{})
	if err != nil {
		return nil, err
	}
	return MakePlan(wanted, profile, found)
}

func mustPlan(t *testing.T, folder string) *Plan {
	t.Helper()
	plan, err := makePlan(t, folder)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestPlanGolden(t *testing.T) {
	plan := mustPlan(t, source(t, abacusHCL))
	compact, err := manifest.EncodeCanonical(plan)
	if err != nil {
		t.Fatal(err)
	}
	got := bytes.ReplaceAll(compact, []byte("},{"), []byte("},\n{"))
	if *update {
		if err := os.WriteFile("testdata/plan.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("plan changed (-want +got):\n%s", diff)
	}
}

// The same input gives the same digest by every way of writing it, whatever
// the times, the umask's work, the folder and the number of workers.
func TestSameInputSameDigest(t *testing.T) {
	var digests []manifest.Digest
	var sets []manifest.Digest
	for i, workers := range []int{1, 7} {
		folder := source(t, abacusHCL)
		err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || i == 0 {
				return err
			}
			mode := os.FileMode(0o600)
			if strings.HasSuffix(name, ".sh") {
				mode = 0o700
			}
			past := time.Unix(1_000_000_000, 0)
			return errors.Join(os.Chmod(name, mode), os.Chtimes(name, past, past))
		})
		if err != nil {
			t.Fatal(err)
		}
		options := Options{Workers: workers}
		plan := mustPlan(t, folder)
		sealed, err := Seal(t.Context(), plan, options)
		if err != nil {
			t.Fatal(err)
		}
		defer sealed.Close()
		out := filepath.Join(t.TempDir(), "out")
		written, err := WriteFolder(t.Context(), plan, out, options)
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		tree, err := content.OpenFolder(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		for _, link := range []bool{false, true} {
			target, err := layout.Create(filepath.Join(t.TempDir(), "layout"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			laid, err := WriteLayout(t.Context(), plan, target, LayoutOptions{Tag: "x", Link: link}, options)
			if err != nil {
				t.Fatal(err)
			}
			defer laid.Close()
			digests = append(digests, laid.Descriptor.Digest)
		}
		digests = append(digests, sealed.Descriptor.Digest, written.Descriptor.Digest)
		sets = append(sets, sealed.SetDigest, written.SetDigest, setOf(t, tree))
	}
	for _, list := range [][]manifest.Digest{digests, sets} {
		for _, d := range list {
			if d != list[0] {
				t.Errorf("digests differ: %v", list)
			}
		}
	}
}

// setOf recomputes a folder's set digest from its bytes.
func setOf(t *testing.T, tree *content.Tree) manifest.Digest {
	t.Helper()
	var files []manifest.File
	for _, f := range tree.Files {
		r, err := tree.Open(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		f.Digest = manifest.DigestBytes(data)
		files = append(files, f.File)
	}
	return manifest.SetDigest(files)
}

// The digest of the repository's own example changes only when the format or
// the example does, and then CHANGELOG.md says so.
func TestAbacusDigestGolden(t *testing.T) {
	sealed, err := Seal(t.Context(), mustPlan(t, ".."), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	want, err := os.ReadFile("testdata/abacus.digest")
	if err != nil && !*update {
		t.Fatal(err)
	}
	got := sealed.Descriptor.Digest.String() + "\n"
	if *update {
		if err := os.WriteFile("testdata/abacus.digest", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(want) {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestSourcesStayAsTheyWere(t *testing.T) {
	folder := source(t, abacusHCL)
	name := filepath.Join(folder, "model", "float-00001.safetensors")
	if err := os.Chmod(name, 0o400); err != nil {
		t.Fatal(err)
	}
	before, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	target, err := layout.Create(filepath.Join(t.TempDir(), "layout"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	plan := mustPlan(t, folder)
	for range 2 {
		laid, err := WriteLayout(t.Context(), plan, target, LayoutOptions{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_ = laid.Close()
	}
	out := filepath.Join(t.TempDir(), "out")
	written, err := WriteFolder(t.Context(), plan, out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = written.Close()
	after, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	if content.StampOf(before) != content.StampOf(after) || before.Mode() != after.Mode() {
		t.Errorf("source changed: %v -> %v, mode %v -> %v", content.StampOf(before), content.StampOf(after), before.Mode(), after.Mode())
	}
	if info, err := os.Lstat(filepath.Join(out, "weights/float-00001.safetensors")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("copy has mode %v (%v)", info.Mode(), err)
	}
}

// What is read again for a tar layer or an upload must be what was hashed.
func TestChangedSinceSealed(t *testing.T) {
	for _, name := range []string{"model/ternary-00001.safetensors", "extra/run.sh"} {
		t.Run(name, func(t *testing.T) {
			folder := source(t, abacusHCL)
			sealed, err := Seal(t.Context(), mustPlan(t, folder), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer sealed.Close()
			data, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-1] ^= 1
			write(t, filepath.Join(folder, name), string(data))
			target, err := layout.Create(filepath.Join(t.TempDir(), "layout"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			_, err = content.Copy(t.Context(), sealed, "", target, "x", content.CopyOptions{})
			if err == nil || !strings.Contains(err.Error(), filepath.Base(name)+" changed since it was hashed") || manifest.Hint(err) != "build again" {
				t.Errorf("error %v, hint %q", err, manifest.Hint(err))
			}
			if names, err := target.Names(); err != nil || len(names) > 0 {
				t.Errorf("tags %v %v", names, err)
			}
		})
	}
}

func TestRefusedInputs(t *testing.T) {
	shard := "model/ternary-00001.safetensors"
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, folder string)
		fault  string
	}{
		{"clean", func(*testing.T, string) {}, ""},
		{"missing shard", func(t *testing.T, f string) { remove(t, f, shard) }, "needs shard " + shard + ", which is not there"},
		{"truncated shard", func(t *testing.T, f string) { truncate(t, f, shard, 1000) }, "read header of " + shard},
		{"cut tail", func(t *testing.T, f string) { truncate(t, f, shard, 1_403_639) }, "read header of " + shard},
		{"empty shard", func(t *testing.T, f string) { truncate(t, f, shard, 0) }, "read header of " + shard},
		{"header of 2^63 bytes", func(t *testing.T, f string) {
			write(t, filepath.Join(f, shard), "\x00\x00\x00\x00\x00\x00\x00\x80{}")
		}, "read header of " + shard},
		{"linked shard", func(t *testing.T, f string) { link(t, f, shard) }, shard + " is a symbolic link"},
		{"linked folder", func(t *testing.T, f string) {
			if err := os.Rename(filepath.Join(f, "extra/code"), filepath.Join(f, "elsewhere")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../elsewhere", filepath.Join(f, "extra/code")); err != nil {
				t.Fatal(err)
			}
		}, "extra/code is a symbolic link"},
		{"weights behind a link", func(t *testing.T, f string) {
			if err := os.Rename(filepath.Join(f, "model"), filepath.Join(f, "real")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("real", filepath.Join(f, "model")); err != nil {
				t.Fatal(err)
			}
		}, "model is a symbolic link"},
		{"folder leads outside", func(t *testing.T, f string) {
			if err := os.RemoveAll(filepath.Join(f, "extra")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(t.TempDir(), filepath.Join(f, "extra")); err != nil {
				t.Fatal(err)
			}
		}, "extra is a symbolic link"},
		{"normal form twins", func(t *testing.T, f string) {
			write(t, filepath.Join(f, "extra/caf\u00e9"), "")
			write(t, filepath.Join(f, "extra/cafe\u0301"), "")
		}, "Unicode form"},
		{"case twins", func(t *testing.T, f string) { write(t, filepath.Join(f, "extra/RUN.SH"), "") }, "differ only in case"},
		{"bad name", func(t *testing.T, f string) { write(t, filepath.Join(f, "extra/a:b"), "") }, "contains a colon"},
		{"reserved name", func(t *testing.T, f string) { write(t, filepath.Join(f, "extra/inventory.json"), "{}") }, "written by slipway"},
		{"damaged manifest", func(t *testing.T, f string) {
			write(t, filepath.Join(f, "model/quantization_manifest.json"), `{"tensors":{},"tensors":{}}`)
		}, "given twice"},
		{"no log", func(t *testing.T, f string) { remove(t, f, "logs/train.log") }, `no file matches "logs/*.log"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := source(t, abacusHCL)
			tc.damage(t, folder)
			_, err := makePlan(t, folder)
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func remove(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, folder, name string, size int64) {
	t.Helper()
	if err := os.Truncate(filepath.Join(folder, name), size); err != nil {
		t.Fatal(err)
	}
}

// link moves a file away and links to it.
func link(t *testing.T, folder, name string) {
	t.Helper()
	away := filepath.Join(t.TempDir(), "blob")
	if err := os.Rename(filepath.Join(folder, name), away); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}

// An interrupted build leaves nothing, and an earlier output as it was.
func TestInterruptedBuild(t *testing.T) {
	folder := source(t, abacusHCL)
	plan := mustPlan(t, folder)
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	first, err := WriteFolder(t.Context(), plan, out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	write(t, filepath.Join(folder, "extra/new.txt"), "new")
	plan = mustPlan(t, folder)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = WriteFolder(ctx, plan, out, Options{Workers: 1, Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "new.txt")); err == nil {
		t.Error("the earlier output changed")
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}

	target, err := layout.Create(filepath.Join(t.TempDir(), "layout"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ctx, cancel = context.WithCancel(t.Context())
	if _, err = WriteLayout(ctx, plan, target, LayoutOptions{Tag: "x"}, Options{Workers: 1, Progress: func(int64) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if names, err := target.Names(); err != nil || len(names) > 0 {
		t.Errorf("tags %v %v", names, err)
	}
}

// A rebuild reads nothing that the cache vouches for, and notices every change.
func TestRebuildTrustsTheCache(t *testing.T) {
	folder := source(t, abacusHCL)
	old := time.Now().Add(-time.Hour)
	cache := content.OpenDigestCache("")
	plan := mustPlan(t, folder)
	sealed, err := Seal(t.Context(), plan, Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	want := sealed.Descriptor.Digest
	_ = sealed.Close()
	// A file with the old times and other bytes: its change time gives it away.
	name := filepath.Join(folder, "model/float-00001.safetensors")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	write(t, name, string(data))
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	again, err := Seal(t.Context(), plan, Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Descriptor.Digest == want {
		t.Error("a changed shard has its old digest")
	}
}
