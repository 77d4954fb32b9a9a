package installed

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// folder makes a folder of packages of every kind of metadata.
func folder(t *testing.T) string {
	t.Helper()
	at := t.TempDir()
	for name, text := range map[string]string{
		"pillow-11.0.0.dist-info/RECORD":                "PIL/__init__.py,sha256=x,1\nPIL/Image.py,,\n\"pillow.libs/a,b.so\",,\n../../../bin/pil,,\n/etc/pil,,\npillow-11.0.0.dist-info/RECORD,,\n",
		"PIL/__init__.py":                               "",
		"PIL/Image.py":                                  "",
		"pillow.libs/a,b.so":                            "",
		"Brotli-1.0.9.egg-info/top_level.txt":           "_brotli\nbrotli\n",
		"brotli.py":                                     "",
		"_brotli.cpython-311-x86_64-linux-gnu.so":       "",
		"six-1.16.0-py3.11.egg-info":                    "Name: six\n", // a file
		"six.py":                                        "",
		"__pycache__/six.cpython-311.pyc":               "",
		"nvidia_cublas_cu12-12.8.dist-info/RECORD":      "nvidia/__init__.py,,\nnvidia/cublas/lib/libcublas.so.12,,\n",
		"nvidia_cudnn_cu12-9.8.dist-info/RECORD":        "nvidia/__init__.py,,\nnvidia/cudnn/lib/libcudnn.so.9,,\n",
		"ruamel.yaml-0.17.egg-info/installed-files.txt": "../ruamel/yaml/__init__.py\nPKG-INFO\n",
		"cryptography.egg-info/top_level.txt":           "cryptography\n",
		"cryptography/__init__.py":                      "",
		"unmanaged/__init__.py":                         "",
		"torch-2.7.0+cu128.dist-info/METADATA":          "Name: torch\n",
		"torch/__init__.py":                             "",
	} {
		file := filepath.Join(at, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func TestOnly(t *testing.T) {
	f := Read(folder(t))
	if got, want := f.Distributions(), []string{"brotli", "cryptography", "nvidia-cublas-cu12", "nvidia-cudnn-cu12", "pillow", "ruamel-yaml", "six", "torch"}; !slices.Equal(got, want) {
		t.Errorf("distributions %q, want %q", got, want)
	}
	for _, test := range []struct{ of, want []string }{
		{nil, nil},
		{[]string{"unmanaged"}, nil},
		{[]string{"pillow"}, []string{"PIL", "pillow-11.0.0.dist-info", "pillow.libs"}},
		{[]string{"brotli"}, []string{"Brotli-1.0.9.egg-info", "_brotli.cpython-311-x86_64-linux-gnu.so", "brotli.py"}},
		{[]string{"six", "cryptography"}, []string{"cryptography", "cryptography.egg-info", "six-1.16.0-py3.11.egg-info", "six.py"}},
		{[]string{"ruamel-yaml"}, []string{"ruamel", "ruamel.yaml-0.17.egg-info"}},
		{[]string{"torch"}, []string{"torch", "torch-2.7.0+cu128.dist-info"}},
		{[]string{"nvidia-cublas-cu12"}, []string{"nvidia/cublas", "nvidia_cublas_cu12-12.8.dist-info"}},
		{[]string{"nvidia-cublas-cu12", "nvidia-cudnn-cu12"}, []string{"nvidia", "nvidia_cublas_cu12-12.8.dist-info", "nvidia_cudnn_cu12-9.8.dist-info"}},
	} {
		if got := f.Only(func(name string) bool { return slices.Contains(test.of, name) }); !slices.Equal(got, test.want) {
			t.Errorf("of %q alone are %q, want %q", test.of, got, test.want)
		}
	}
}

func TestOwners(t *testing.T) {
	f := Read(folder(t))
	for file, want := range map[string][]string{
		"PIL/Image.py":                            {"pillow"},
		"PIL/__pycache__/Image.cpython-311.pyc":   {"pillow"},
		"PIL/not/listed.so":                       {"pillow"},
		"six.py":                                  {"six"},
		"__pycache__/six.cpython-311.pyc":         {"six"},
		"_brotli.cpython-311-x86_64-linux-gnu.so": {"brotli"},
		"nvidia/cublas/lib/libcublas.so.12":       {"nvidia-cublas-cu12"},
		"nvidia/__init__.py":                      {"nvidia-cublas-cu12", "nvidia-cudnn-cu12"},
		"unmanaged/__init__.py":                   nil,
		"sixth.py":                                nil,
	} {
		if got := f.Owners(file); !slices.Equal(got, want) {
			t.Errorf("%s is of %q, want %q", file, got, want)
		}
	}
}

func TestReadNothing(t *testing.T) {
	if f := Read(filepath.Join(t.TempDir(), "missing")); f.Distributions() != nil || f.Owners("x.py") != nil {
		t.Errorf("%+v", f)
	}
}

// What is left out of a sandbox lies in the folder, whatever a RECORD says.
func FuzzRecorded(f *testing.F) {
	f.Add([]byte("a/b.py,sha256=x,1\n\"c,d.py\",,\n../../e,,\n/f,,\na/../../g,,\n,,\n\"h"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range recorded(data) {
			if !filepath.IsLocal(file) || file == "." || file != filepath.Clean(file) {
				t.Errorf("%q", file)
			}
		}
	})
}
