package probe

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/verify/image"
)

// machine is a prober of a made-up machine: files by path below its root, and a
// folder of programs in its PATH.
func machine(t *testing.T, files map[string]string) *prober {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o755
			text = strings.ReplaceAll(text, "ROOT", root)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	variables := []string{"PATH=/nowhere:" + filepath.Join(root, "bin"), "HOME=" + root}
	return &prober{root: root, environment: Environment{Variables: variables}, image: &image.Image{Schema: image.Schema}}
}

func TestRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	home := t.TempDir()
	got, unknown := Read(t.Context(), Environment{Variables: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, Submission: home})
	data, err := manifest.EncodeCanonical(got)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := image.Decode(data); err != nil {
		t.Fatalf("%s: %v (unknown: %v)", data, err, unknown)
	}
	if *got.User != os.Getuid() || got.Home != home || got.Submission != home || got.CPUs <= 0 || got.MemoryBytes <= 0 {
		t.Errorf("%s", data)
	}
	if mount, ok := got.MountOf(home); !ok || mount.NoExec == nil || mount.ReadOnly == nil || *mount.ReadOnly {
		t.Errorf("the mount of HOME is %+v, %v", mount, ok)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("left in HOME: %v, %v", left, err)
	}
	if line, err := got.Line(image.LineLimit); err != nil || len(line) > image.LineLimit {
		t.Errorf("line of %d bytes: %v", len(line), err)
	}
}

func TestPython(t *testing.T) {
	p := machine(t, map[string]string{
		"include/Python.h":              "",
		"a/torch-2.7.0+cu128.dist-info": "", "a/Typing_Extensions-4.12.2.dist-info": "", "a/torch/x": "",
		"b/torch-1.0.dist-info": "", "b/PyYAML-6.0.1-py3.12.egg-info": "", "b/not-a-version.dist-info": "", "b/x-1.dist-info.bak": "",
		"bin/python3": "#!/bin/sh\necho a line of sitecustomize\necho '{\"version\":\"3.12.3\",\"path\":\"/opt/venv/bin/python3\",\"folders\":[\"ROOT/a\",\"ROOT/b\",\"ROOT/absent.zip\"],\"include\":\"ROOT/include\"}'\n",
	})
	p.python(t.Context())
	if len(p.unknown) > 0 {
		t.Fatal(p.unknown)
	}
	if got := *p.image.Python; got.Version != "3.12.3" || got.Path != "/opt/venv/bin/python3" || got.Headers == nil || !*got.Headers {
		t.Errorf("python %+v", got)
	}
	want := map[string]string{"torch": "2.7.0+cu128", "typing-extensions": "4.12.2", "pyyaml": "6.0.1"}
	if !reflect.DeepEqual(p.image.Distributions, want) || !p.image.Complete {
		t.Errorf("distributions %v, complete %v", p.image.Distributions, p.image.Complete)
	}
	if !slices.Contains(p.image.Absent, "accelerate") || slices.Contains(p.image.Absent, "torch") {
		t.Errorf("absent %v", p.image.Absent)
	}
}

// Where Python does not answer, nothing is claimed about it.
func TestPythonUnknown(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"none":     {"", "python: there is no python3 in PATH"},
		"fails":    {"#!/bin/sh\nexit 3\n", "exit status 3"},
		"silent":   {"#!/bin/sh\n", "answer of"},
		"nonsense": {"#!/bin/sh\necho '{}'\n", "has no version"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if c.script != "" {
				files["bin/python3"] = c.script
			}
			p := machine(t, files)
			p.python(t.Context())
			if p.image.Python != nil || p.image.Distributions != nil || p.image.Absent != nil || p.image.Complete {
				t.Errorf("image %+v", p.image)
			}
			if len(p.unknown) != 1 || !strings.Contains(p.unknown[0], c.want) {
				t.Errorf("unknown %q, want %q", p.unknown, c.want)
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	p := machine(t, map[string]string{"bin/gcc": "x", "bin/git/x": "", "other/nvcc": "x"})
	p.programs()
	for name, want := range map[string]bool{"gcc": true, "git": false, "nvcc": false, "ninja": false} {
		if got, known := p.image.Program(name); got != want || !known {
			t.Errorf("program %s: %v, known %v", name, got, known)
		}
	}
}

const mountinfo = `22 1 0:20 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/a
30 22 0:30 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k
31 22 0:31 / /submission ro,relatime - 9p none rw
32 22 0:32 / /data rw - ext4 /dev/sdb ro
33 22 0:33 / /with\040blank rw master:2 propagate_from:1 - tmpfs none rw
34 22 0:34 / /dev/shm rw,noexec - tmpfs again rw
nonsense
`

func TestMountinfo(t *testing.T) {
	points := parseMountinfo(mountinfo)
	var paths []string
	for _, p := range points {
		paths = append(paths, p.path)
	}
	if want := []string{"/", "/submission", "/data", "/with blank", "/dev/shm"}; !slices.Equal(paths, want) {
		t.Fatalf("mounts %q, want %q", paths, want)
	}
	for path, want := range map[string]struct {
		on     string
		option string
	}{"/tmp": {"/", "relatime"}, "/dev/shm/x": {"/dev/shm", "noexec"}, "/submission": {"/submission", "ro"}, "/data/x": {"/data", "ro"}, "/databases": {"/", "rw"}} {
		if got, ok := pointOf(points, path); !ok || got.path != want.on || !slices.Contains(got.options, want.option) {
			t.Errorf("%s lies on %+v", path, got)
		}
	}
	if _, ok := pointOf(nil, "/tmp"); ok {
		t.Error("a mount was made up")
	}
}

func TestObserved(t *testing.T) {
	for _, c := range []struct{ option, tried, want *bool }{
		{nil, nil, nil}, {new(true), nil, new(true)}, {new(false), new(true), new(true)}, {new(true), new(false), new(true)}, {nil, new(false), new(false)}, {new(false), nil, new(false)},
	} {
		if got := observed(c.option, c.tried); !reflect.DeepEqual(got, c.want) {
			t.Errorf("observed(%v, %v) = %v", c.option, c.tried, got)
		}
	}
}

func TestLimits(t *testing.T) {
	const mem = "MemTotal:       16384 kB\nMemFree: 1 kB\n"
	for name, c := range map[string]struct {
		files  map[string]string
		cpus   float64 // 0: those of the machine
		memory int64
	}{
		"none": {map[string]string{"proc/meminfo": mem}, 0, 16 << 20},
		"version 2": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.max": "50000 100000\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1048576\n"}, 0.5, 1 << 20},
		"version 2 in a container": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/cpu.max": "25000 100000", "sys/fs/cgroup/memory.max": "2097152"}, 0.25, 2 << 20},
		"version 1": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "4:cpu,cpuacct:/job\n3:memory:/job\n2:cpuset:/\n",
			"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "30000\n", "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4194304\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0.3, 4 << 20},
		"version 1 without": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "4:cpu:/\n3:memory:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0, 16 << 20},
		"more than there is": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "99999999999"}, 0, 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := machine(t, c.files)
			p.limits()
			if c.cpus == 0 {
				n, err := processors()
				if err != nil {
					t.Fatal(err)
				}
				c.cpus = float64(n)
			}
			if p.image.CPUs != c.cpus || p.image.MemoryBytes != c.memory {
				t.Errorf("%v processors, %d bytes; want %v, %d", p.image.CPUs, p.image.MemoryBytes, c.cpus, c.memory)
			}
		})
	}
	p := machine(t, nil)
	p.limits()
	if p.image.MemoryBytes != 0 || len(p.unknown) != 1 {
		t.Errorf("memory %d, unknown %q", p.image.MemoryBytes, p.unknown)
	}
}

func TestGlibc(t *testing.T) {
	p := machine(t, map[string]string{"lib/x86_64-linux-gnu/libc.so.6": "\x7fELF\x00GNU C Library (Ubuntu GLIBC 2.39-0ubuntu8.4) stable release version 2.39.\n\x00"})
	if p.glibc(); p.image.Glibc != "2.39" || len(p.unknown) > 0 {
		t.Errorf("glibc %q, unknown %q", p.image.Glibc, p.unknown)
	}
	p = machine(t, map[string]string{"lib64/libc.so.6": "musl"})
	if p.glibc(); p.image.Glibc != "" || len(p.unknown) != 1 {
		t.Errorf("another library: glibc %q, unknown %q", p.image.Glibc, p.unknown)
	}
}

func TestGPU(t *testing.T) {
	driver := map[string]string{
		"proc/driver/nvidia/version":                       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n",
		"proc/driver/nvidia/gpus/0000:00:04.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n",
	}
	p := machine(t, driver)
	if p.gpu(t.Context()); p.image.GPU == nil || *p.image.GPU != (image.GPU{Name: "NVIDIA H100 80GB HBM3", Driver: "550.54.15"}) {
		t.Errorf("by the driver: %+v", p.image.GPU)
	}
	driver["bin/nvidia-smi"] = "#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 550.54.15, 81559'\necho 'NVIDIA H100 80GB HBM3, 550.54.15, 81559'\n"
	p = machine(t, driver)
	if p.gpu(t.Context()); p.image.GPU == nil || *p.image.GPU != (image.GPU{Name: "NVIDIA H100 80GB HBM3", Driver: "550.54.15", MemoryBytes: 81559 << 20}) {
		t.Errorf("by nvidia-smi: %+v", p.image.GPU)
	}
	driver["bin/nvidia-smi"] = "#!/bin/sh\necho no devices; exit 6\n"
	p = machine(t, driver)
	if p.gpu(t.Context()); p.image.GPU == nil || p.image.GPU.MemoryBytes != 0 || len(p.unknown) != 1 {
		t.Errorf("a failing nvidia-smi: %+v, %q", p.image.GPU, p.unknown)
	}
	p = machine(t, nil)
	if p.gpu(t.Context()); p.image.GPU != nil {
		t.Errorf("without one: %+v", p.image.GPU)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add(mountinfo)
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, p := range parseMountinfo(text) {
			if seen[p.path] {
				t.Fatalf("%q twice", p.path)
			}
			seen[p.path] = true
		}
	})
}
