package python

import (
	"slices"
	"strings"
)

// ProgramNeed is a program of the machine that source starts when it runs.
type ProgramNeed struct {
	Program string   // "cc"
	Or      []string // others that serve as well
	Why     string
	Path    string
	Line    int
}

// Programs, with those that serve as well.
var (
	cCompiler   = []string{"cc", "gcc", "clang"} // triton's build.py: CC, else gcc or clang
	cxxCompiler = []string{"c++", "g++", "clang++"}
)

// compilingCalls start a compiler when they, or what they return, first run.
var compilingCalls = []struct {
	call     string
	programs [][]string
	why      string
}{
	{"torch.compile", [][]string{cCompiler}, "torch.compile compiles with Triton, which needs a C compiler"},
	{"triton.jit", [][]string{cCompiler}, "Triton builds its launcher with a C compiler"},
	{"triton.autotune", [][]string{cCompiler}, "Triton builds its launcher with a C compiler"},
	{"cpp_extension.load", [][]string{cxxCompiler, {"ninja"}}, "torch.utils.cpp_extension builds with a C++ compiler and ninja"},
	{"cpp_extension.load_inline", [][]string{cxxCompiler, {"ninja"}}, "torch.utils.cpp_extension builds with a C++ compiler and ninja"},
	{"load_inline", [][]string{cxxCompiler, {"ninja"}}, "torch.utils.cpp_extension builds with a C++ compiler and ninja"},
}

// compilingImports are modules that compile on their first use.
var compilingImports = map[string]struct {
	programs [][]string
	why      string
}{
	"flashinfer": {[][]string{{"ninja"}, {"nvcc"}}, "flashinfer compiles kernels that are not shipped with it, with ninja and nvcc, on first use"},
	"deep_gemm":  {[][]string{{"nvcc"}}, "deep_gemm compiles its kernels with nvcc on first use"},
	"fla":        {[][]string{cCompiler}, "flash-linear-attention runs Triton kernels, whose launcher is built with a C compiler"},
}

// plainBackends of torch.compile compile nothing.
var plainBackends = []string{"eager", "aot_eager", "cudagraphs"}

// Programs lists the compilers that a module's calls and imports start when they
// run, each once.
func Programs(path string, m Module) []ProgramNeed {
	var list []ProgramNeed
	add := func(programs [][]string, why string, line int) {
		for _, p := range programs {
			if !slices.ContainsFunc(list, func(n ProgramNeed) bool { return n.Program == p[0] }) {
				list = append(list, ProgramNeed{Program: p[0], Or: p[1:], Why: why, Path: path, Line: line})
			}
		}
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		for _, k := range compilingCalls {
			if (c.Name == k.call || strings.HasSuffix(c.Name, "."+k.call)) && !compilesNothing(c) && !m.defines[lastPart(c.Name)] {
				add(k.programs, k.why, c.Line)
			}
		}
	}
	for _, i := range m.Imports {
		if k, ok := compilingImports[rootOf(i.Module)]; ok {
			add(k.programs, k.why, i.Line)
		}
	}
	return list
}

func compilesNothing(c *Call) bool {
	backend, _ := c.Keyword("backend")
	disable, _ := c.Keyword("disable")
	return backend.Literal != nil && slices.Contains(plainBackends, *backend.Literal) || disable.Text == "True"
}
