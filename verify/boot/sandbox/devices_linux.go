package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mountDevices makes /dev: the devices that every container has, /dev/shm, and
// NVIDIA's where asked.
func (p *rootPlan) mountDevices(missing map[string]string) error {
	dev := newRoot + "/dev"
	if err := mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755,size=64k"); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bindFile(oldRoot+"/dev/"+name, dev+"/"+name); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, dev+"/"+name); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm"} {
		if err := os.Mkdir(dev+"/"+name, 0o755); err != nil {
			return err
		}
	}
	if err := mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return err
	}
	if err := mountVolume(dev+"/shm", p.Shared); err != nil {
		return err
	}
	if p.GPU {
		p.bindGPU(missing)
	}
	return nil
}

// bindFile mounts a file at a path that is made for it.
func bindFile(from, to string) error {
	if err := os.WriteFile(to, nil, 0o644); err != nil {
		return err
	}
	return mount(from, to, "", unix.MS_BIND, "")
}

// bindGPU mounts NVIDIA's devices. What stands in the way is noted: the
// rehearsal then runs without.
func (p *rootPlan) bindGPU(missing map[string]string) {
	nodes, _ := filepath.Glob(oldRoot + "/dev/nvidia*") // the pattern is well formed
	capabilities, _ := filepath.Glob(oldRoot + "/dev/nvidia-caps/*")
	found := false
	for _, node := range append(nodes, capabilities...) {
		info, err := os.Stat(node)
		if err != nil || info.Mode()&os.ModeDevice == 0 {
			continue
		}
		to := newRoot + strings.TrimPrefix(node, oldRoot)
		err = os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil {
			err = bindFile(node, to)
		}
		if err != nil {
			missing[GPUDevices] = err.Error()
			return
		}
		found = true
	}
	if !found {
		missing[GPUDevices] = "no /dev/nvidia* on this machine"
	}
}

// driverPatterns are the files of NVIDIA's user-space driver, which belong to the
// machine's kernel module and not to an image.
var driverPatterns = []string{
	"/usr/lib/*-linux-gnu/libcuda.so*", "/usr/lib/*-linux-gnu/libnvidia-*.so*", "/usr/lib/*-linux-gnu/libcudadebugger.so*",
	"/usr/local/nvidia/lib64/*.so*", "/usr/local/nvidia/bin/nvidia-smi",
	"/usr/lib64/libcuda.so*", "/usr/lib64/libnvidia-*.so*", "/usr/bin/nvidia-smi",
}

// bindDriver mounts the driver's files of this machine in another root that lacks
// them. It needs a root in which files can be made.
func (p *rootPlan) bindDriver() error {
	for _, pattern := range driverPatterns {
		files, _ := filepath.Glob(oldRoot + pattern) // the patterns are well formed
		for _, from := range files {
			to := newRoot + strings.TrimPrefix(from, oldRoot)
			if _, err := os.Lstat(to); err == nil {
				continue
			}
			if err := p.copyDriver(from, to); err != nil {
				return fmt.Errorf("bring in %s: %w", inside(from), err)
			}
		}
	}
	return nil
}

func (p *rootPlan) copyDriver(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if target, err := os.Readlink(from); err == nil {
		return os.Symlink(target, to)
	}
	return bindFile(from, to)
}
