package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// leftPatience bounds how long a janitor goes on killing: some processes take
// the system a while to end, and some start others faster than they can be seen.
const leftPatience = 10 * time.Second

// endLeft kills the processes of some groups, and those that live in one of the
// folders, until there is none.
func endLeft(folders []string, groups []int) {
	if len(folders)+len(groups) == 0 {
		return
	}
	for deadline := time.Now().Add(leftPatience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left := leftProcesses(folders, groups)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended meanwhile
		}
	}
}

// leftProcesses lists them, from proc(5). A zombie is none: it waits for its
// parent, and does nothing.
func leftProcesses(folders []string, groups []int) []int {
	all, _ := filepath.Glob("/proc/[0-9]*")
	var left []int
	for _, process := range all {
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil || pid == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(process + "/stat")
		if err != nil {
			continue // it has ended
		}
		group, alive := groupOf(string(stat))
		if alive && (slices.Contains(groups, group) || livesIn(process, folders)) {
			left = append(left, pid)
		}
	}
	return left
}

// groupOf reads the process group from a process's stat: PID (NAME) STATE PARENT
// GROUP ..., where the name may hold anything.
func groupOf(stat string) (group int, alive bool) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || strings.Contains("ZX", fields[0]) {
		return 0, false
	}
	group, err := strconv.Atoi(fields[2])
	return group, err == nil
}

// livesIn reports whether a process was given a HOME, or a folder for temporary
// files, at or below one of the folders. Of another user's process nothing is
// known.
func livesIn(process string, folders []string) bool {
	environment, err := os.ReadFile(process + "/environ")
	if err != nil {
		return false
	}
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		if slices.Contains([]string{"HOME", "TMPDIR", "GOTMPDIR"}, name) && slices.ContainsFunc(folders, func(folder string) bool { return isBelow(value, folder) }) {
			return true
		}
	}
	return false
}
