// Package image describes the machine that a grader starts a submission on: its
// Python and what is installed there, its mounts, its user, its programs. What a
// description does not say is unknown, never absent: a check that needs it stays
// undecided or warns. Descriptions are trusted inputs; one that came with a
// submission is not evidence about it.
package image

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
)

// Schema is the version of the file format.
const Schema = 1

// Image is one description. Every field may be missing.
type Image struct {
	Schema        int               `json:"schema"`
	Description   string            `json:"description,omitempty"`
	Submission    string            `json:"submission,omitempty"` // where submissions lie: "/submission"
	Python        *Python           `json:"python,omitempty"`
	Distributions map[string]string `json:"distributions,omitempty"`          // installed, by normalised name; "" where the version is unknown
	Absent        []string          `json:"absent,omitempty"`                 // distributions known not to be installed, by normalised name
	Complete      bool              `json:"distributions_complete,omitempty"` // no other distribution is installed
	Programs      map[string]bool   `json:"programs,omitempty"`               // by name: whether PATH has it, as "gcc": false
	Mounts        []Mount           `json:"mounts,omitempty"`
	User          *int              `json:"user,omitempty"` // numeric id
	Home          string            `json:"home,omitempty"`
	Glibc         string            `json:"glibc,omitempty"` // "2.35"
	CPUs          float64           `json:"cpus,omitempty"`
	MemoryBytes   int64             `json:"memory_bytes,omitempty"`
	GPU           *GPU              `json:"gpu,omitempty"`
}

// Python is the interpreter that python3 starts.
type Python struct {
	Version string `json:"version"`           // "3.12" or "3.12.3"
	Path    string `json:"path,omitempty"`    // "/opt/venv/bin/python3"
	Headers *bool  `json:"headers,omitempty"` // whether Python.h is there, which compilers of extensions need
}

// GPU is the accelerator. MemoryBytes is that of one device.
type GPU struct {
	Name        string `json:"name,omitempty"`
	Driver      string `json:"driver,omitempty"`
	MemoryBytes int64  `json:"memory_bytes,omitempty"`
}

// Mount is what is known of a mounted folder. NoExec and ReadOnly are nil where
// unknown; Bytes is its size, 0 where unknown.
type Mount struct {
	Path     string `json:"path"`
	NoExec   *bool  `json:"noexec,omitempty"`
	ReadOnly *bool  `json:"read_only,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
}

// Decode reads a description strictly.
func Decode(data []byte) (*Image, error) {
	var i Image
	if err := manifest.DecodeStrict(data, &i); err != nil {
		return nil, err
	}
	if i.Schema != Schema {
		return nil, fmt.Errorf("schema %d is not %d", i.Schema, Schema)
	}
	if err := i.check(); err != nil {
		return nil, err
	}
	return &i, nil
}

// check refuses values that lookups would miss in silence.
func (i *Image) check() error {
	for _, place := range []struct{ what, path string }{{"submission", i.Submission}, {"home", i.Home}} {
		if place.path != "" && !isCleanAbsolute(place.path) {
			return fmt.Errorf("%s %q is not a clean absolute path", place.what, manifest.Clip(place.path))
		}
	}
	seen := map[string]bool{}
	for _, m := range i.Mounts {
		switch {
		case !isCleanAbsolute(m.Path):
			return fmt.Errorf("mount %q is not a clean absolute path", manifest.Clip(m.Path))
		case seen[m.Path]:
			return fmt.Errorf("mount %q is described twice", manifest.Clip(m.Path))
		case m.Bytes < 0:
			return fmt.Errorf("mount %q has %d bytes", manifest.Clip(m.Path), m.Bytes)
		}
		seen[m.Path] = true
	}
	if i.Python != nil && !pythonVersion.MatchString(i.Python.Version) {
		return fmt.Errorf("python version %q is not like \"3.12\" or \"3.12.3\"", manifest.Clip(i.Python.Version))
	}
	if i.Glibc != "" && !glibcVersion.MatchString(i.Glibc) {
		return fmt.Errorf("glibc %q is not like \"2.35\"", manifest.Clip(i.Glibc))
	}
	if i.CPUs < 0 || i.MemoryBytes < 0 || i.GPU != nil && i.GPU.MemoryBytes < 0 {
		return errors.New("cpus, memory_bytes and the GPU's memory_bytes are not negative")
	}
	return i.checkDistributions()
}

var (
	pythonVersion = regexp.MustCompile(`^\d+\.\d+(\.\d+\S*)?$`)
	glibcVersion  = regexp.MustCompile(`^\d+\.\d+$`)
)

func (i *Image) checkDistributions() error {
	for _, name := range slices.Sorted(maps.Keys(i.Distributions)) {
		if name == "" || NormalName(name) != name {
			return fmt.Errorf("distribution %q is not in normal form, %q", manifest.Clip(name), manifest.Clip(NormalName(name)))
		}
	}
	for _, name := range i.Absent {
		if name == "" || NormalName(name) != name {
			return fmt.Errorf("absent distribution %q is not in normal form, %q", manifest.Clip(name), manifest.Clip(NormalName(name)))
		}
		if _, ok := i.Distributions[name]; ok {
			return fmt.Errorf("distribution %q is both installed and absent", manifest.Clip(name))
		}
	}
	return nil
}

func isCleanAbsolute(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }

// Installed says whether a distribution is installed, by any spelling of its
// name, and its version, "" where unknown. Where the description does not say,
// known is false. A nil image describes nothing.
func (i *Image) Installed(name string) (version string, installed, known bool) {
	if i == nil {
		return "", false, false
	}
	name = NormalName(name)
	if version, installed = i.Distributions[name]; installed {
		return version, true, true
	}
	return "", false, i.Complete || slices.Contains(i.Absent, name)
}

// Program says whether PATH has a program. Where the description does not say,
// known is false. A nil image describes nothing.
func (i *Image) Program(name string) (present, known bool) {
	if i == nil {
		return false, false
	}
	present, known = i.Programs[name]
	return present, known
}

// MountOf returns the described mount that an absolute path lies on, the deepest
// one; ok is false where none is described. A nil image describes nothing.
func (i *Image) MountOf(p string) (mount Mount, ok bool) {
	if i == nil {
		return Mount{}, false
	}
	p = path.Clean(p)
	for _, m := range i.Mounts {
		within := m.Path == "/" || p == m.Path || strings.HasPrefix(p, m.Path+"/")
		if within && (!ok || len(m.Path) > len(mount.Path)) {
			mount, ok = m, true
		}
	}
	return mount, ok
}

// NormalName returns the normal form of a distribution's name: lower case, runs
// of "-", "_" and "." as one "-" (PEP 503).
func NormalName(name string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(name) {
		if r == '_' || r == '.' {
			r = '-'
		}
		if r == '-' && strings.HasSuffix(out.String(), "-") {
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
