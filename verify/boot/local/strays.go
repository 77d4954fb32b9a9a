package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slipway/verify/boot/sandbox"
)

// Strays are the processes of a start without a sandbox that left its process
// group, as daemons do. They are known by the HOME that was given to that start
// alone; one that forgot it too, or a system that shows no environments, cannot
// be seen.
func Strays(home string, group int) []int {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	var all []int
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(append([]byte{0}, data...), []byte("\x00HOME="+home+"\x00")) {
			continue // another user's, or it has ended
		}
		folder := filepath.Dir(name)
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && groupOf(folder) != strconv.Itoa(group) {
			all = append(all, pid)
		}
	}
	return all
}

// Keep keeps watch over a start whose HOME is home; nil where the system has
// nobody for that.
func Keep(home string) (*sandbox.Keeper, error) {
	keeper, err := sandbox.Keep(home)
	if errors.Is(err, sandbox.ErrUnsupported) {
		return nil, nil
	}
	return keeper, err
}

// groupOf is the process group of a process, by its folder in /proc: "" where it
// has ended.
func groupOf(folder string) string {
	data, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return ""
	}
	// PID (COMMAND) STATE PARENT GROUP ...; the command may hold anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 3 {
		return ""
	}
	return fields[2]
}

func StrayText(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended meanwhile
	return fmt.Sprintf("process %d, which left its process group, %s", pid, strings.Join(strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 }), " "))
}

// EndStrays kills strays until there is none, since one may have started
// another meanwhile.
func EndStrays(home string, group int) {
	for deadline := time.Now().Add(reapTime); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left := Strays(home, group)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill() // it may have ended meanwhile
			}
		}
	}
}
