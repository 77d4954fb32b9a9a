package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// limits are the cgroups of one sandbox, of version 1 or 2 or, where the one has
// what the other lacks, both.
type limits struct {
	folders      []string
	joins        []*os.File        // cgroup.procs of each
	oom          string            // the file that counts kills at the memory limit
	cores        int               // where no cgroup limits processors; 0: all
	missing      map[string]string // by condition, why it is not to be had
	memoryDetail string
	cpuDetail    string
	wantedMemory int64
	wantedCPUs   float64
	second       string // the one of version 2, which has every controller that a process gets there; "": none yet
	kernel       kernel
	janitor      *janitor // knows of each folder before it is there
}

// cpuPeriod is the usual one, in microseconds.
const cpuPeriod = 100_000

// makeLimits makes the cgroups for limits of memory in bytes and of processors.
// What this system does not give is noted; an error is of the janitor alone.
func makeLimits(memory int64, cpus float64) (*limits, error) {
	l := &limits{missing: map[string]string{}, wantedMemory: memory, wantedCPUs: cpus, kernel: realKernel}
	if memory <= 0 && cpus <= 0 {
		return l, nil
	}
	hierarchies, err := readHierarchies()
	if err != nil {
		hierarchies = nil
	}
	if l.janitor, err = startJanitor(); err != nil {
		return nil, err
	}
	l.set(hierarchies)
	if len(l.folders) == 0 {
		l.stopJanitor()
	}
	return l, nil
}

// set makes the cgroups in the hierarchies, and sets the limits that are wanted.
func (l *limits) set(hierarchies []hierarchy) {
	if l.wantedMemory > 0 {
		if err := l.limitMemory(hierarchies, l.wantedMemory); err != nil {
			l.missing[MemoryLimit] = err.Error()
		}
	}
	if l.wantedCPUs > 0 {
		if err := l.limitCPUs(hierarchies, l.wantedCPUs); err != nil {
			l.useCores(err.Error())
		}
	}
}

// useCores limits processors by number instead.
func (l *limits) useCores(why string) {
	l.cores = cores(l.wantedCPUs)
	l.cpuDetail = fmt.Sprintf("%d whole processors by affinity: %s", l.cores, why)
}

// fallBack is for cgroups that could be made but not joined.
func (l *limits) fallBack(why string) {
	l.missing[MemoryLimit] = why
	if l.wantedCPUs > 0 && l.cores == 0 {
		l.useCores(why)
	}
}

func (l *limits) limitMemory(hierarchies []hierarchy, memory int64) error {
	folder, version, err := l.group(hierarchies, "memory")
	if err != nil {
		return err
	}
	amount := strconv.FormatInt(memory, 10)
	limit, swap, swapAmount := "memory.max", "memory.swap.max", "0"
	l.oom = filepath.Join(folder, "memory.events")
	if version == 1 {
		// The limit of memory and swap together cannot be below that of memory.
		limit, swap, swapAmount = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", amount
		l.oom = filepath.Join(folder, "memory.oom_control")
	}
	if err := l.kernel.write(filepath.Join(folder, limit), amount); err != nil {
		return err
	}
	if err := l.kernel.write(filepath.Join(folder, swap), swapAmount); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // a kernel without swap accounting has no such file
	}
	l.memoryDetail = fmt.Sprintf("%s, cgroup version %d", bytesText(memory), version)
	return nil
}

func (l *limits) limitCPUs(hierarchies []hierarchy, cpus float64) error {
	folder, version, err := l.group(hierarchies, "cpu")
	if err != nil {
		return err
	}
	quota := strconv.FormatInt(max(int64(cpus*cpuPeriod), 1000), 10) // the least that a kernel takes
	period := strconv.Itoa(cpuPeriod)
	if version == 1 {
		if err := l.kernel.write(filepath.Join(folder, "cpu.cfs_period_us"), period); err != nil {
			return err
		}
		err = l.kernel.write(filepath.Join(folder, "cpu.cfs_quota_us"), quota)
	} else {
		err = l.kernel.write(filepath.Join(folder, "cpu.max"), quota+" "+period)
	}
	if err != nil {
		return err
	}
	l.cpuDetail = fmt.Sprintf("%s of them, cgroup version %d", strconv.FormatFloat(cpus, 'g', -1, 64), version)
	return nil
}

// group returns a cgroup of this sandbox that has a controller, made where it is
// not there yet.
func (l *limits) group(hierarchies []hierarchy, controller string) (folder string, version int, err error) {
	for _, h := range hierarchies {
		if h.version == 1 && h.controllers[controller] {
			folder, err := l.make(h.own)
			return folder, 1, err
		}
	}
	err = fmt.Errorf("this machine has no cgroup controller %s", controller)
	for _, h := range hierarchies {
		if h.version != 2 {
			continue
		}
		if l.second == "" {
			if l.second, err = l.delegated(h, l.wantedOf(hierarchies)); err != nil {
				return "", 2, err
			}
		}
		if !slices.Contains(controllersIn(filepath.Join(l.second, "cgroup.controllers")), controller) {
			err = fmt.Errorf("no cgroup controller %s below %s", controller, filepath.Dir(l.second))
			return "", 2, err
		}
		return l.second, 2, nil
	}
	return "", 0, err
}

// wantedOf are the controllers that version 2 has to have: those that are asked
// for and that version 1 has not.
func (l *limits) wantedOf(hierarchies []hierarchy) (wanted []string) {
	for controller, asked := range map[string]bool{"memory": l.wantedMemory > 0, "cpu": l.wantedCPUs > 0} {
		first := func(h hierarchy) bool { return h.version == 1 && h.controllers[controller] }
		if asked && !slices.ContainsFunc(hierarchies, first) {
			wanted = append(wanted, controller)
		}
	}
	slices.Sort(wanted)
	return wanted
}

// make makes a cgroup of this sandbox's name, once, and opens what joins it.
func (l *limits) make(parent string) (string, error) {
	folder := filepath.Join(parent, "slipway-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err := l.janitor.watch(removals{Groups: []string{folder}}); err != nil {
		return "", err
	}
	if err := l.kernel.mkdir(folder); err != nil {
		return "", err
	}
	join, err := os.OpenFile(filepath.Join(folder, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		_ = os.Remove(folder)
		return "", err
	}
	if kind, err := os.ReadFile(filepath.Join(folder, "cgroup.type")); err == nil && string(bytes.TrimSpace(kind)) != "domain" {
		_ = join.Close()
		_ = os.Remove(folder)
		return "", fmt.Errorf("the cgroup %s is for threads only", parent)
	}
	l.folders, l.joins = append(l.folders, folder), append(l.joins, join)
	return folder, nil
}

// kernel makes and writes in the file system of cgroups.
type kernel struct {
	mkdir func(folder string) error
	write func(file, value string) error
}

var realKernel = kernel{mkdir: func(folder string) error { return os.Mkdir(folder, 0o755) }, write: setFile}

// setFile writes a control file in one piece, and makes none.
func setFile(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

func (l *limits) descriptors() []int {
	var all []int
	for _, join := range l.joins {
		all = append(all, int(join.Fd()))
	}
	return all
}

// killed counts the processes that were killed at the memory limit.
func (l *limits) killed() int {
	if l.oom == "" {
		return 0
	}
	data, err := os.ReadFile(l.oom)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(count)) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// removeTime is how long the kernel may take to see that a cgroup is empty.
const removeTime = 2 * time.Second

// remove removes the cgroups; all that was in them has ended.
func (l *limits) remove() error {
	for _, join := range l.joins {
		_ = join.Close()
	}
	l.joins = nil
	var problems []error
	for _, folder := range l.folders {
		problems = append(problems, removeGroup(folder, removeTime))
	}
	l.folders = nil
	l.stopJanitor()
	return errors.Join(problems...)
}

func (l *limits) stopJanitor() {
	if l.janitor != nil {
		l.janitor.stop()
		l.janitor = nil
	}
}

// removeGroup removes a cgroup as soon as it is empty.
func removeGroup(folder string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		err := unix.Rmdir(folder)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EINTR) || time.Now().After(deadline) {
			return fmt.Errorf("remove %s: %w", folder, err)
		}
	}
}
