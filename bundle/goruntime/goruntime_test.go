package goruntime

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/manifest"
)

const goMod = "module slipway\n\ngo 1.26.0\n\ntoolchain go1.26.8\n"

func tiny() fstest.MapFS {
	return fstest.MapFS{
		"go.mod":                   {Data: []byte(goMod)},
		"go.sum":                   {},
		"LICENSE":                  {Data: []byte("free")},
		"runtime/main.go":          {Data: []byte("package main\n\nimport \"slipway/manifest\"\n\nfunc main() { println(manifest.Name) }\n")},
		"runtime/main_test.go":     {Data: []byte("package main\n")},
		"runtime/runtime.lock":     {Data: []byte(`{"schema":1,"builds":[]}`)},
		"runtime/testdata/a.json":  {Data: []byte("{}")},
		"manifest/name.go":         {Data: []byte("package manifest\n\nconst Name = \"slipway\"\n")},
		"manifest/testdata/b.json": {Data: []byte("{}")},
	}
}

func tinySource(t *testing.T) *Source {
	t.Helper()
	s, err := ReadSource(tiny())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSourceRoundTrip(t *testing.T) {
	s := tinySource(t)
	var names []string
	for _, f := range s.Files {
		names = append(names, f.Path)
	}
	if want := []string{"LICENSE", "go.mod", "go.sum", "manifest/name.go", "runtime/main.go"}; !slices.Equal(names, want) {
		t.Errorf("source %v, want %v", names, want)
	}
	tar, err := s.Tar()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadSourceTar(bytes.NewReader(tar), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if back.Digest != s.Digest || !bytes.Equal(back.Lock, s.Lock) || len(back.Lock) == 0 {
		t.Errorf("came back as %s with lock %q", back.Digest, back.Lock)
	}
	if _, err := ReadSourceTar(bytes.NewReader(tar), 100); err == nil {
		t.Error("the limit does not hold")
	}
	if _, err := ReadSourceTar(strings.NewReader("no tar at all, but long enough to be read as one"), 1<<20); err == nil {
		t.Error("anything is taken for a tar")
	}
}

func TestSourceMustBeWhole(t *testing.T) {
	for _, missing := range []string{"go.mod", "go.sum", "runtime/main.go"} {
		from := tiny()
		delete(from, missing)
		if _, err := ReadSource(from); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func tools(t *testing.T, extra ...string) Tools {
	t.Helper()
	command, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	return Tools{Go: command, Environment: append(os.Environ(), extra...), CacheDir: t.TempDir()}
}

// The same source gives the same bytes whatever the machine's Go settings, the
// folder and the cache.
func TestBuildIsReproducible(t *testing.T) {
	first, err := Build(t.Context(), tinySource(t), "cpu", manifest.Digest{}, tools(t))
	if err != nil {
		t.Fatal(err)
	}
	dirty := tools(t, "GOFLAGS=-tags=other -race", "GOEXPERIMENT=rangefunc", "GOARCH=arm64", "CGO_ENABLED=1", "GOAMD64=v4", "GOCACHE="+filepath.Join(t.TempDir(), "cache"))
	second, err := Build(t.Context(), tinySource(t), "cpu", manifest.Digest{}, dirty)
	if err != nil {
		t.Fatal(err)
	}
	if first.Locked.Runtime != second.Locked.Runtime || first.Locked.Size == 0 || first.Path == second.Path {
		t.Errorf("built %+v and %+v", first, second)
	}
}

// The cache and a release's own runtimes answer only with the wanted bytes.
func TestBuildTakesOnlyTheWantedBytes(t *testing.T) {
	with := tools(t)
	first, err := Build(t.Context(), tinySource(t), "cpu", manifest.Digest{}, with)
	if err != nil {
		t.Fatal(err)
	}
	want := first.Locked.Runtime
	noGo := Tools{CacheDir: with.CacheDir}
	again, err := Build(t.Context(), tinySource(t), "cpu", want, noGo)
	if err != nil || again.Locked.Runtime != want {
		t.Errorf("from the cache: %+v %v", again, err)
	}
	good, err := os.ReadFile(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first.Path, append(good, 'x'), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), tinySource(t), "cpu", want, noGo); !errors.Is(err, ErrTools) {
		t.Errorf("a damaged file of the cache was taken: %v", err)
	}
	if mended, err := Build(t.Context(), tinySource(t), "cpu", want, with); err != nil || mended.Locked.Runtime != want {
		t.Errorf("built again: %+v %v", mended, err)
	}
	release := Tools{CacheDir: t.TempDir(), Prebuilt: map[string][]byte{"cpu": good}}
	if carried, err := Build(t.Context(), tinySource(t), "cpu", want, release); err != nil || carried.Locked.Runtime != want {
		t.Errorf("carried: %+v %v", carried, err)
	}
	release.Prebuilt["cpu"] = []byte("another")
	release.CacheDir = t.TempDir()
	if _, err := Build(t.Context(), tinySource(t), "cpu", want, release); !errors.Is(err, ErrTools) {
		t.Errorf("another runtime was taken for the wanted one: %v", err)
	}
}

// What the machine lacks is no fault of the source.
func TestMissingModulesAreTheMachinesFault(t *testing.T) {
	needy := tiny()
	needy["go.mod"] = &fstest.MapFile{Data: []byte(goMod + "\nrequire example.org/absent v1.0.0\n")}
	needy["go.sum"] = &fstest.MapFile{Data: []byte("example.org/absent v1.0.0 h1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA=\nexample.org/absent v1.0.0/go.mod h1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaA=\n")}
	needy["runtime/main.go"] = &fstest.MapFile{Data: []byte("package main\n\nimport _ \"example.org/absent\"\n\nfunc main() {}\n")}
	source, err := ReadSource(needy)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), source, "cpu", manifest.Digest{}, tools(t, "GOPROXY=off")); !errors.Is(err, ErrTools) {
		t.Errorf("error %v, want ErrTools", err)
	}
}

func TestBuildFailuresNameThem(t *testing.T) {
	broken := tiny()
	broken["runtime/main.go"] = &fstest.MapFile{Data: []byte("package main\n\nfunc main() { undefined() }\n")}
	source, err := ReadSource(broken)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		source *Source
		device string
		tools  Tools
		fault  string
	}{
		{"compile error", source, "cpu", tools(t), "undefined: undefined"},
		{"no go", tinySource(t), "cpu", Tools{CacheDir: t.TempDir()}, "there is no go command"},
		{"no cache", tinySource(t), "cpu", Tools{}, "no cache folder"},
		{"device", tinySource(t), "cuda", tools(t), `device "cuda" is not built yet`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Build(t.Context(), tc.source, tc.device, manifest.Digest{}, tc.tools)
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	built := Built{Locked: Locked{
		Device: "cpu", Target: target, Go: "go1.26.8", Flags: flags,
		Source: manifest.DigestBytes([]byte("source")), Runtime: manifest.DigestBytes([]byte("runtime")), Size: 7,
	}}
	for _, tc := range []struct {
		name   string
		change func(*Locked)
		fault  string
	}{
		{"same", func(*Locked) {}, ""},
		{"source", func(l *Locked) { l.Source = manifest.DigestBytes(nil) }, "is of source"},
		{"go", func(l *Locked) { l.Go = "go1.26.7" }, "was made by go1.26.7"},
		{"flags", func(l *Locked) { l.Flags = []string{"-x"} }, "was made by"},
		{"bytes", func(l *Locked) { l.Runtime = manifest.DigestBytes(nil) }, "differs from runtime.lock"},
		{"device", func(l *Locked) { l.Device = "cuda" }, "has no build for device cpu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lock Lock
			locked := built.Locked
			tc.change(&locked)
			lock.Set(locked)
			data, err := lock.Encode()
			if err != nil {
				t.Fatal(err)
			}
			read, err := DecodeLock(data)
			if err != nil {
				t.Fatal(err)
			}
			err = built.Check(read)
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault) || !strings.Contains(manifest.Hint(err), "--relock")) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func FuzzDecodeLock(f *testing.F) {
	f.Add([]byte(`{"schema":1,"builds":[{"device":"cpu","target":"t","go":"g","gcc":"","flags":["-x"],"source":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","runtime":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":1}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		lock, err := DecodeLock(in)
		if err != nil {
			return
		}
		data, err := lock.Encode()
		if err != nil {
			return // a digest that was left out has no text form
		}
		if _, err := DecodeLock(data); err != nil && !strings.Contains(err.Error(), "digest") && !strings.Contains(err.Error(), "null") {
			t.Fatalf("own encoding refused: %v\n%s", err, data)
		}
	})
}

func TestRebuild(t *testing.T) {
	source := tinySource(t)
	with := tools(t)
	built, err := Build(t.Context(), source, "cpu", manifest.Digest{}, with)
	if err != nil {
		t.Fatal(err)
	}
	tar, err := source.Tar()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := Rebuild(t.Context(), bytes.NewReader(tar), with)
	if err != nil || digest != built.Locked.Runtime {
		t.Errorf("rebuilt %s (%v), built %s", digest, err, built.Locked.Runtime)
	}
	other := tiny()
	other["manifest/name.go"] = &fstest.MapFile{Data: []byte("package manifest\n\nconst Name = \"another\"\n")}
	changed, err := ReadSource(other)
	if err != nil {
		t.Fatal(err)
	}
	if tar, err = changed.Tar(); err != nil {
		t.Fatal(err)
	}
	if digest, err = Rebuild(t.Context(), bytes.NewReader(tar), with); err != nil || digest == built.Locked.Runtime {
		t.Errorf("other source gives %s (%v)", digest, err)
	}
}

// All that a rebuild writes, the go command's own too, is in folders of whoever
// asked for it, which removes them should this program be killed.
func TestRebuildWorksInTheGivenFolders(t *testing.T) {
	work := t.TempDir()
	system := filepath.Join(t.TempDir(), "not there")
	given := tools(t, "TMPDIR="+system, "GOFLAGS=")
	var made []string
	given.WorkFolder = func(pattern string) (string, func() error, error) {
		folder := filepath.Join(work, pattern)
		made = append(made, pattern)
		return folder, func() error { return os.RemoveAll(folder) }, os.Mkdir(folder, 0o700)
	}
	t.Setenv("TMPDIR", system)
	tar, err := tinySource(t).Tar()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Rebuild(t.Context(), bytes.NewReader(tar), given); err != nil {
		t.Fatal(err)
	}
	if want := []string{"slipway-rebuild-*", "slipway-runtime-*"}; !slices.Equal(made, want) {
		t.Errorf("asked for %v, want %v", made, want)
	}
	if entries, err := os.ReadDir(work); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}
