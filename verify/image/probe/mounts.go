package probe

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/image"
)

// point is a line of /proc/self/mountinfo: a mounted folder and its options,
// its own and those of the file system.
type point struct {
	path    string
	options []string
}

// parseMountinfo reads /proc/self/mountinfo (proc_pid_mountinfo(5)). Of several
// mounts on one folder the last is the one that is seen.
func parseMountinfo(text string) []point {
	var points []point
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(strings.TrimRight(line, "\n"), " - ")
		fields := strings.Fields(before)
		if len(fields) < 6 {
			continue
		}
		options := strings.Split(fields[5], ",")
		if own := strings.Fields(after); len(own) >= 3 {
			options = append(options, strings.Split(own[2], ",")...)
		}
		p := point{path: unescape(fields[4]), options: options}
		points = append(slices.DeleteFunc(points, func(other point) bool { return other.path == p.path }), p)
	}
	return points
}

// unescape reads the octal escapes that the kernel writes for blanks.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// pointOf returns the deepest mount that a path lies on.
func pointOf(points []point, p string) (found point, ok bool) {
	for _, candidate := range points {
		within := candidate.path == "/" || p == candidate.path || strings.HasPrefix(p, candidate.path+"/")
		if within && (!ok || len(candidate.path) > len(found.path)) {
			found, ok = candidate, true
		}
	}
	return found, ok
}

// mounts describes the folders that servers install to, cache in and read from.
// A folder that is no mount of its own is left out where the mount that it lies
// on is described, unless trying shows a difference.
func (p *prober) mounts() {
	text, ok := p.read("proc/self/mountinfo")
	if !ok {
		p.unknown = append(p.unknown, "mounts: /proc/self/mountinfo cannot be read")
	}
	points := parseMountinfo(text)
	folders := []string{"/", "/tmp", "/dev/shm", "/var/tmp", p.image.Home, p.image.Submission}
	if folder := p.environment.get("TMPDIR"); path.IsAbs(folder) {
		folders = append(folders, path.Clean(folder))
	}
	for _, folder := range folders {
		if mount, ok := p.mount(points, folder); ok {
			p.image.Mounts = append(p.image.Mounts, mount)
		}
	}
	slices.SortFunc(p.image.Mounts, func(a, b image.Mount) int { return strings.Compare(a.Path, b.Path) })
}

// mount describes what a folder lies on, under the folder's own name.
func (p *prober) mount(points []point, folder string) (image.Mount, bool) {
	if folder == "" || slices.ContainsFunc(p.image.Mounts, func(m image.Mount) bool { return m.Path == folder }) {
		return image.Mount{}, false
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return image.Mount{}, false // not there
	}
	mount := image.Mount{Path: folder, Bytes: sizeOf(real)}
	on, known := pointOf(points, real)
	if known {
		mount.NoExec, mount.ReadOnly = new(slices.Contains(on.options, "noexec")), new(slices.Contains(on.options, "ro"))
	}
	if folder != "/" { // nothing is written there, not even for a moment
		readOnly, noexec := try(real)
		mount.NoExec, mount.ReadOnly = observed(mount.NoExec, noexec), observed(mount.ReadOnly, readOnly)
	}
	if mount.NoExec == nil && mount.ReadOnly == nil && mount.Bytes == 0 {
		return image.Mount{}, false
	}
	covering, covered := p.image.MountOf(folder)
	if covered && folder != on.path && sameMount(covering, mount) {
		return image.Mount{}, false
	}
	return mount, true
}

func sameMount(a, b image.Mount) bool {
	same := func(x, y *bool) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	return a.Bytes == b.Bytes && same(a.NoExec, b.NoExec) && same(a.ReadOnly, b.ReadOnly)
}

// observed joins what a mount's options say with what was tried: one of them
// suffices for a restriction.
func observed(option, tried *bool) *bool {
	if option == nil || tried != nil && *tried {
		return tried
	}
	return option
}
