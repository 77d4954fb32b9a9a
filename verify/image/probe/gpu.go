package probe

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"slipway/verify/image"
)

var kernelModule = regexp.MustCompile(`Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)`)

// gpu describes the first NVIDIA device: by nvidia-smi, or by what the driver
// says under /proc where that program is not there.
func (p *prober) gpu(ctx context.Context) {
	if path, ok := p.look("nvidia-smi"); ok {
		out, err := p.run(ctx, path, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits")
		if err == nil {
			p.image.GPU, err = parseQuery(string(out))
		}
		if err == nil {
			return
		}
		p.miss("GPU: ask "+path, err)
	}
	var gpu image.GPU
	if text, ok := p.read("proc/driver/nvidia/version"); ok {
		if m := kernelModule.FindStringSubmatch(text); m != nil {
			gpu.Driver = m[1]
		}
	}
	files, _ := filepath.Glob(filepath.Join(p.root, "proc/driver/nvidia/gpus/*/information"))
	for _, file := range files {
		inside, _ := filepath.Rel(p.root, file)
		text, _ := p.read(inside)
		for line := range strings.Lines(text) {
			if model, ok := strings.CutPrefix(line, "Model:"); ok && gpu.Name == "" {
				gpu.Name = strings.TrimSpace(model)
			}
		}
	}
	if gpu != (image.GPU{}) {
		p.image.GPU = &gpu
	}
}

// parseQuery reads the first line of name, driver version, memory in MiB.
func parseQuery(out string) (*image.GPU, error) {
	line, _, _ := strings.Cut(out, "\n")
	fields := strings.Split(line, ",")
	if len(fields) < 3 {
		return nil, errors.New("no device is listed")
	}
	memory, err := strconv.ParseInt(strings.TrimSpace(fields[len(fields)-1]), 10, 40)
	if err != nil {
		memory = 0 // "[N/A]" where memory is shared
	}
	return &image.GPU{
		Name:   strings.TrimSpace(strings.Join(fields[:len(fields)-2], ",")),
		Driver: strings.TrimSpace(fields[len(fields)-2]), MemoryBytes: memory << 20,
	}, nil
}
