// Package cudastub makes what a program that uses gorgonia.org/cu is compiled and
// linked against where there is no package of NVIDIA's: a cuda.h, and a libcuda.a
// that loads the driver when the program asks for a device. The same list of
// functions, loader, header and compiler give the same bytes. Only linux/amd64.
package cudastub

import (
	"bytes"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
)

// Module is the module whose header and calls the stub is made for.
const Module = "gorgonia.org/cu"

// HeaderPath is where the module has the driver's header, preprocessed.
const HeaderPath = "cmd/genlib/cuda.h"

// Where the stub's source stands in this repository.
const (
	SymbolsPath = "internal/cudastub/shim/symbols.txt"
	LoaderPath  = "internal/cudastub/shim/loader.c"
)

//go:embed shim/symbols.txt
var symbolFile string

//go:embed shim/loader.c
var loader []byte

// Source is what a stub is made of.
type Source struct {
	Symbols string // the driver's functions, one a line, sorted
	Loader  []byte // C: finds the driver and points the functions at it
	Header  []byte // the driver's header as Module carries it
}

// Ours is the source in this version of the repository.
func Ours(header []byte) Source { return Source{symbolFile, loader, header} }

// Environment returns the variables of a cgo build against a stub's folder. They
// come before cu's own flags, so that a CUDA toolkit on the machine is not used.
func Environment(folder string) []string {
	return []string{
		"CGO_ENABLED=1",
		"CGO_CFLAGS=-O2 -g0 " + quote("-I"+filepath.Join(folder, "include")) + " " + quote("-ffile-prefix-map="+folder+"=/cuda"),
		"CGO_LDFLAGS=" + quote("-L"+folder),
	}
}

// quote quotes a flag as the go command splits such variables.
func quote(flag string) string {
	if strings.ContainsAny(flag, " \t'\"") {
		if strings.Contains(flag, "'") {
			return `"` + flag + `"`
		}
		return "'" + flag + "'"
	}
	return flag
}

// symbols returns the names of the list, in its order: lines that are empty or
// begin with # are left out.
func symbols(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			names = append(names, name)
		}
	}
	return names
}

// assembly returns the trampolines for amd64: each name jumps through its slot,
// so that the arguments stay in the registers and on the stack where the caller
// put them, and the driver's function returns to the caller. A slot begins at
// a function that returns CUDA_ERROR_STUB_LIBRARY.
func assembly(names []string) []byte {
	var text bytes.Buffer
	text.WriteString("\t.section .note.GNU-stack,\"\",@progbits\n\t.text\n")
	text.WriteString("missing:\n\tendbr64\n\tmovl $34, %eax\n\tret\n")
	for i, name := range names {
		fmt.Fprintf(&text, "\t.globl %[1]s\n\t.type %[1]s, @function\n%[1]s:\n\tendbr64\n\tjmp *slipway_cuda_slots+%[2]d(%%rip)\n\t.size %[1]s, .-%[1]s\n", name, 8*i)
	}
	text.WriteString("\t.data\n\t.balign 8\n\t.globl slipway_cuda_slots\n\t.hidden slipway_cuda_slots\nslipway_cuda_slots:\n")
	for range names {
		text.WriteString("\t.quad missing\n")
	}
	text.WriteString("\t.section .rodata\n\t.globl slipway_cuda_names\n\t.hidden slipway_cuda_names\nslipway_cuda_names:\n")
	for _, name := range names {
		fmt.Fprintf(&text, "\t.asciz %q\n", name)
	}
	text.WriteString("\t.byte 0\n")
	return text.Bytes()
}

// firstDeclaration is where the driver's declarations begin in the header that
// gorgonia.org/cu carries; what stands before it are the C library's.
const firstDeclaration = "typedef uint32_t cuuint32_t;"

// header makes a cuda.h of the preprocessed one that gorgonia.org/cu carries for
// its own generator. Preprocessing has removed the macros. Those that cu uses
// are put back: the two of texture references, and one for every function with
// a current form, without which its first form would be called.
func header(preprocessed []byte, names []string) ([]byte, error) {
	start := bytes.Index(preprocessed, []byte(firstDeclaration))
	if start < 0 {
		return nil, fmt.Errorf("no %q in it", firstDeclaration)
	}
	var text bytes.Buffer
	text.WriteString("#pragma once\n#include <stdint.h>\n#include <stdlib.h>\n")
	text.WriteString("#define CU_TRSF_READ_AS_INTEGER 1\n#define CU_TRSF_NORMALIZED_COORDINATES 2\n")
	for _, name := range names {
		for _, form := range []string{"_v2", "_v3"} {
			if first, ok := strings.CutSuffix(name, form); ok {
				fmt.Fprintf(&text, "#define %s %s\n", first, name)
			}
		}
	}
	text.Write(preprocessed[start:])
	return text.Bytes(), nil
}
