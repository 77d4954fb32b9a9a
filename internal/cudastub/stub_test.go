package cudastub

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// compiler skips a test where the shim cannot be compiled.
func compiler(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the trampolines are for linux/amd64")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
}

func TestSymbolList(t *testing.T) {
	names := symbols(symbolFile)
	if len(names) < 150 || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%d names, which must be sorted and differ", len(names))
	}
	if slices.Contains(names, "cuInit") {
		t.Error("cuInit is the loader's")
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "cu") || strings.ContainsAny(name, " \t,") {
			t.Errorf("%q is no function of the driver", name)
		}
	}
}

func TestHeader(t *testing.T) {
	names := []string{"cuCtxGetFlags", "cuMemAlloc_v2", "cuTexRefSetAddress2D_v3"}
	got, err := header([]byte("typedef int other;\n"+firstDeclaration+"\nint cuMemAlloc(void);\n"), names)
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	for _, line := range []string{"#define cuMemAlloc cuMemAlloc_v2\n", "#define cuTexRefSetAddress2D cuTexRefSetAddress2D_v3\n", firstDeclaration + "\nint cuMemAlloc(void);\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in %s", line, text)
		}
	}
	if strings.Contains(text, "other") || strings.Contains(text, "define cuCtxGetFlags") {
		t.Errorf("too much in %s", text)
	}
	if _, err := header([]byte("int x;"), names); err == nil {
		t.Error("a header without the driver's declarations was taken")
	}
}

func TestArchiveIsStable(t *testing.T) {
	compiler(t)
	var archives [2][]byte
	for i := range archives {
		var err error
		if archives[i], err = Ours(nil).compile(t.Context(), t.TempDir(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds differ")
	}
	other, err := Source{strings.Join(symbols(symbolFile)[1:], "\n"), loader, nil}.compile(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(archives[0], other) {
		t.Error("another list gave the same bytes")
	}
}

// driver is a stand-in for libcuda.so.1 with two functions, one of which takes
// more arguments than there are registers for them.
const driver = `
int cuInit(unsigned flags) { return 100 + flags; }
int cuDeviceGetCount(int *count) { *count = 3; return 0; }
int cuMemcpyPeer(long a, long b, long c, long d, long e, long f, long g, long h) { return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h; }
`

const program = `
#include <stdio.h>
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuMemcpyPeer(long a, long b, long c, long d, long e, long f, long g, long h);
int cuCtxSynchronize(void);
int slipway_cuda_initialize(void);
const char *slipway_cuda_problem(void);
int main(void) {
	int count = -1;
	printf("%d %d ", cuInit(0), cuDeviceGetCount(&count));
	int result = slipway_cuda_initialize();
	int then = cuDeviceGetCount(&count);
	printf("%d %d %d %d %d %s\n", result, then, count, cuMemcpyPeer(1, 2, 3, 4, 5, 6, 7, 8), cuCtxSynchronize(), slipway_cuda_problem());
}
`

// A program linked with the archive starts with and without a driver; calls reach
// the driver with their arguments, and functions it lacks say so.
func TestProgramWithAndWithoutDriver(t *testing.T) {
	compiler(t)
	folder := t.TempDir()
	archive, err := Ours(nil).compile(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"libcuda.a": string(archive), "driver.c": driver, "program.c": program} {
		if err := place(filepath.Join(folder, name), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range [][]string{
		{"gcc", "program.c", "-L.", "-lcuda", "-ldl", "-o", "program"},
		{"gcc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"},
	} {
		if err := run(t.Context(), folder, nil, command[0], command[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ name, libraries, want string }{
		{"with", folder, "0 34 100 0 3 204 34 \n"},
		{"without", t.TempDir(), "0 34 -1 34 -1 34 34 libcuda.so.1: cannot open shared object file: No such file or directory\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			command := exec.Command(filepath.Join(folder, "program"))
			command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+tc.libraries)
			got, err := command.Output()
			if err != nil {
				t.Fatal(err)
			}
			if tc.name == "without" && !strings.Contains(string(got), "cannot open") {
				t.Skip("this machine has a driver")
			}
			if string(got) != tc.want {
				t.Errorf("printed %q, want %q", got, tc.want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for flag, want := range map[string]string{
		"-L/a":     "-L/a",
		"-L/a b":   "'-L/a b'",
		"-L/it's":  `"-L/it's"`,
		"-L/a=b.c": "-L/a=b.c",
	} {
		if got := quote(flag); got != want {
			t.Errorf("%q is quoted as %s, want %s", flag, got, want)
		}
	}
}
