package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// cgroups is a hierarchy of version 2 in a folder, with the kernel's rules for
// what is made and written there (cgroups(7)).
type cgroups struct {
	root    string
	foreign []string // cgroups that are another user's, to whom what is made in them belongs
	busy    []string // cgroups that have processes
	frozen  bool     // mounted read-only

	threaded []string // cgroups that had processes when a controller of threads was handed down
}

// inhabit puts processes where there are to be some.
func (c *cgroups) inhabit(t *testing.T) {
	t.Helper()
	for _, name := range c.busy {
		if err := os.WriteFile(filepath.Join(c.root, name, "cgroup.procs"), []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// newCgroups makes the cgroups of a map, each with the controllers that it hands
// down; "" is the root. The root has all.
func newCgroups(t *testing.T, controllers string, handedDown map[string]string) *cgroups {
	t.Helper()
	c := &cgroups{root: t.TempDir()}
	c.fill(c.root, controllers)
	var names []string
	for name := range handedDown {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		folder := filepath.Join(c.root, name)
		if name != "" {
			if err := c.mkdir(folder); err != nil {
				t.Fatal(err)
			}
		}
		for _, controller := range strings.Fields(handedDown[name]) {
			if err := c.write(filepath.Join(folder, "cgroup.subtree_control"), "+"+controller); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// fill gives a cgroup the files that it has from its controllers.
func (c *cgroups) fill(folder, controllers string) {
	files := map[string]string{"cgroup.controllers": controllers + "\n"}
	if _, err := os.Stat(filepath.Join(folder, "cgroup.subtree_control")); err != nil {
		files["cgroup.subtree_control"], files["cgroup.procs"] = "\n", ""
		if folder != c.root {
			files["cgroup.type"] = "domain\n"
		}
		if parent := filepath.Dir(folder); c.within(parent, c.threaded) {
			files["cgroup.type"] = "domain invalid\n"
		}
	}
	for _, controller := range strings.Fields(controllers) {
		for _, name := range map[string][]string{"memory": {"memory.max", "memory.swap.max", "memory.events"}, "cpu": {"cpu.max"}}[controller] {
			files[name] = "max\n"
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
}

func (c *cgroups) within(folder string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return folder == filepath.Join(c.root, name) })
}

func (c *cgroups) mkdir(folder string) error {
	parent := filepath.Dir(folder)
	switch {
	case c.frozen:
		return &fs.PathError{Op: "mkdir", Path: folder, Err: unix.EROFS}
	case c.within(parent, c.foreign):
		return &fs.PathError{Op: "mkdir", Path: folder, Err: unix.EACCES}
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	c.fill(folder, strings.Join(controllersIn(filepath.Join(parent, "cgroup.subtree_control")), " "))
	return nil
}

func (c *cgroups) write(file, value string) error {
	folder := filepath.Dir(file)
	refuse := func(err error) error { return &fs.PathError{Op: "write", Path: file, Err: err} }
	switch {
	case c.frozen:
		return refuse(unix.EROFS)
	case c.within(folder, c.foreign):
		return refuse(unix.EACCES)
	case filepath.Base(file) != "cgroup.subtree_control":
		return setFile(file, value)
	}
	controller, ok := strings.CutPrefix(value, "+")
	switch {
	case !ok:
		return refuse(unix.EINVAL)
	case !slices.Contains(controllersIn(filepath.Join(folder, "cgroup.controllers")), controller):
		return refuse(unix.ENOENT)
	case folder != c.root && c.within(folder, c.busy) && controller != "cpu":
		return refuse(unix.EBUSY)
	case folder != c.root && c.within(folder, c.busy): // threads can be limited there, and processes no more
		c.threaded = append(c.threaded, strings.TrimPrefix(folder, c.root+"/"))
	}
	down := append(controllersIn(file), controller)
	if err := os.WriteFile(file, []byte(strings.Join(down, " ")+"\n"), 0o644); err != nil {
		return err
	}
	children, err := os.ReadDir(folder)
	for _, child := range children {
		if child.IsDir() {
			c.fill(filepath.Join(folder, child.Name()), strings.Join(down, " "))
		}
	}
	return err
}

// limited sets limits of 1 MiB and half a processor for a process whose own cgroup
// is given.
func (c *cgroups) limited(t *testing.T, own string, noMemory bool) *limits {
	t.Helper()
	l := &limits{missing: map[string]string{}, wantedMemory: 1 << 20, wantedCPUs: 0.5, kernel: kernel{c.mkdir, c.write}}
	if noMemory {
		l.wantedMemory = 0
	}
	var err error
	if l.janitor, err = startJanitor(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stopJanitor)
	l.set([]hierarchy{{version: 2, mount: c.root, own: filepath.Join(c.root, own)}})
	for _, join := range l.joins {
		if err := join.Close(); err != nil {
			t.Error(err)
		}
	}
	return l
}

// Where a user's or root's limits are made, on systems with systemd, in
// containers, and where only some controllers are handed down.
func TestDelegation(t *testing.T) {
	const user = "user.slice/user-1000.slice"
	const manager = user + "/user@1000.service"
	sessions := map[string]string{"": "cpu memory pids", "user.slice": "cpu memory pids", user: "cpu memory pids"}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{sessions, more} {
			for name, controllers := range m {
				all[name] = controllers
			}
		}
		return all
	}
	notTheirs := []string{"", "user.slice", user}
	for _, test := range []struct {
		name        string
		groups      map[string]string
		controllers string // of the root; "": cpu memory pids
		own         string
		foreign     []string
		busy        []string
		frozen      bool
		noMemory    bool   // none is wanted
		threads     string // a cgroup whose children are for threads

		below       string // where both limits are
		memory, cpu string // or why one is missing
	}{
		{name: "root, in the root", groups: map[string]string{"": ""}, busy: []string{""}, below: "."},
		{name: "root, in a service that has processes", groups: map[string]string{"": "cpu memory", "system.slice": "cpu memory", "system.slice/ssh.service": ""}, own: "system.slice/ssh.service",
			busy: []string{"system.slice/ssh.service"}, below: "system.slice"},
		{name: "root, in a cgroup of its own without processes", groups: map[string]string{"": "cpu memory", "job": ""}, own: "job", below: "job"},
		{name: "root, where nothing is handed down yet", groups: map[string]string{"": "", "a": "", "a/b": ""}, own: "a/b", busy: []string{"a/b"}, below: "."},
		{name: "a user, in a scope of the user's manager", groups: with(map[string]string{manager: "cpu memory", manager + "/app.slice": "cpu memory", manager + "/app.slice/run.scope": ""}),
			own: manager + "/app.slice/run.scope", foreign: notTheirs, busy: []string{manager + "/app.slice/run.scope"}, below: manager + "/app.slice"},
		{name: "a user, whose manager hands nothing down yet", groups: with(map[string]string{manager: "", manager + "/app.slice": "", manager + "/app.slice/run.scope": ""}),
			own: manager + "/app.slice/run.scope", foreign: notTheirs, busy: []string{manager + "/app.slice/run.scope"}, below: manager},
		{name: "a user, whose manager hands down memory to the slice alone", groups: with(map[string]string{manager: "memory", manager + "/app.slice": "memory", manager + "/app.slice/run.scope": ""}),
			own: manager + "/app.slice/run.scope", foreign: notTheirs, busy: []string{manager + "/app.slice/run.scope"}, below: manager},
		{name: "a user, who was given memory alone", groups: map[string]string{"": "cpu memory", "user.slice": "memory", user: "memory", manager: "memory", manager + "/app.slice": "memory", manager + "/app.slice/run.scope": ""},
			own: manager + "/app.slice/run.scope", foreign: notTheirs, busy: []string{manager + "/app.slice/run.scope"}, below: manager + "/app.slice", cpu: "no cgroup controller cpu below "},
		{name: "a user, in a session", groups: with(map[string]string{user + "/session-1.scope": ""}), own: user + "/session-1.scope", foreign: append(notTheirs, user+"/session-1.scope"), busy: []string{user + "/session-1.scope"},
			memory: "permission denied; systemd-run --user --scope", cpu: "permission denied; systemd-run --user --scope"},
		{name: "a user, for processors alone", groups: with(map[string]string{manager: "cpu memory", manager + "/app.slice": "cpu memory", manager + "/app.slice/run.scope": ""}), noMemory: true,
			own: manager + "/app.slice/run.scope", foreign: notTheirs, busy: []string{manager + "/app.slice/run.scope"}, below: manager + "/app.slice"},
		{name: "where threads are limited already", groups: map[string]string{"": "cpu", "a": "", "a/b": ""}, controllers: "cpu", noMemory: true, own: "a/b", busy: []string{"a/b"}, threads: "a", below: "."},
		{name: "a container, whose root is no root and has processes", groups: map[string]string{"": "cpu memory", "container": ""}, own: "container", foreign: []string{""}, busy: []string{"container"},
			memory: "permission denied", cpu: "permission denied"},
		{name: "a container, mounted read-only", groups: map[string]string{"": "cpu memory"}, frozen: true, memory: "read-only file system", cpu: "read-only file system"},
		{name: "beside version 1", groups: map[string]string{"": ""}, controllers: "hugetlb", memory: "no cgroup controller cpu, memory below ", cpu: "no cgroup controller cpu, memory below "},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.controllers == "" {
				test.controllers = "cpu memory pids"
			}
			c := newCgroups(t, test.controllers, test.groups)
			c.foreign, c.busy, c.frozen = test.foreign, test.busy, test.frozen
			c.inhabit(t)
			if test.threads != "" {
				c.threaded = []string{test.threads}
			}
			l := c.limited(t, test.own, test.noMemory)
			if why := l.missing[MemoryLimit]; test.memory == "" && why != "" || !strings.Contains(why, test.memory) {
				t.Errorf("no memory limit: %q, want %q", why, test.memory)
			}
			if byNumber := l.cores > 0; byNumber != (test.cpu != "") || !strings.Contains(l.cpuDetail, test.cpu) {
				t.Errorf("the processors: %q, want %q", l.cpuDetail, test.cpu)
			}
			if test.below == "" {
				if len(l.folders) != 0 {
					t.Errorf("left %q", l.folders)
				}
				return
			}
			if len(l.folders) != 1 || filepath.Dir(l.folders[0]) != filepath.Join(c.root, test.below) {
				t.Fatalf("made %q, want one below %s", l.folders, test.below)
			}
			if !test.noMemory {
				holds(t, l.folders[0], "memory.max", "1048576")
				holds(t, l.folders[0], "memory.swap.max", "0")
			}
			if own := filepath.Join(c.root, test.own, "cgroup.subtree_control"); slices.Contains(test.busy, test.own) && test.own != "" && len(controllersIn(own)) > 0 {
				t.Errorf("the process's own cgroup was altered: it hands down %q", controllersIn(own))
			}
			if test.cpu == "" {
				holds(t, l.folders[0], "cpu.max", "50000 100000")
			}
		})
	}
}

// holds wants a control file to begin with a value.
func holds(t *testing.T, folder, name, value string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil || !strings.HasPrefix(string(data), value) {
		t.Errorf("%s holds %q (%v), not %q", name, data, err, value)
	}
}

// A process is in one cgroup of each hierarchy: what version 1 has is not asked of
// version 2.
func TestDelegationBesideVersion1(t *testing.T) {
	c := newCgroups(t, "cpu", map[string]string{"": ""})
	first := t.TempDir()
	made := kernel{func(folder string) error {
		if filepath.Dir(folder) != first {
			return c.mkdir(folder)
		}
		err := os.Mkdir(folder, 0o755)
		for _, name := range []string{"cgroup.procs", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), nil, 0o644))
		}
		return err
	}, c.write}
	l := &limits{missing: map[string]string{}, wantedMemory: 1 << 20, wantedCPUs: 2, kernel: made}
	var err error
	if l.janitor, err = startJanitor(); err != nil {
		t.Fatal(err)
	}
	defer l.stopJanitor()
	l.set([]hierarchy{{version: 1, controllers: map[string]bool{"memory": true}, mount: first, own: first}, {version: 2, mount: c.root, own: c.root}})
	if len(l.missing) != 0 || l.cores != 0 || len(l.folders) != 2 {
		t.Fatalf("missing %v, %q, folders %q", l.missing, l.cpuDetail, l.folders)
	}
	holds(t, l.folders[0], "memory.limit_in_bytes", "1048576")
	holds(t, l.folders[1], "cpu.max", "200000 100000")
}

// The kernel itself, where this machine has a hierarchy of version 2 with any
// controller at all: from a cgroup that has a process, the next one above is
// found.
func TestDelegationOfTheKernel(t *testing.T) {
	hierarchies, err := readHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(hierarchies, func(h hierarchy) bool { return h.version == 2 })
	if i < 0 {
		t.Skip("this machine has no cgroups of version 2")
	}
	h := hierarchies[i]
	controllers := controllersIn(filepath.Join(h.mount, "cgroup.controllers"))
	if len(controllers) == 0 {
		t.Skip("all controllers are of version 1")
	}
	controllers = controllers[:1]
	before := handedDown(h.mount, controllers)
	outer := filepath.Join(h.mount, "slipway-test-"+strconv.Itoa(os.Getpid()))
	inner := filepath.Join(outer, "inner")
	for _, folder := range []string{outer, inner} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Skip("this user makes no cgroups: ", err)
		}
		t.Cleanup(func() {
			if err := removeGroup(folder, removeTime); err != nil {
				t.Error(err)
			}
		})
	}
	process, stop := sleeper(t)
	defer stop()
	err = setFile(filepath.Join(h.mount, "cgroup.subtree_control"), "+"+controllers[0])
	if errors.Is(err, unix.EBUSY) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) { // as in a container, whose root is no root
		t.Skip("nothing can be handed down here: ", err)
	}
	err = errors.Join(err, setFile(filepath.Join(outer, "cgroup.subtree_control"), "+"+controllers[0]),
		setFile(filepath.Join(inner, "cgroup.procs"), strconv.Itoa(process)))
	if err != nil {
		t.Fatal(err)
	}
	l := &limits{kernel: realKernel}
	if l.janitor, err = startJanitor(); err != nil {
		t.Fatal(err)
	}
	folder, err := l.delegated(hierarchy{version: 2, mount: h.mount, own: inner}, controllers)
	if err != nil || filepath.Dir(folder) != outer || !slices.Equal(controllersIn(filepath.Join(folder, "cgroup.controllers")), controllers) {
		t.Errorf("made %q, %v, with %q; want one below %s with %q", folder, err, controllersIn(filepath.Join(folder, "cgroup.controllers")), outer, controllers)
	}
	if err := setFile(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(process)); err != nil {
		t.Errorf("joined from below: %v", err)
	}
	stop()
	if err := l.remove(); err != nil {
		t.Error(err)
	}
	if len(before) == 0 {
		_ = setFile(filepath.Join(outer, "cgroup.subtree_control"), "-"+controllers[0])
		_ = setFile(filepath.Join(h.mount, "cgroup.subtree_control"), "-"+controllers[0])
	}
}

// sleeper starts a process that does nothing, and returns its number and what ends
// it.
func sleeper(t *testing.T) (pid int, stop func()) {
	t.Helper()
	command := exec.Command("/bin/sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command.Process.Pid, sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}
