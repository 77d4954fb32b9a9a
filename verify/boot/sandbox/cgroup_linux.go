package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	wantedCPUs   float64
	janitor      *janitor // knows of each folder before it is there
}

// cpuPeriod is the usual one, in microseconds.
const cpuPeriod = 100_000

// makeLimits makes the cgroups for limits of memory in bytes and of processors.
// What this system does not give is noted; an error is of the janitor alone.
func makeLimits(memory int64, cpus float64) (*limits, error) {
	l := &limits{missing: map[string]string{}, wantedCPUs: cpus}
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
	if memory > 0 {
		if err := l.limitMemory(hierarchies, memory); err != nil {
			l.missing[MemoryLimit] = err.Error()
		}
	}
	if cpus > 0 {
		if err := l.limitCPUs(hierarchies, cpus); err != nil {
			l.useCores(err.Error())
		}
	}
	if len(l.folders) == 0 {
		l.stopJanitor()
	}
	return l, nil
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
	if err := setFile(filepath.Join(folder, limit), amount); err != nil {
		return err
	}
	if err := setFile(filepath.Join(folder, swap), swapAmount); err != nil && !errors.Is(err, os.ErrNotExist) {
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
		if err := setFile(filepath.Join(folder, "cpu.cfs_period_us"), period); err != nil {
			return err
		}
		err = setFile(filepath.Join(folder, "cpu.cfs_quota_us"), quota)
	} else {
		err = setFile(filepath.Join(folder, "cpu.max"), quota+" "+period)
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
			folder, err := l.make(h.own, nil)
			return folder, 1, err
		}
	}
	err = fmt.Errorf("this machine has no cgroup controller %s", controller)
	for _, h := range hierarchies {
		if h.version == 2 {
			folder, err = l.delegated(h, controller)
			return folder, 2, err
		}
	}
	return "", 0, err
}

// delegated makes a cgroup of version 2 below the nearest one that may have such
// a child: none may that has processes and is not the root.
func (l *limits) delegated(h hierarchy, controller string) (string, error) {
	marker := controller + ".max"
	for _, folder := range l.folders {
		if _, err := os.Stat(filepath.Join(folder, marker)); err == nil {
			return folder, nil // made for another controller
		}
	}
	var first error
	for parent := h.own; ; parent = filepath.Dir(parent) {
		folder, err := l.make(parent, []string{"memory", "cpu"})
		if err == nil {
			if _, err = os.Stat(filepath.Join(folder, marker)); err == nil {
				return folder, nil
			}
			err = fmt.Errorf("no cgroup controller %s below %s", controller, parent)
			l.dropLast()
		}
		if first == nil {
			first = err
		}
		if parent == h.mount || !isBelow(parent, h.mount) {
			return "", first
		}
	}
}

// make makes a cgroup of this sandbox's name, once, and opens what joins it.
func (l *limits) make(parent string, controllers []string) (string, error) {
	folder := filepath.Join(parent, "slipway-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err := l.janitor.watch(removals{Groups: []string{folder}}); err != nil {
		return "", err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	for _, controller := range controllers {
		_ = setFile(filepath.Join(parent, "cgroup.subtree_control"), "+"+controller) // who asked looks whether it is there
	}
	join, err := os.OpenFile(filepath.Join(folder, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		_ = os.Remove(folder)
		return "", err
	}
	l.folders, l.joins = append(l.folders, folder), append(l.joins, join)
	return folder, nil
}

func (l *limits) dropLast() {
	last := len(l.folders) - 1
	_ = l.joins[last].Close()
	_ = os.Remove(l.folders[last])
	l.folders, l.joins = l.folders[:last], l.joins[:last]
}

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

// A hierarchy of cgroups and this process's place in it.
type hierarchy struct {
	version     int
	controllers map[string]bool // of version 1
	mount       string
	own         string // this process's cgroup, a folder
}

// readHierarchies reads what cgroups(7) describes.
func readHierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	places, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return hierarchiesIn(mounts, places), nil
}

func hierarchiesIn(mounts, places []byte) []hierarchy {
	var all []hierarchy
	for lines := bufio.NewScanner(bytes.NewReader(mounts)); lines.Scan(); {
		// ID PARENT DEVICE ROOT MOUNT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		h := hierarchy{mount: unescapeMount(left[4]), controllers: map[string]bool{}}
		switch right[0] {
		case "cgroup2":
			h.version = 2
		case "cgroup":
			h.version = 1
			for _, controller := range strings.Split(right[2], ",") {
				h.controllers[controller] = true
			}
		default:
			continue
		}
		if place, ok := placeIn(places, h); ok {
			// What is mounted may be a part of the hierarchy only.
			h.own = filepath.Join(h.mount, strings.TrimPrefix(place, strings.TrimSuffix(unescapeMount(left[3]), "/")))
			all = append(all, h)
		}
	}
	return all
}

// placeIn finds this process's cgroup of a hierarchy: ID:CONTROLLERS:PATH, where
// version 2 has no controllers.
func placeIn(places []byte, h hierarchy) (string, bool) {
	for line := range strings.Lines(string(places)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if h.version == 2 && fields[1] == "" {
			return fields[2], true
		}
		for _, controller := range strings.Split(fields[1], ",") {
			if h.version == 1 && controller != "" && h.controllers[controller] {
				return fields[2], true
			}
		}
	}
	return "", false
}

// unescapeMount undoes the octal escapes of a mount's path.
func unescapeMount(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if code, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
