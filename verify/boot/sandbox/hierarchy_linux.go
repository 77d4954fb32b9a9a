package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A hierarchy of cgroups and this process's place in it.
type hierarchy struct {
	version     int
	controllers map[string]bool // of version 1
	mount       string
	own         string // this process's cgroup, a folder
}

// readHierarchies reads what cgroups(7) describes.
func readHierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	places, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return hierarchiesIn(mounts, places), nil
}

func hierarchiesIn(mounts, places []byte) []hierarchy {
	var all []hierarchy
	for lines := bufio.NewScanner(bytes.NewReader(mounts)); lines.Scan(); {
		// ID PARENT DEVICE ROOT MOUNT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		h := hierarchy{mount: unescapeMount(left[4]), controllers: map[string]bool{}}
		switch right[0] {
		case "cgroup2":
			h.version = 2
		case "cgroup":
			h.version = 1
			for _, controller := range strings.Split(right[2], ",") {
				h.controllers[controller] = true
			}
		default:
			continue
		}
		if place, ok := placeIn(places, h); ok {
			// What is mounted may be a part of the hierarchy only.
			h.own = filepath.Join(h.mount, strings.TrimPrefix(place, strings.TrimSuffix(unescapeMount(left[3]), "/")))
			all = append(all, h)
		}
	}
	return all
}

// placeIn finds this process's cgroup of a hierarchy: ID:CONTROLLERS:PATH, where
// version 2 has no controllers.
func placeIn(places []byte, h hierarchy) (string, bool) {
	for line := range strings.Lines(string(places)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if h.version == 2 && fields[1] == "" {
			return fields[2], true
		}
		for _, controller := range strings.Split(fields[1], ",") {
			if h.version == 1 && controller != "" && h.controllers[controller] {
				return fields[2], true
			}
		}
	}
	return "", false
}

// unescapeMount undoes the octal escapes of a mount's path.
func unescapeMount(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if code, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
