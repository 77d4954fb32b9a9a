package script

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"slipway/verify/image"
)

// node is a file or folder that a script can see.
type node struct {
	folder     bool
	size       int64
	executable bool
	data       []byte
	head       []byte
	source     string // the submitted file that it is or is a copy of; "" for others
}

// tree is the file system that a script sees: the submission below root, what
// the script made, and what is known of the machine.
type tree struct {
	root  string
	image *image.Image
	base  map[string]*node    // never altered
	names map[string][]string // of what lies directly in each folder of base, sorted
	made  map[string]*node    // nil: removed
}

// answer is what can be said of a fact of the grader's machine.
type answer int

const (
	no answer = iota
	yes
	perhapsYes // not known; a script's main path takes it for true
	perhapsNo  // not known; a script's main path takes it for false
)

func (a answer) not() answer { return [...]answer{yes, no, perhapsNo, perhapsYes}[a] }

func (a answer) certain() bool { return a == yes || a == no }

func isTrue(b bool) answer {
	if b {
		return yes
	}
	return no
}

func newTree(s Submission, i *image.Image) *tree {
	t := &tree{root: "/submission", image: i, base: map[string]*node{}, made: map[string]*node{}}
	if i != nil && path.IsAbs(i.Submission) {
		t.root = path.Clean(i.Submission)
	}
	t.base[t.root] = &node{folder: true}
	for _, f := range s.Files {
		p := path.Join(t.root, f.Path)
		head := f.Head
		if head == nil {
			head = f.Data[:min(64, len(f.Data))]
		}
		t.base[p] = &node{size: f.Size, executable: f.Executable, data: f.Data, head: head, source: f.Path}
		for folder := path.Dir(p); folder != t.root && t.within(folder); folder = path.Dir(folder) {
			t.base[folder] = &node{folder: true}
		}
	}
	for _, p := range systemFolders {
		t.base[p] = &node{folder: true}
	}
	t.base[t.home()] = &node{folder: true}
	for _, p := range []string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"} {
		t.base[p] = &node{}
	}
	t.names = map[string][]string{}
	for _, p := range slices.Sorted(maps.Keys(t.base)) {
		folder, name := path.Split(p)
		if name != "" {
			t.names[path.Clean(folder)] = append(t.names[path.Clean(folder)], name)
		}
	}
	return t
}

// systemFolders exist on every machine that runs containers of Linux.
var systemFolders = []string{"/", "/bin", "/dev", "/dev/shm", "/etc", "/opt", "/proc", "/root", "/run", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/var", "/var/tmp", "/home", "/mnt"}

// home is the grader's $HOME.
func (t *tree) home() string {
	if t.image != nil && path.IsAbs(t.image.Home) {
		return path.Clean(t.image.Home)
	}
	return "/root"
}

// copied returns the tree for one run, which may write to it.
func (t *tree) copied() *tree {
	c := *t
	c.made = maps.Clone(t.made)
	return &c
}

// within reports whether an absolute path is the submission's root or below.
func (t *tree) within(p string) bool { return p == t.root || strings.HasPrefix(p, t.root+"/") }

// submitted returns the submitted file of a path relative to the root, or nil.
func (t *tree) submitted(p string) *node {
	if n := t.base[path.Join(t.root, p)]; n != nil && !n.folder {
		return n
	}
	return nil
}

// relative is a path as a reader of the submission knows it.
func (t *tree) relative(p string) string {
	if rest, ok := strings.CutPrefix(p, t.root+"/"); ok {
		return rest
	}
	return p
}

// get returns what lies at an absolute path, and whether that is known: a
// submission is a closed world, and temporary folders are empty at the start.
func (t *tree) get(p string) (*node, answer) {
	p = path.Clean(p)
	if n, ok := t.made[p]; ok {
		return n, isTrue(n != nil)
	}
	if n, ok := t.base[p]; ok {
		return n, yes
	}
	if t.within(p) {
		return nil, no
	}
	if t.image != nil && t.image.Python != nil && t.image.Python.Path == p {
		return &node{executable: true}, yes
	}
	folder, name := path.Split(p)
	if slices.Contains([]string{"/bin/", "/usr/bin/", "/usr/local/bin/"}, folder) {
		if there := programOf(t.image, name); there.certain() {
			if there == yes {
				return &node{executable: true}, yes
			}
			return nil, no
		}
	}
	for _, fresh := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", t.home(), "/root", "/home", "/workspace", "/mnt", "/data", "/Users", "/content", "/kaggle", "/scratch"} {
		if strings.HasPrefix(p, fresh+"/") || p == fresh {
			return nil, no
		}
	}
	return &node{executable: true}, perhapsYes
}

// everywhere are programs without which no shell script starts Python.
var everywhere = strings.Fields("sh bash env python3 cat cp mv rm ln ls mkdir rmdir mktemp chmod chown touch dirname basename readlink realpath sort head tail cut tr wc tee uname id whoami date sleep seq expr true false test nproc nohup timeout stdbuf nice find grep sed awk xargs df du stat sha256sum md5sum")

// programOf says whether PATH has a program.
func programOf(i *image.Image, name string) answer {
	if i != nil {
		if has, ok := i.Programs[name]; ok {
			return isTrue(has)
		}
	}
	if slices.Contains(everywhere, name) {
		return yes
	}
	return perhapsYes
}

// makeFolder records a folder and those above it.
func (t *tree) makeFolder(p string) {
	for p = path.Clean(p); p != "/"; p = path.Dir(p) {
		if n, there := t.get(p); there == yes && n.folder {
			return
		}
		t.made[p] = &node{folder: true}
	}
}

// list returns the names below a folder, sorted.
func (t *tree) list(folder string) ([]fs.DirEntry, error) {
	folder = path.Clean(folder)
	n, there := t.get(folder)
	if there == no {
		return nil, fs.ErrNotExist
	}
	if !n.folder {
		return nil, syscall.ENOTDIR
	}
	prefix := strings.TrimSuffix(folder, "/") + "/"
	found := map[string]entry{}
	for _, name := range t.names[folder] {
		found[name] = entry{name, t.base[prefix+name]}
	}
	for p, n := range t.made {
		if rest, ok := strings.CutPrefix(p, prefix); ok && rest != "" && !strings.Contains(rest, "/") {
			if n == nil {
				delete(found, rest)
			} else {
				found[rest] = entry{rest, n}
			}
		}
	}
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(found)) {
		entries = append(entries, found[name])
	}
	return entries, nil
}

// entry is a node of a folder's listing.
type entry struct {
	name string
	node *node
}

func (e entry) Name() string { return e.name }
func (e entry) IsDir() bool  { return e.node.folder }
func (e entry) Type() fs.FileMode {
	if e.node.folder {
		return fs.ModeDir
	}
	return 0
}
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// below returns the submitted files at or below an absolute path, sorted.
func (t *tree) below(p string) []string {
	var found []string
	for at, n := range t.base {
		if !n.folder && t.within(at) && (at == p || strings.HasPrefix(at, p+"/")) {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found
}

// sizeOf is the size of a file, or of the submitted files below a folder.
func (t *tree) sizeOf(p string) (size int64) {
	if n, _ := t.get(p); n != nil && !n.folder {
		return n.size
	}
	for _, at := range t.below(p) {
		size += t.base[at].size
	}
	return size
}
