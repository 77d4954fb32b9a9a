package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Merge adds what more says to what is known and returns both together. Where
// they disagree, what is known stays and a line says so.
func Merge(known, more *Image) (Image, []string) {
	m := &merging{}
	out := *known
	out.Schema = Schema
	out.Submission = keep(m, "submission", known.Submission, more.Submission)
	out.Home = keep(m, "home", known.Home, more.Home)
	out.Glibc = keep(m, "glibc", known.Glibc, more.Glibc)
	out.CPUs = keep(m, "cpus", known.CPUs, more.CPUs)
	out.MemoryBytes = keep(m, "memory_bytes", known.MemoryBytes, more.MemoryBytes)
	out.User = keepPointer(m, "user", known.User, more.User)
	out.Python = m.python(known.Python, more.Python)
	out.GPU = m.gpu(known.GPU, more.GPU)
	out.Mounts = m.mounts(known.Mounts, more.Mounts)
	out.Programs = maps.Clone(known.Programs)
	for _, name := range slices.Sorted(maps.Keys(more.Programs)) {
		present, isKnown := known.Programs[name]
		switch {
		case !isKnown && out.Programs == nil:
			out.Programs = map[string]bool{name: more.Programs[name]}
		case !isKnown:
			out.Programs[name] = more.Programs[name]
		case present != more.Programs[name]:
			m.disagree("program "+name, present, more.Programs[name])
		}
	}
	m.distributions(&out, known, more)
	return out, m.disagreements
}

type merging struct{ disagreements []string }

func (m *merging) disagree(what string, known, more any) {
	m.disagreements = append(m.disagreements, fmt.Sprintf("%s: %v is known, not %v", what, known, more))
}

// keep returns the value that is known; the zero value is not.
func keep[T comparable](m *merging, what string, known, more T) T {
	var unknown T
	switch {
	case known == unknown:
		return more
	case more != unknown && more != known:
		m.disagree(what, known, more)
	}
	return known
}

func keepPointer[T comparable](m *merging, what string, known, more *T) *T {
	switch {
	case known == nil:
		return more
	case more != nil && *more != *known:
		m.disagree(what, *known, *more)
	}
	return known
}

func (m *merging) python(known, more *Python) *Python {
	if known == nil || more == nil {
		return keepPointer(m, "python", known, more)
	}
	out := *known
	switch { // 3.12 and 3.12.3 agree, and the second says more
	case strings.HasPrefix(more.Version, known.Version+"."):
		out.Version = more.Version
	case !strings.HasPrefix(known.Version, more.Version+"."):
		out.Version = keep(m, "python version", known.Version, more.Version)
	}
	out.Path = keep(m, "python path", known.Path, more.Path)
	out.Headers = keepPointer(m, "python headers", known.Headers, more.Headers)
	return &out
}

func (m *merging) gpu(known, more *GPU) *GPU {
	if known == nil || more == nil {
		return keepPointer(m, "gpu", known, more)
	}
	return &GPU{
		Name:        keep(m, "GPU name", known.Name, more.Name),
		Driver:      keep(m, "GPU driver", known.Driver, more.Driver),
		MemoryBytes: keep(m, "GPU memory_bytes", known.MemoryBytes, more.MemoryBytes),
	}
}

func (m *merging) mounts(known, more []Mount) []Mount {
	out := slices.Clone(known)
	for _, mount := range more {
		i := slices.IndexFunc(out, func(k Mount) bool { return k.Path == mount.Path })
		if i < 0 {
			out = append(out, mount)
			continue
		}
		out[i].NoExec = keepPointer(m, "mount "+mount.Path+" noexec", out[i].NoExec, mount.NoExec)
		out[i].ReadOnly = keepPointer(m, "mount "+mount.Path+" read_only", out[i].ReadOnly, mount.ReadOnly)
		out[i].Bytes = keep(m, "mount "+mount.Path+" bytes", out[i].Bytes, mount.Bytes)
	}
	slices.SortStableFunc(out, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func (m *merging) distributions(out, known, more *Image) {
	out.Distributions, out.Absent = maps.Clone(known.Distributions), slices.Clone(known.Absent)
	for _, name := range slices.Sorted(maps.Keys(more.Distributions)) {
		version, installed, isKnown := known.Installed(name)
		switch {
		case isKnown && !installed:
			m.disagree("distribution "+name, "its absence", "that it is installed")
		case installed:
			out.Distributions[name] = keep(m, "version of "+name, version, more.Distributions[name])
		case out.Distributions == nil:
			out.Distributions = map[string]string{name: more.Distributions[name]}
		default:
			out.Distributions[name] = more.Distributions[name]
		}
	}
	for _, name := range more.Absent {
		switch _, installed, isKnown := known.Installed(name); {
		case installed:
			m.disagree("distribution "+name, "that it is installed", "its absence")
		case !isKnown:
			out.Absent = append(out.Absent, name)
		}
	}
	slices.Sort(out.Absent)
	if !more.Complete || known.Complete {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(known.Distributions)) {
		if _, there := more.Distributions[name]; !there {
			m.disagree("distribution "+name, "that it is installed", "its absence")
			return
		}
	}
	out.Complete = true
}
