package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// delegated makes a cgroup of version 2 with controllers, below the nearest one of
// this process's own and those above it that can have such a child (cgroups(7)):
// none can that has processes itself and is not the root, and each above must hand
// the controllers down. One cgroup has them all, since a process is in one only;
// where none can, it is the nearest that has most.
func (l *limits) delegated(h hierarchy, controllers []string) (string, error) {
	path := slices.DeleteFunc(h.above(), inhabited)
	var refused error
	try := func(parent string, least int) string {
		if len(handedDown(parent, controllers)) < least {
			return ""
		}
		folder, err := l.make(parent)
		if err != nil && refused == nil {
			refused = err
		}
		return folder
	}
	for _, parent := range path { // what is above stays as it is, if that will do
		l.enable(parent, controllers)
		if folder := try(parent, len(controllers)); folder != "" {
			return folder, nil
		}
	}
	for _, folder := range slices.Backward(path) {
		l.enable(folder, controllers)
	}
	for least := len(controllers); least > 0; least-- {
		for _, parent := range path {
			if folder := try(parent, least); folder != "" {
				return folder, nil
			}
		}
	}
	switch {
	case errors.Is(refused, fs.ErrPermission):
		return "", fmt.Errorf("%w; systemd-run --user --scope starts a program where a user may make cgroups", refused)
	case refused == nil:
		refused = fmt.Errorf("no cgroup controller %s below %s or above it", strings.Join(controllers, ", "), h.own)
	}
	return "", refused
}

// above is the process's own cgroup and those above it, as far as they are
// mounted.
func (h hierarchy) above() (path []string) {
	for folder := h.own; ; folder = filepath.Dir(folder) {
		path = append(path, folder)
		if folder == h.mount || !isBelow(folder, h.mount) {
			return path
		}
	}
}

// inhabited reports whether a cgroup has processes and is not the root, which
// alone has no type. The kernel lets some controllers be handed down from one, and
// then nothing can join what is below.
func inhabited(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "cgroup.type"))
	processes, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs")) // one that cannot be read is no place either: what is made there is refused
	return err == nil && len(processes) > 0
}

// enable hands controllers down to a cgroup's children, as far as it may: what
// came of it is in its files.
func (l *limits) enable(folder string, controllers []string) {
	already := handedDown(folder, controllers)
	for _, controller := range controllers {
		if !slices.Contains(already, controller) {
			_ = l.kernel.write(filepath.Join(folder, "cgroup.subtree_control"), "+"+controller)
		}
	}
}

// handedDown are those of some controllers that a cgroup's children have.
func handedDown(folder string, controllers []string) []string {
	have := controllersIn(filepath.Join(folder, "cgroup.subtree_control"))
	return slices.DeleteFunc(slices.Clone(controllers), func(controller string) bool { return !slices.Contains(have, controller) })
}

// controllersIn reads cgroup.controllers or cgroup.subtree_control; nothing where
// it cannot be read.
func controllersIn(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
