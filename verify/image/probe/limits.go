package probe

import (
	"path"
	"strconv"
	"strings"
)

// limits reads the processors and the memory that a process has here: those of
// the machine, or less where control groups say so.
func (p *prober) limits() {
	if n, err := processors(); err != nil {
		p.miss("cpus", err)
	} else {
		p.image.CPUs = float64(n)
	}
	if text, ok := p.read("proc/meminfo"); ok {
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
				kibibytes, _ := strconv.ParseInt(fields[1], 10, 52)
				p.image.MemoryBytes = kibibytes << 10
			}
		}
	}
	if p.image.MemoryBytes == 0 {
		p.unknown = append(p.unknown, "memory: /proc/meminfo has no MemTotal")
	}
	groups, _ := p.read("proc/self/cgroup")
	for _, folder := range groupFolders(groups, "cpu") {
		p.limitCPUs(folder)
	}
	for _, folder := range groupFolders(groups, "memory") {
		p.limitMemory(folder)
	}
}

// groupFolders returns the folders of the control groups that govern a resource,
// from this process's up to the root, of both versions: /proc/self/cgroup has
// lines ID:CONTROLLERS:PATH, and version 2 has no controllers in its line
// (cgroups(7)). A container may see its own group as the root.
func groupFolders(groups, controller string) []string {
	var folders []string
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !path.IsAbs(parts[2]) {
			continue
		}
		base := "sys/fs/cgroup"
		if parts[1] != "" {
			listed := "," + parts[1] + ","
			if !strings.Contains(listed, ","+controller+",") {
				continue
			}
			base = path.Join(base, controller)
		}
		for group := path.Clean(parts[2]); ; group = path.Dir(group) {
			folders = append(folders, path.Join(base, group))
			if group == "/" {
				break
			}
		}
	}
	return folders
}

// limitCPUs reads a quota in microseconds of a period: cpu.max of version 2,
// cpu.cfs_quota_us and cpu.cfs_period_us of version 1.
func (p *prober) limitCPUs(folder string) {
	quota, period := "", ""
	if text, ok := p.read(path.Join(folder, "cpu.max")); ok {
		quota, period, _ = strings.Cut(strings.TrimSpace(text), " ")
	} else {
		quota, _ = p.read(path.Join(folder, "cpu.cfs_quota_us"))
		period, _ = p.read(path.Join(folder, "cpu.cfs_period_us"))
	}
	of, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	in, periodErr := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err == nil && periodErr == nil && of > 0 && in > 0 && (p.image.CPUs == 0 || of/in < p.image.CPUs) {
		p.image.CPUs = of / in
	}
}

func (p *prober) limitMemory(folder string) {
	for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
		text, ok := p.read(path.Join(folder, file))
		limit, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if ok && err == nil && limit > 0 && (p.image.MemoryBytes == 0 || limit < p.image.MemoryBytes) {
			p.image.MemoryBytes = limit
		}
	}
}
