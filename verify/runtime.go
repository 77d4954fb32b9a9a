package verify

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/scan"
)

// The two files that carry a vendored runtime; gate rebuild compares them.
const (
	runtimeProgram = "runtime/serve"
	runtimeSource  = "runtime/source.tar"
)

// runtimePackage is what the go command writes into the runtime as its path.
const runtimePackage = "slipway/runtime"

// Bounds of the two files: several times what they have.
const (
	maxProgramBytes = 32 << 20
	maxSourceBytes  = 16 << 20
)

// Runtime is a pair of files that is known to belong together.
type Runtime struct {
	Program manifest.Digest // of runtime/serve
	Source  manifest.Digest // of runtime/source.tar
}

// vendored is what looking at the two files of a vendored runtime gave.
type vendored struct {
	known   bool   // it is one of Options.Runtimes
	program string // why runtime/serve cannot be the runtime, or ""
	source  string // the same of runtime/source.tar
}

// readRuntime looks at a vendored runtime; nil where there is no program, or it
// is no executable. Of one that is not known its form is all that can be told
// without building it.
func readRuntime(ctx context.Context, tree *content.Tree, options Options, facts map[string]*scan.File) *vendored {
	program, source := facts[runtimeProgram], facts[runtimeSource]
	if program == nil || program.Err != nil || !bytes.HasPrefix(program.Head, []byte(elf.ELFMAG)) {
		return nil
	}
	if source == nil || source.Err != nil {
		return &vendored{program: unfit(ctx, tree, runtimeProgram, maxProgramBytes, unfitProgram)}
	}
	if options.Runtimes != nil && slices.Contains(options.Runtimes(), Runtime{program.Digest, source.Digest}) {
		return &vendored{known: true}
	}
	return &vendored{
		program: unfit(ctx, tree, runtimeProgram, maxProgramBytes, unfitProgram),
		source:  unfit(ctx, tree, runtimeSource, maxSourceBytes, unfitSource),
	}
}

// unfit reads a file of at most limit bytes and says what look says of it.
func unfit(ctx context.Context, tree *content.Tree, p string, limit int64, look func([]byte) string) string {
	file, _ := tree.Lookup(p)
	if file.Size > limit {
		return fmt.Sprintf("it has more than %d bytes", limit)
	}
	source, err := tree.Open(ctx, file)
	if err != nil {
		return err.Error()
	}
	defer source.Close()
	data := make([]byte, file.Size)
	if _, err := io.ReadFull(source, data); err != nil {
		return err.Error()
	}
	return look(data)
}

// unfitProgram says why bytes cannot be the runtime: it is an executable for
// linux/amd64 that the go command built of the runtime's package, and ends where
// its own tables say.
func unfitProgram(data []byte) string {
	executable, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return "it is no ELF executable: " + err.Error()
	}
	if executable.Machine != elf.EM_X86_64 || executable.Type != elf.ET_EXEC && executable.Type != elf.ET_DYN {
		return fmt.Sprintf("it is %s for %s", executable.Type, executable.Machine)
	}
	if tail := int64(len(data)) - endOf(executable); tail > 0 {
		return fmt.Sprintf("%d bytes come after the end that its own tables give", tail)
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return "the go command did not build it"
	}
	if info.Path != runtimePackage {
		return "it was built of package " + manifest.Clip(info.Path)
	}
	return ""
}

// tables is up to how many bytes the table of sections takes, which may be the
// last part of a file.
const tables = 16 << 10

// endOf returns where an executable's last part ends at the latest.
func endOf(executable *elf.File) int64 {
	end := uint64(0)
	for _, part := range executable.Progs {
		end = max(end, part.Off+part.Filesz)
	}
	for _, section := range executable.Sections {
		if section.Type != elf.SHT_NOBITS {
			end = max(end, section.Offset+section.FileSize)
		}
	}
	return int64(min(end, maxProgramBytes)) + tables
}

// sourceExtensions are those of the files that the runtime is built from.
var sourceExtensions = []string{".go", ".s", ".c", ".h", ".cu", ".cuh", ".mod", ".sum", ".lock"}

// sourceNames are the names of its other files.
var sourceNames = []string{"LICENSE", "checksums", "symbols.txt"}

// compiledKernels is where the kernels lie that go into the CUDA build compiled:
// NAME.TARGET of a NAME.cu in the folder above.
const compiledKernels = "runtime/kernels/cuda/build/"

// unfitSource says why bytes cannot be the source of the runtime: it is a tar in
// the bundle format's form, of sources alone, with what every build needs.
func unfitSource(data []byte) (why string) {
	files := map[string][]byte{}
	if err := content.ReadTar(data, func(p string, data []byte) { files[p] = data }); err != nil {
		return "it is no archive of sources: " + err.Error()
	}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if !isSource(p, files) {
			return manifest.Clip(p) + " in it is no source"
		}
	}
	for _, needed := range []string{"go.mod", "go.sum", "runtime/main.go", "runtime/runtime.lock"} {
		if files[needed] == nil {
			return "it is not the source of the runtime"
		}
	}
	return ""
}

// isSource reports whether a file of the archive is text that the runtime is
// built from, or a kernel compiled of such.
func isSource(p string, files map[string][]byte) bool {
	if compiled, ok := strings.CutPrefix(p, compiledKernels); ok && (path.Ext(p) == ".ptx" || path.Ext(p) == ".cubin") {
		name, _, _ := strings.Cut(compiled, ".")
		_, ok = files[path.Dir(path.Dir(p))+"/"+name+".cu"]
		return ok
	}
	known := slices.Contains(sourceExtensions, path.Ext(p)) || slices.Contains(sourceNames, path.Base(p))
	return known && utf8.Valid(files[p]) && !bytes.ContainsRune(files[p], 0)
}
