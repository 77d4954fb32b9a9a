package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// removals are what a janitor removes.
type removals struct {
	Folders []string // with all in them
	Groups  []string // cgroups, once empty
}

// Janitor keeps watch over folders: should this program end in any way before
// stop is called, kill -9 of its whole process group included, they are removed
// with all in them. It holds none of this program's files or terminals. stop
// leaves the folders alone.
func Janitor(folders ...string) (stop func(), err error) {
	var absolute []string
	for _, folder := range folders {
		path, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("keep watch over %s: %w", folder, err)
		}
		absolute = append(absolute, path)
	}
	return startJanitor(removals{Folders: absolute})
}

// startJanitor returns once the janitor knows what it is to remove. This program
// holds the other end of its wire; that end closing without a word is the sign.
func startJanitor(what removals) (stop func(), err error) {
	near, far, err := newWires()
	if err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	defer far.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the janitor: %w", err), near.close())
	}
	defer null.Close()
	process, err := os.StartProcess("/proc/self/exe", []string{janitorName}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, far}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the janitor: %w", err), near.close())
	}
	// What is in the socket outlives its sender: no need to wait for the janitor
	// to have read it.
	if err := near.send(what); err != nil {
		_ = process.Kill()
		_, _ = process.Wait()
		return nil, errors.Join(fmt.Errorf("instruct the janitor: %w", err), near.close())
	}
	return func() {
		if near.send(struct{}{}) == nil {
			_, _ = process.Wait()
		}
		_ = near.close()
		runtime.KeepAlive(near)
	}, nil
}

// janitorPatience bounds how long a janitor waits for a cgroup to be empty.
const janitorPatience = 30 * time.Second

func janitorMain() int {
	w, err := wireOf(wireDescriptor)
	if err != nil {
		return 1
	}
	var what removals
	if _, err := w.receive(&what); err != nil {
		return 1
	}
	var word json.RawMessage
	if _, err := w.receive(&word); err == nil {
		return 0
	}
	for _, group := range what.Groups {
		_ = removeGroup(group, janitorPatience) // nobody is left to tell
	}
	for _, folder := range what.Folders {
		_ = removeFolder(folder)
	}
	return 0
}

// removeFolder removes a folder that processes which are just ending may still
// write to.
func removeFolder(folder string) error {
	var err error
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = os.RemoveAll(folder); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
