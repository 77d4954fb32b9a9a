package image

import (
	"strings"
	"testing"
)

const clean = `{"schema":1,"submission":"/submission","python":{"version":"3.12.3","path":"/opt/venv/bin/python3","headers":false},
"distributions":{"torch":"2.7.0+cu128","transformers":""},"absent":["accelerate"],"programs":{"gcc":false,"bash":true},
"mounts":[{"path":"/","read_only":false},{"path":"/dev/shm","noexec":true,"bytes":67108864},{"path":"/dev","noexec":false}],
"user":12345,"home":"/home/grader","glibc":"2.35","cpus":3.5,"memory_bytes":17179869184,"gpu":{"name":"NVIDIA H100 80GB HBM3","memory_bytes":1}}`

func TestDecode(t *testing.T) {
	got, err := Decode([]byte(clean))
	if err != nil {
		t.Fatal(err)
	}
	if *got.User != 12345 || got.CPUs != 3.5 || *got.Python.Headers || got.GPU.Name != "NVIDIA H100 80GB HBM3" {
		t.Errorf("decoded %+v", got)
	}
}

// Every fault is one change of the clean description.
func TestDecodeFaults(t *testing.T) {
	for _, fault := range []struct{ old, new, want string }{
		{`"schema":1`, `"schema":2`, "schema 2 is not 1"},
		{`"schema":1,`, ``, "schema 0 is not 1"},
		{`"user"`, `"User"`, `"User"`},
		{`"user":12345`, `"user":1,"user":2`, "user"},
		{`"/submission"`, `"submission"`, `submission "submission" is not a clean absolute path`},
		{`"/home/grader"`, `"/home/"`, `home "/home/" is not a clean absolute path`},
		{`"/dev/shm"`, `"/dev/../shm"`, `mount "/dev/../shm" is not a clean absolute path`},
		{`"/dev/shm"`, `"/dev"`, `mount "/dev" is described twice`},
		{`67108864`, `-1`, `mount "/dev/shm" has -1 bytes`},
		{`"3.12.3"`, `"Python 3.12"`, `python version "Python 3.12" is not like "3.12" or "3.12.3"`},
		{`"2.35"`, `"GLIBC_2.35"`, `glibc "GLIBC_2.35" is not like "2.35"`},
		{`3.5`, `-3.5`, "not negative"},
		{`"transformers":""`, `"Typing_Extensions":""`, `distribution "Typing_Extensions" is not in normal form, "typing-extensions"`},
		{`["accelerate"]`, `["Accelerate"]`, `absent distribution "Accelerate" is not in normal form, "accelerate"`},
		{`["accelerate"]`, `["torch"]`, `distribution "torch" is both installed and absent`},
	} {
		if !strings.Contains(clean, fault.old) {
			t.Fatalf("%q is not part of the description", fault.old)
		}
		_, err := Decode([]byte(strings.Replace(clean, fault.old, fault.new, 1)))
		if err == nil || !strings.Contains(err.Error(), fault.want) {
			t.Errorf("%s for %s: error %v, want %q", fault.new, fault.old, err, fault.want)
		}
	}
}

func TestMountOf(t *testing.T) {
	i, err := Decode([]byte(clean))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/": "/", "/tmp/x": "/", "/dev": "/dev", "/dev/null": "/dev", "/dev/shm": "/dev/shm", "/dev/shm/a/b": "/dev/shm", "/dev/shmx": "/dev", "/dev/shm/../x": "/dev",
	} {
		if mount, ok := i.MountOf(path); !ok || mount.Path != want {
			t.Errorf("MountOf(%q) is %q, %v; want %q", path, mount.Path, ok, want)
		}
	}
	if _, ok := (*Image)(nil).MountOf("/tmp"); ok {
		t.Error("a nil image has a mount")
	}
	if _, ok := (&Image{Mounts: []Mount{{Path: "/tmp"}}}).MountOf("/tmpx"); ok {
		t.Error("/tmpx lies on /tmp")
	}
}

func TestInstalled(t *testing.T) {
	i, err := Decode([]byte(clean))
	if err != nil {
		t.Fatal(err)
	}
	complete := *i
	complete.Complete = true
	for _, c := range []struct {
		image            *Image
		name, version    string
		installed, known bool
	}{
		{i, "Torch", "2.7.0+cu128", true, true},
		{i, "transformers", "", true, true},
		{i, "accelerate", "", false, true},
		{i, "jinja2", "", false, false},
		{&complete, "jinja2", "", false, true},
		{nil, "torch", "", false, false},
	} {
		version, installed, known := c.image.Installed(c.name)
		if version != c.version || installed != c.installed || known != c.known {
			t.Errorf("Installed(%q) is %q, %v, %v", c.name, version, installed, known)
		}
	}
}

func TestProgram(t *testing.T) {
	i := &Image{Programs: map[string]bool{"bash": true, "nvcc": false}}
	for name, want := range map[string][2]bool{"bash": {true, true}, "nvcc": {false, true}, "gcc": {false, false}} {
		if present, known := i.Program(name); [2]bool{present, known} != want {
			t.Errorf("Program(%q) is %v, %v", name, present, known)
		}
	}
}

func TestNormalName(t *testing.T) {
	for name, want := range map[string]string{"Flask": "flask", "typing_extensions": "typing-extensions", "a.-_b": "a-b", "ruamel.yaml": "ruamel-yaml"} {
		if got := NormalName(name); got != want {
			t.Errorf("NormalName(%q) is %q, want %q", name, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(clean))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := Decode(data)
		if err == nil && i.Schema != Schema {
			t.Fatalf("decoded %+v", i)
		}
	})
}
