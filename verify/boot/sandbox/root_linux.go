package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A rootPlan is the file system of a sandbox. All paths but Source's are those
// inside.
type rootPlan struct {
	Source     string   // root file system on this machine, "/" or below
	Submission string   // on this machine
	At         string   // where it appears
	NoExec     bool     // of the submission
	Hide       []string // folders that appear empty
	LeaveOut   []string // what does not appear
	Shared     Volume   // /dev/shm
	Temp       Volume   // /tmp and /var/tmp
	GPU        bool
	HostName   string
	User       int // inside; 0: root
}

// Where things lie while the root is built: on a tmpfs that pivot_root has put in
// the place of this machine's root.
const (
	oldRoot = "/old" // this machine's root
	newRoot = "/new" // the one that is being built
	scratch = "/scratch"
)

// own is what is not taken from the source: each has a mount of its own.
var own = []string{"/proc", "/sys", "/dev", "/tmp", "/run"}

// build makes this process's mount namespace the planned one. It returns notes
// on what is missing, by condition. The process must be alone in the namespace.
func (p *rootPlan) build() (missing map[string]string, err error) {
	missing = map[string]string{}
	if err := stepAside(); err != nil {
		return nil, err
	}
	if err := p.fill(missing); err != nil {
		return nil, err
	}
	if err := p.mountOwn(); err != nil {
		return nil, err
	}
	if err := p.mountDevices(missing); err != nil {
		return nil, err
	}
	if err := p.mountSubmission(); err != nil {
		return nil, err
	}
	return missing, enter(newRoot)
}

// stepAside puts an empty tmpfs in the place of the root, which goes to oldRoot.
// Only so can anything of this machine be mounted anywhere: a tmpfs at a place
// would hide what is below it.
func stepAside() error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	const base = "/tmp" // any folder would do
	if err := mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	for _, folder := range []string{oldRoot, newRoot, scratch} {
		if err := os.Mkdir(base+folder, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(base, base+oldRoot); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	return os.Chdir("/")
}

// enter makes a folder the root and drops what was outside it.
func enter(folder string) error {
	if err := os.Chdir(folder); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("umount2 the old root: %w", err)
	}
	return os.Chdir("/")
}

// fill makes newRoot show the source, read-only, with the mount points that the
// plan needs.
func (p *rootPlan) fill(missing map[string]string) error {
	source := filepath.Join(oldRoot, p.Source)
	if p.Source != "/" {
		err := p.overlay(source)
		if err == nil && p.GPU {
			err = p.bindDriver()
		}
		if err == nil {
			return p.points(newRoot)
		}
		missing[GPUDevices] = "the driver's files are not in this root: " + err.Error()
		_ = unix.Unmount(newRoot, unix.MNT_DETACH)
	}
	if err := mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m"); err != nil {
		return err
	}
	if err := p.bindEntries(source, "/"); err != nil {
		return err
	}
	return p.points(newRoot)
}

// overlay mounts the source at newRoot under a layer in memory, where mount
// points can be made anywhere.
func (p *rootPlan) overlay(source string) error {
	for _, folder := range []string{scratch + "/upper", scratch + "/work"} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chdir(source); err != nil { // a name with a colon or comma would need quoting
		return err
	}
	defer func() { _ = os.Chdir("/") }()
	return mount("overlay", newRoot, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "lowerdir=.,upperdir="+scratch+"/upper,workdir="+scratch+"/work")
}

// bindEntries mounts each entry of a folder of the source in its place. The root
// as a whole could be no lower layer of an overlay in a user namespace, whose
// mounts are locked together; its entries can be mounted by anyone.
func (p *rootPlan) bindEntries(source, inside string) error {
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		from, path := filepath.Join(source, entry.Name()), filepath.Join(inside, entry.Name())
		if isOwn(path) || slices.Contains(p.LeaveOut, path) {
			continue
		}
		if err := p.bindEntry(from, path, entry.Type()); err != nil {
			return err
		}
	}
	return nil
}

func (p *rootPlan) bindEntry(from, path string, kind os.FileMode) error {
	to := newRoot + path
	switch {
	case kind&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case kind.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if p.needsRoom(from, path) {
			return p.bindEntries(from, path)
		}
	default:
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
	}
	// At once read-only: nothing that follows can write to this machine, not even
	// by mistake.
	if err := mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return protect(to, unix.MOUNT_ATTR_RDONLY)
}

// needsRoom reports whether the submission's mount point has to be made in a
// folder of the source.
func (p *rootPlan) needsRoom(from, path string) bool {
	rest, below := strings.CutPrefix(p.At, path+"/")
	if !below {
		return false
	}
	for _, hidden := range p.Hide {
		if isBelow(p.At, hidden) && isFolder(filepath.Join(oldRoot, p.Source, hidden)) {
			return false // it is made in the hidden folder's tmpfs
		}
	}
	info, err := os.Stat(filepath.Join(from, rest))
	return err != nil || !info.IsDir()
}

func isOwn(path string) bool {
	for _, folder := range own {
		if path == folder {
			return true
		}
	}
	return false
}

// points makes the mount points of the plan, and then the root read-only. Hidden
// folders are hidden here, so that the submission can lie in one.
func (p *rootPlan) points(root string) error {
	for _, folder := range own {
		if err := os.MkdirAll(root+folder, 0o755); err != nil {
			return err
		}
	}
	inMemory := isBelow(p.At, "/tmp") || isBelow(p.At, "/run") || isBelow(p.At, "/dev/shm")
	if err := p.leaveOut(root); err != nil { // before the folders that are hidden there
		return err
	}
	for _, folder := range p.Hide {
		if !isFolder(root+folder) || isOwn(folder) {
			continue // nothing to hide
		}
		if err := mount("tmpfs", root+folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m"); err != nil {
			return err
		}
	}
	if !inMemory {
		if err := os.MkdirAll(root+p.At, 0o755); err != nil {
			return fmt.Errorf("make room for the submission at %s: %w", p.At, err)
		}
	}
	if err := p.writeHosts(root + "/etc/hosts"); err != nil {
		return err
	}
	for _, name := range []string{"passwd", "group"} {
		if err := p.writeAccount(name, root+"/etc/"+name); err != nil {
			return err
		}
	}
	if p.User == 0 {
		if err := coverSecrets(root); err != nil {
			return err
		}
	}
	return protect(root, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// leaveOut shows each folder that something is left out of as a folder in memory
// with the rest of its entries. To cover what is left out would not do: to Python
// an empty folder is a package, too.
func (p *rootPlan) leaveOut(root string) error {
	var folders []string
	for _, path := range p.LeaveOut {
		folders = append(folders, filepath.Dir(path))
	}
	slices.Sort(folders) // what is above comes first
	for _, folder := range slices.Compact(folders) {
		if !isFolder(root + folder) {
			continue // it is left out itself
		}
		if err := mount("tmpfs", root+folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m"); err != nil {
			return err
		}
		if err := p.bindEntries(filepath.Join(oldRoot, p.Source, folder), folder); err != nil {
			return err
		}
	}
	return nil
}

// secrets are the files of a root that its root alone can read: patterns.
var secrets = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh/ssh_host_*_key"}

// coverSecrets puts an empty file in the place of each.
func coverSecrets(root string) error {
	empty := scratch + "/empty"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return err
	}
	for _, pattern := range secrets {
		found, err := filepath.Glob(root + pattern)
		if err != nil {
			return err
		}
		for _, at := range found {
			if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
				continue // what a link leads to, no name here says
			}
			if err := mount(empty, at, "", unix.MS_BIND, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeAccount covers a root's /etc/passwd or /etc/group, if it has one, with one
// in which the user inside has an entry: a grader's user has one, and libraries
// that name their caches after the user end without it.
func (p *rootPlan) writeAccount(name, at string) error {
	if info, err := os.Stat(at); p.User == 0 || errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	known, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	id := strconv.Itoa(p.User)
	for line := range strings.SplitSeq(string(known), "\n") {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == id {
			return nil
		}
	}
	entry := "submission:x:" + id + ":"
	if name == "passwd" {
		entry += id + "::/tmp:/bin/sh"
	}
	text := strings.TrimRight(string(known), "\n") + "\n" + entry + "\n"
	if err := os.WriteFile(scratch+"/"+name, []byte(text), 0o644); err != nil {
		return err
	}
	return mount(scratch+"/"+name, at, "", unix.MS_BIND, "")
}

// writeHosts covers a root's /etc/hosts, if it has one, with one in which the
// machine's name is the sandbox's own address: many servers look themselves up.
func (p *rootPlan) writeHosts(at string) error {
	if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	hosts := scratch + "/hosts"
	text := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	if p.HostName != "" {
		text += address + "\t" + p.HostName + "\n"
	}
	if err := os.WriteFile(hosts, []byte(text), 0o644); err != nil {
		return err
	}
	return mount(hosts, at, "", unix.MS_BIND, "")
}

// mountOwn mounts what a container has of its own.
func (p *rootPlan) mountOwn() error {
	if err := mount("proc", newRoot+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"} {
		path = newRoot + path
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		if err := protect(path, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	if err := mount(oldRoot+"/sys", newRoot+"/sys", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := protect(newRoot+"/sys", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	if err := mount("tmpfs", newRoot+"/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64m"); err != nil {
		return err
	}
	for _, folder := range []string{"/tmp", "/var/tmp"} {
		if !isFolder(newRoot + folder) {
			continue // a root without /var
		}
		if err := mountVolume(newRoot+folder, p.Temp); err != nil {
			return err
		}
	}
	return nil
}

func mountVolume(at string, volume Volume) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if volume.NoExec {
		flags |= unix.MS_NOEXEC
	}
	if volume.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	options := "mode=1777"
	if volume.Bytes > 0 {
		options += ",size=" + strconv.FormatInt(volume.Bytes, 10)
	}
	return mount("tmpfs", at, "tmpfs", flags, options)
}

// mountSubmission comes after everything that it may lie in.
func (p *rootPlan) mountSubmission() error {
	at := newRoot + p.At
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("make room for the submission at %s: %w", p.At, err)
	}
	if err := mount(filepath.Join(oldRoot, p.Submission), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	flags := uint64(unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if p.NoExec {
		flags |= unix.MOUNT_ATTR_NOEXEC
	}
	return protect(at, flags)
}

// protect sets flags of a mount and of all below it.
func protect(path string, flags uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: flags})
	if err != nil {
		return fmt.Errorf("mount_setattr %s: %w", inside(path), err)
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		what := kind
		if source != "" && kind == "" {
			what = inside(source)
		}
		return fmt.Errorf("mount %s at %s: %w", what, inside(target), err)
	}
	return nil
}

// inside strips the folders of the building site off a path, for errors.
func inside(path string) string {
	for _, site := range []string{newRoot, oldRoot} {
		if rest, ok := strings.CutPrefix(path, site+"/"); ok {
			return "/" + rest
		}
	}
	return path
}

// isFolder reports whether there is a folder that is no symbolic link.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isBelow(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// checkFolder says what is wrong with a folder that is to be mounted.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a folder", path)
	}
	return nil
}
