package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// processes lists who is alive inside, from proc(5).
func processes() ([]ProcessInfo, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []ProcessInfo
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 {
			continue
		}
		if command, alive := commandOf(pid); alive {
			found = append(found, ProcessInfo{PID: pid, Command: command})
		}
	}
	return found, nil
}

// mostCommand is how much of a process's command line is told, in bytes.
const mostCommand = 300

func commandOf(pid int) (command string, alive bool) {
	folder := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return "", false
	}
	// PID (NAME) STATE ..., where the name may hold anything.
	open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
	if open < 0 || end < open || len(stat) < end+3 || strings.ContainsRune("ZX", rune(stat[end+2])) {
		return "", false
	}
	line, err := os.ReadFile(folder + "/cmdline")
	if err != nil {
		return "", false
	}
	command = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
	if command == "" {
		command = string(stat[open+1 : end])
	}
	if len(command) > mostCommand {
		command = strings.ToValidUTF8(command[:mostCommand], "") + "..."
	}
	return command, true
}
