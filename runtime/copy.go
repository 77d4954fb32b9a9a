package main

import (
	"os"
	"path/filepath"
)

// removeCopy removes a folder that holds nothing but the running program: the
// copy that serve.sh makes where the submission cannot be executed. A program
// runs on after its file is gone. Anything else stays, and so does a copy that
// cannot be removed: it costs space and nothing more.
func removeCopy(folder, program string) {
	running, err := os.Stat(program)
	if err != nil {
		return
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		return
	}
	name := filepath.Join(folder, entries[0].Name())
	if copied, err := os.Lstat(name); err != nil || !os.SameFile(copied, running) {
		return
	}
	if os.Remove(name) == nil {
		os.Remove(folder) // fails if something was put in since
	}
}
