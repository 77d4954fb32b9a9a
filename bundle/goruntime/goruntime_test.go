package goruntime

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/internal/cudastub"
	"slipway/manifest"
)

const goMod = "module slipway\n\ngo 1.26.0\n\ntoolchain go1.26.8\n"

// lockOf is a lock of one build.
func lockOf(device string) string {
	zeros := "sha256:" + strings.Repeat("0", 64)
	return `{"schema":1,"builds":[{"device":"` + device + `","target":"t","go":"g","gcc":"another","flags":[],"source":"` + zeros + `","runtime":"` + zeros + `","size":1}]}`
}

func tiny() fstest.MapFS {
	return fstest.MapFS{
		"go.mod":                   {Data: []byte(goMod)},
		"go.sum":                   {},
		"LICENSE":                  {Data: []byte("free")},
		"runtime/main.go":          {Data: []byte("package main\n\nimport \"slipway/manifest\"\n\nfunc main() { println(manifest.Name) }\n")},
		"runtime/main_test.go":     {Data: []byte("package main\n")},
		"runtime/runtime.lock":     {Data: []byte(lockOf("cpu"))},
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
	build := Locked{Device: "cpu", Flags: flags, Source: s.Digest, Runtime: s.Digest}
	tar, err := s.Tar(build)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadSourceTar(bytes.NewReader(tar), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := back.build(); back.Digest != s.Digest || err != nil || locked.Device != "cpu" || locked.Runtime != s.Digest {
		t.Errorf("came back as %s with lock %q: %v", back.Digest, back.Lock, err)
	}
	if _, err := ReadSourceTar(bytes.NewReader(tar), 100); err == nil {
		t.Error("the limit does not hold")
	}
	if _, err := ReadSourceTar(strings.NewReader("no tar at all, but long enough to be read as one"), 1<<20); err == nil {
		t.Error("anything is taken for a tar")
	}
	s.add("runtime/zz/model.safetensors", []byte("weights"))
	if tar, err = s.Tar(build); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSourceTar(bytes.NewReader(tar), 1<<20); err == nil || !strings.Contains(err.Error(), "runtime/zz/model.safetensors is no source") {
		t.Errorf("a source with weights in it: %v", err)
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
	release := Tools{CacheDir: t.TempDir(), Prebuilt: fstest.MapFS{"serve-cpu": {Data: good}}}
	if carried, err := Build(t.Context(), tinySource(t), "cpu", want, release); err != nil || carried.Locked.Runtime != want {
		t.Errorf("carried: %+v %v", carried, err)
	}
	release.Prebuilt = fstest.MapFS{"serve-cpu": {Data: []byte("another")}}
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
		{"device", tinySource(t), "tpu", tools(t), `device "tpu" is unknown`},
		{"no gcc", tinySource(t), "cuda", Tools{Go: tools(t).Go, CacheDir: t.TempDir()}, "there is no gcc"},
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
		{"bytes", func(l *Locked) { l.Runtime = manifest.DigestBytes(nil) }, "differs from runtime.lock: want"},
		{"bytes and gcc", func(l *Locked) { l.Runtime, l.GCC = manifest.DigestBytes(nil), "gcc 12" }, "which was made with gcc 12"},
		{"gcc", func(l *Locked) { l.GCC = "gcc 12" }, ""}, // of the cache
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
	tar, err := source.Tar(built.Locked)
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
	if tar, err = changed.Tar(built.Locked); err != nil {
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
	tar, err := tinySource(t).Tar(Locked{Device: "cpu", Flags: flags, Source: manifest.DigestBytes(nil), Runtime: manifest.DigestBytes(nil)})
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

// With CUDA a C compiler and the driver's stub take part; the bytes still depend on
// neither folder nor settings, and the lock says with what they were made.
func TestCUDABuildIsReproducible(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("it needs gcc on linux/amd64")
	}
	from := tiny()
	from["runtime/main.go"].Data = append([]byte("//go:build !cuda\n\n"), from["runtime/main.go"].Data...)
	from["runtime/cuda.go"] = &fstest.MapFile{Data: []byte("//go:build cuda\n\npackage main\n\n// #cgo LDFLAGS: -lcuda\n// #include <cuda.h>\nimport \"C\"\n\nfunc main() { println(C.cuInit(0)) }\n")}
	for _, name := range []string{cudastub.SymbolsPath, cudastub.LoaderPath, "go.sum"} {
		data, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		from[name] = &fstest.MapFile{Data: data}
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	from["go.mod"] = &fstest.MapFile{Data: []byte(goMod + "\nrequire " + regexp.MustCompile(`gorgonia\.org/cu v\S+`).FindString(string(mod)) + "\n")}
	source, err := ReadSource(from)
	if err != nil {
		t.Fatal(err)
	}
	first := tools(t)
	first.GCC = gcc
	second := tools(t, "CGO_CFLAGS=-O0 -g", "CGO_ENABLED=0", "CC=false", "GOFLAGS=-race", "TMPDIR="+t.TempDir())
	second.GCC = gcc
	second.WorkFolder = func(pattern string) (string, func() error, error) {
		folder := filepath.Join(t.TempDir(), "with a space")
		return folder, func() error { return nil }, os.Mkdir(folder, 0o700)
	}
	var builds []*Built
	for _, with := range []Tools{first, second} {
		built, err := Build(t.Context(), source, "cuda", manifest.Digest{}, with)
		if errors.Is(err, ErrTools) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		builds = append(builds, built)
	}
	a, b := builds[0].Locked, builds[1].Locked
	if a.Runtime != b.Runtime || a.GCC != b.GCC || !strings.Contains(a.GCC, "gcc") || !strings.Contains(a.GCC, " ld ") || !slices.Contains(a.Flags, "-tags=cuda") {
		t.Errorf("built %+v and %+v", a, b)
	}
	if said, err := exec.Command(builds[0].Path).CombinedOutput(); err != nil || string(said) != "0\n" {
		t.Errorf("without a driver it says %q: %v", said, err)
	}
	tar, err := source.Tar(a)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := Rebuild(t.Context(), bytes.NewReader(tar), first); err != nil || digest != a.Runtime {
		t.Errorf("rebuilt %s (%v), built %s", digest, err, a.Runtime)
	}
	a.GCC, a.Runtime = "another gcc", manifest.DigestBytes(nil)
	if tar, err = source.Tar(a); err != nil {
		t.Fatal(err)
	}
	if _, err := Rebuild(t.Context(), bytes.NewReader(tar), first); !errors.Is(err, ErrTools) || !strings.Contains(err.Error(), "another gcc") {
		t.Errorf("other bytes from another compiler: %v", err)
	}
}

// What runs bundles may have an older C library than what builds them.
func TestCheckLibraries(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("it needs gcc")
	}
	for source, want := range map[string]string{
		"int main(void) { return 0; }":                                                                                 "",
		"#include <math.h>\nint main(int n, char **a) { return (int)sin(n); }":                                         "",
		"__asm__(\".symver strlcpy,strlcpy@GLIBC_2.38\");\nextern int strlcpy(); int main(void) { return strlcpy(); }": "GLIBC_2.38",
		"int inflate(); int main(void) { return inflate(); }":                                                          "needs the library libother.so",
	} {
		folder := t.TempDir()
		for name, text := range map[string]string{"a.c": source, "other.c": "int inflate() { return 0; }", "new.c": "int strlcpy() { return 0; }", "map": "GLIBC_2.38 { strlcpy; };"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var data []byte
		for _, args := range [][]string{
			{"-shared", "-fPIC", "-Wl,-soname,libother.so", "other.c", "-o", "libother.so"},
			{"-shared", "-fPIC", "-Wl,-soname,libdl.so.2", "-Wl,--version-script=map", "new.c", "-o", "libnew.so"},
			{"-fno-builtin", "a.c", "-o", "a", "-L.", "-Wl,--as-needed", "-lother", "-lnew", "-lm"},
		} {
			command := exec.Command(gcc, args...)
			command.Dir = folder
			if said, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, said)
			}
		}
		if data, err = os.ReadFile(filepath.Join(folder, "a")); err != nil {
			t.Fatal(err)
		}
		if err := checkLibraries(data); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}
