package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The names that a part of a sandbox is started under, its argv[0].
const (
	supervisorName = "slipway-sandbox-supervisor"
	launcherName   = "slipway-sandbox-launcher"
	janitorName    = "slipway-sandbox-janitor"
)

// wireDescriptor is where each part finds its wire to the one that started it.
const wireDescriptor = 3

// Main runs the part of a sandbox that this process was started as, and then
// ends it; in any other process it returns at once. It is the first statement of
// main and of TestMain.
func Main() {
	parts := map[string]func() int{supervisorName: supervisorMain, launcherName: launcherMain, janitorName: janitorMain}
	if len(os.Args) != 1 {
		return
	}
	if part := parts[os.Args[0]]; part != nil {
		closeInherited()
		os.Exit(part())
	}
}

// closeInherited closes what a shell or another program left open, down to
// standard error and the wire: a part must hold no end of somebody's pipe.
func closeInherited() {
	for _, descriptor := range openDescriptors() {
		if descriptor > wireDescriptor {
			_ = unix.Close(descriptor)
		}
	}
}

// openDescriptors lists this process's descriptors but for those of Go's
// poller.
func openDescriptors() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var descriptors []int
	for _, entry := range entries {
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") {
			continue // the folder's own is closed by now
		}
		descriptors = append(descriptors, descriptor)
	}
	return descriptors
}
