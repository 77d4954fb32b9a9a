package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// removals are what a janitor ends and removes.
type removals struct {
	Folders       []string // with all in them, once whoever lives in them is ended
	Groups        []string // cgroups, once empty
	Homes         []string // those who live in them are ended
	ProcessGroups []int
	Stop          bool // no more of it: nothing is to be removed
}

// Janitor keeps watch over folders, which may be made later: should this program
// end in any way before stop is called, kill -9 of its whole process group
// included, they are removed with all in them, after the processes that were
// given their HOME, TMPDIR or GOTMPDIR there are killed. It holds none of this program's files or
// terminals. stop leaves the folders alone.
func Janitor(folders ...string) (stop func(), err error) {
	var absolute []string
	for _, folder := range folders {
		path, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("keep watch over %s: %w", folder, err)
		}
		absolute = append(absolute, path)
	}
	j, err := startJanitor()
	if err != nil {
		return nil, err
	}
	if err := j.watch(removals{Folders: absolute}); err != nil {
		j.stop()
		return nil, err
	}
	return j.stop, nil
}

// Keeper keeps watch over what is started without a sandbox: should this program
// end in any way before Stop is called, all of the process group is killed, and
// so is each process that left the group and still has the HOME. A nil one keeps
// nothing.
type Keeper struct{ janitor *janitor }

// Keep makes the keeper of a start that is about to be, whose HOME nobody else
// has.
func Keep(home string) (*Keeper, error) {
	j, err := startJanitor()
	if err != nil {
		return nil, err
	}
	if err := j.watch(removals{Homes: []string{home}}); err != nil {
		j.stop()
		return nil, err
	}
	return &Keeper{j}, nil
}

// Group tells of the start's process group.
func (k *Keeper) Group(leader int) error {
	if k == nil {
		return nil
	}
	return k.janitor.watch(removals{ProcessGroups: []int{leader}})
}

// Stop ends the watch, and nothing else. It is called once.
func (k *Keeper) Stop() {
	if k != nil {
		k.janitor.stop()
	}
}

// janitor is the near end of one. This program holds the other end of its wire;
// that end closing without a word is the sign.
type janitor struct {
	wire    *wire
	process *os.Process
}

func startJanitor() (*janitor, error) {
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
	return &janitor{near, process}, nil
}

// watch tells of more to remove, best before it is there. What is in the socket
// outlives its sender: no need to wait for the janitor to have read it.
func (j *janitor) watch(what removals) error {
	if err := j.wire.send(what); err != nil {
		return fmt.Errorf("instruct the janitor: %w", err)
	}
	return nil
}

// stop ends the janitor, which removes nothing then.
func (j *janitor) stop() {
	if j.wire.send(removals{Stop: true}) != nil {
		_ = j.process.Kill()
	}
	_, _ = j.process.Wait()
	_ = j.wire.close()
}

// janitorPatience bounds how long a janitor waits for a cgroup to be empty.
const janitorPatience = 30 * time.Second

func janitorMain() int {
	w, err := wireOf(wireDescriptor)
	if err != nil {
		return 1
	}
	var what removals
	for {
		var more removals
		if _, err := w.receive(&more); err != nil {
			break
		}
		if more.Stop {
			return 0
		}
		what.Folders, what.Groups = append(what.Folders, more.Folders...), append(what.Groups, more.Groups...)
		what.Homes, what.ProcessGroups = append(what.Homes, more.Homes...), append(what.ProcessGroups, more.ProcessGroups...)
	}
	endLeft(append(what.Homes, what.Folders...), what.ProcessGroups)
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
