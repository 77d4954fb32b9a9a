// Package stamp describes the compiled kernels of a folder: of each output its
// digest, the flags and the compiler that made it, and the digests of the
// source and the headers from which it was made. The description stands beside
// the outputs; where it differs from one made anew, a source or a flag has
// changed and its output has not, or the reverse.
package stamp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
)

// Folder is where the outputs stand in the kernels' folder; File is the
// description's name in it.
const (
	Folder = "build"
	File   = Folder + "/checksums"
)

// Target is one way in which every source is compiled.
type Target struct {
	Suffix string // of outputs
	Flags  []string
}

// Targets are machine code for Hopper GPUs, and PTX from which the drivers of
// other cards, from compute capability 8.0 on, make theirs.
var Targets = []Target{
	{".sm_90a.cubin", []string{"-cubin", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a"}},
	{".compute_80.ptx", []string{"-ptx", "-std=c++17", "-arch=compute_80"}},
}

// Output returns the path of a source's output.
func (t Target) Output(source string) string {
	return Folder + "/" + strings.TrimSuffix(source, ".cu") + t.Suffix
}

// Sources lists the files that are compiled, in order.
func Sources(folder fs.FS) ([]string, error) {
	sources, err := fs.Glob(folder, "*.cu")
	if err == nil && len(sources) == 0 {
		err = errors.New("no file *.cu")
	}
	return sources, err
}

const compilerLine = "compiler "

// Compiler returns the compiler that a description names.
func Compiler(description []byte) (string, error) {
	for line := range strings.Lines(string(description)) {
		if compiler, ok := strings.CutPrefix(line, compilerLine); ok {
			return strings.TrimSpace(compiler), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q", File, compilerLine)
}

// Describe returns the description of the outputs that stand in folder.
func Describe(folder fs.FS, compiler string) ([]byte, error) {
	sources, err := Sources(folder)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s%s\n", compilerLine, compiler)
	for _, source := range sources {
		inputs := []string{source}
		if err := include(folder, source, &inputs); err != nil {
			return nil, err
		}
		for _, target := range Targets {
			fmt.Fprintf(&text, "\nflags %s\n", strings.Join(target.Flags, " "))
			for _, name := range append([]string{target.Output(source)}, inputs...) {
				data, err := fs.ReadFile(folder, name)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), name)
			}
		}
	}
	return []byte(text.String()), nil
}

var includeLine = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)

// include appends the headers of a file, and theirs, each once.
func include(folder fs.FS, name string, inputs *[]string) error {
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		return err
	}
	for _, match := range includeLine.FindAllSubmatch(data, -1) {
		header := path.Join(path.Dir(name), string(match[1]))
		if slices.Contains(*inputs, header) {
			continue
		}
		*inputs = append(*inputs, header)
		if err := include(folder, header, inputs); err != nil {
			return err
		}
	}
	return nil
}

// Check compares the outputs of folder with the description beside them.
func Check(folder fs.FS) error {
	written, err := fs.ReadFile(folder, File)
	if err != nil {
		return err
	}
	compiler, err := Compiler(written)
	if err != nil {
		return err
	}
	found, err := Describe(folder, compiler)
	if err != nil {
		return err
	}
	if line, differ := firstDifference(string(found), string(written)); differ {
		err := fmt.Errorf("%s disagrees with the files it describes: %q is not written there", File, line)
		return manifest.WithHint(err, "compile the kernels anew: go run ./internal/generate/kernels")
	}
	return noneBeside(folder)
}

func firstDifference(found, written string) (line string, differ bool) {
	lines := strings.Split(written, "\n")
	for i, line := range strings.Split(found, "\n") {
		if i >= len(lines) || lines[i] != line {
			return line, true
		}
	}
	return "", found != written
}

// noneBeside refuses outputs that have lost their source.
func noneBeside(folder fs.FS) error {
	sources, err := Sources(folder)
	if err != nil {
		return err
	}
	known := []string{File}
	for _, source := range sources {
		for _, target := range Targets {
			known = append(known, target.Output(source))
		}
	}
	names, err := fs.Glob(folder, Folder+"/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s is the output of no source", name)
		}
	}
	return nil
}
