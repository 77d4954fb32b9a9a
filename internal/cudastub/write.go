package cudastub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Stub is what a build needs in one folder.
type Stub struct {
	header  []byte // include/cuda.h
	archive []byte // libcuda.a
}

// Make makes the stub with gcc and ar, which work in a temporary folder below the
// one given ("": the system's) and run with the environment; nil is this process's.
func Make(ctx context.Context, source Source, below string, environment []string) (stub Stub, err error) {
	names := symbols(source.Symbols)
	if stub.header, err = header(source.Header, names); err != nil {
		return Stub{}, fmt.Errorf("read the header of %s: %w", Module, err)
	}
	stub.archive, err = source.compile(ctx, below, environment)
	return stub, err
}

// Name names a folder after what goes into it. The go command builds again when
// the flags change and looks neither into libcuda.a nor into cuda.h, so other
// content needs another path.
func (s Stub) Name() string {
	sum := sha256.New()
	sum.Write(s.header)
	sum.Write(s.archive)
	return fmt.Sprintf("cuda-%x", sum.Sum(nil)[:8])
}

// Write puts the stub into a folder. A file that is there with the same bytes
// stays untouched; another is replaced in one step, so that builds at the same
// time never see half of one.
func (s Stub) Write(folder string) error {
	if err := place(filepath.Join(folder, "include", "cuda.h"), s.header); err != nil {
		return err
	}
	return place(filepath.Join(folder, "libcuda.a"), s.archive)
}

// compile returns libcuda.a. The compiler sees names relative to a folder of its
// own and the archive has no times or owners, so the bytes depend on the list,
// the loader and the compiler alone.
func (s Source) compile(ctx context.Context, below string, environment []string) (archive []byte, err error) {
	work, err := os.MkdirTemp(below, "slipway-cuda-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for name, data := range map[string][]byte{"loader.c": s.Loader, "trampolines.s": assembly(symbols(s.Symbols))} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	for _, command := range [][]string{
		{"gcc", "-O2", "-g0", "-Wall", "-Werror", "-fPIC", "-c", "loader.c", "-o", "loader.o"},
		{"gcc", "-c", "trampolines.s", "-o", "trampolines.o"},
		{"ar", "rcsD", "libcuda.a", "loader.o", "trampolines.o"},
	} {
		if err := run(ctx, work, environment, command[0], command[1:]...); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(filepath.Join(work, "libcuda.a"))
}

// run runs a program in a folder; its error has what it complained about.
func run(ctx context.Context, folder string, environment []string, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = folder, environment
	if complaint, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(complaint))
	}
	return nil
}

func place(name string, data []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".partial-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // gone when all went well
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
