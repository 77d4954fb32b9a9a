package shell

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"slipway/verify/image"
)

// Node is a file or folder that a script can see.
type Node struct {
	Folder     bool
	Size       int64
	Executable bool
	Data       []byte
	Head       []byte
	Source     string // the submitted file that it is or is a copy of; "" for others
}

// Tree is the file system that a script sees: the submission below root, what
// the script made, and what is known of the machine.
type Tree struct {
	Root     string
	image    *image.Image
	Base     map[string]*Node    // never altered
	names    map[string][]string // of what lies directly in each folder of base, sorted
	made     map[string]*Node    // nil: removed
	unpacked map[string]bool     // folders that hold what an archive had
}

// Answer is what can be said of a fact of the grader's machine.
type Answer int

const (
	No Answer = iota
	Yes
	perhapsYes // not known; a script's main path takes it for true
	PerhapsNo  // not known; a script's main path takes it for false
)

func (a Answer) not() Answer { return [...]Answer{Yes, No, PerhapsNo, perhapsYes}[a] }

// Certain reports whether the fact is known.
func (a Answer) Certain() bool { return a == Yes || a == No }

// IsTrue is the answer of a fact that is known.
func IsTrue(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// NewTree returns what a script sees before it runs: files and what is known of
// the machine, nil for nothing.
func NewTree(files []File, i *image.Image) *Tree {
	t := &Tree{Root: "/submission", image: i, Base: map[string]*Node{}, made: map[string]*Node{}, unpacked: map[string]bool{}}
	if i != nil && path.IsAbs(i.Submission) {
		t.Root = path.Clean(i.Submission)
	}
	t.Base[t.Root] = &Node{Folder: true}
	for _, f := range files {
		p := path.Join(t.Root, f.Path)
		head := f.Head
		if head == nil {
			head = f.Data[:min(64, len(f.Data))]
		}
		t.Base[p] = &Node{Size: f.Size, Executable: f.Executable, Data: f.Data, Head: head, Source: f.Path}
		for folder := path.Dir(p); folder != t.Root && t.Within(folder); folder = path.Dir(folder) {
			t.Base[folder] = &Node{Folder: true}
		}
	}
	for _, p := range systemFolders {
		t.Base[p] = &Node{Folder: true}
	}
	t.Base[t.Home()] = &Node{Folder: true}
	for _, p := range []string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"} {
		t.Base[p] = &Node{}
	}
	t.names = map[string][]string{}
	for _, p := range slices.Sorted(maps.Keys(t.Base)) {
		folder, name := path.Split(p)
		if name != "" {
			t.names[path.Clean(folder)] = append(t.names[path.Clean(folder)], name)
		}
	}
	return t
}

// systemFolders exist on every machine that runs containers of Linux.
var systemFolders = []string{"/", "/bin", "/dev", "/dev/shm", "/etc", "/opt", "/proc", "/root", "/run", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/var", "/var/tmp", "/home", "/mnt"}

// Home is the grader's $HOME.
func (t *Tree) Home() string {
	if t.image != nil && path.IsAbs(t.image.Home) {
		return path.Clean(t.image.Home)
	}
	return "/root"
}

// copied returns the tree for one run, which may write to it.
func (t *Tree) copied() *Tree {
	c := *t
	c.made, c.unpacked = maps.Clone(t.made), maps.Clone(t.unpacked)
	return &c
}

// Within reports whether an absolute path is the submission's root or below.
func (t *Tree) Within(p string) bool { return p == t.Root || strings.HasPrefix(p, t.Root+"/") }

// Submitted returns the submitted file of a path relative to the root, or nil.
func (t *Tree) Submitted(p string) *Node {
	if n := t.Base[path.Join(t.Root, p)]; n != nil && !n.Folder {
		return n
	}
	return nil
}

// Relative is a path as a reader of the submission knows it.
func (t *Tree) Relative(p string) string {
	if rest, ok := strings.CutPrefix(p, t.Root+"/"); ok {
		return rest
	}
	return p
}

// Get returns what lies at an absolute path, and whether that is known: a
// submission is a closed world, and temporary folders are empty at the start.
func (t *Tree) Get(p string) (*Node, Answer) {
	p = path.Clean(p)
	if n, ok := t.made[p]; ok {
		return n, IsTrue(n != nil)
	}
	if n, ok := t.Base[p]; ok {
		return n, Yes
	}
	for folder := range t.unpacked {
		if strings.HasPrefix(p, folder+"/") {
			return &Node{Executable: true}, perhapsYes
		}
	}
	if t.Within(p) {
		return nil, No
	}
	if t.image != nil && t.image.Python != nil && t.image.Python.Path == p {
		return &Node{Executable: true}, Yes
	}
	folder, name := path.Split(p)
	if slices.Contains([]string{"/bin/", "/usr/bin/", "/usr/local/bin/"}, folder) {
		if there := ProgramOf(t.image, name); there.Certain() {
			if there == Yes {
				return &Node{Executable: true}, Yes
			}
			return nil, No
		}
	}
	for _, fresh := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", t.Home(), "/root", "/home", "/workspace", "/mnt", "/data", "/Users", "/content", "/kaggle", "/scratch"} {
		if strings.HasPrefix(p, fresh+"/") || p == fresh {
			return nil, No
		}
	}
	return &Node{Executable: true}, perhapsYes
}

// everywhere are programs without which no shell script starts Python.
var everywhere = strings.Fields("sh bash env python3 cat cp mv rm ln ls mkdir rmdir mktemp chmod chown touch dirname basename readlink realpath sort head tail cut tr wc tee uname id whoami date sleep seq expr true false test nproc nohup timeout stdbuf nice find grep sed awk xargs df du stat sha256sum md5sum")

// ProgramOf says whether PATH has a program.
func ProgramOf(i *image.Image, name string) Answer {
	if i != nil {
		if has, ok := i.Programs[name]; ok {
			return IsTrue(has)
		}
	}
	if slices.Contains(everywhere, name) {
		return Yes
	}
	return perhapsYes
}

// makeFolder records a folder and those above it.
func (t *Tree) makeFolder(p string) {
	for p = path.Clean(p); p != "/"; p = path.Dir(p) {
		if n, there := t.Get(p); there == Yes && n.Folder {
			return
		}
		t.made[p] = &Node{Folder: true}
	}
}

// list returns the names below a folder, sorted.
func (t *Tree) list(folder string) ([]fs.DirEntry, error) {
	folder = path.Clean(folder)
	n, there := t.Get(folder)
	if there == No {
		return nil, fs.ErrNotExist
	}
	if !n.Folder {
		return nil, syscall.ENOTDIR
	}
	prefix := strings.TrimSuffix(folder, "/") + "/"
	found := map[string]entry{}
	for _, name := range t.names[folder] {
		found[name] = entry{name, t.Base[prefix+name]}
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
	node *Node
}

func (e entry) Name() string { return e.name }
func (e entry) IsDir() bool  { return e.node.Folder }
func (e entry) Type() fs.FileMode {
	if e.node.Folder {
		return fs.ModeDir
	}
	return 0
}
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// Below returns the submitted files at or below an absolute path, sorted.
func (t *Tree) Below(p string) []string {
	var found []string
	for at, n := range t.Base {
		if !n.Folder && t.Within(at) && (at == p || strings.HasPrefix(at, p+"/")) {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found
}

// Sources are the submitted files that lie at or below an absolute path, there or
// as copies, sorted.
func (t *Tree) Sources(p string) []string {
	found := map[string]bool{}
	for _, nodes := range []map[string]*Node{t.Base, t.made} {
		for at, n := range nodes {
			if n != nil && n.Source != "" && (at == p || strings.HasPrefix(at, p+"/")) {
				found[n.Source] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// sizeOf is the size of a file, or of the submitted files below a folder.
func (t *Tree) sizeOf(p string) (size int64) {
	if n, _ := t.Get(p); n != nil && !n.Folder {
		return n.Size
	}
	for _, at := range t.Below(p) {
		size += t.Base[at].Size
	}
	return size
}

// File is one file of a submission. Data is nil where its bytes were not kept;
// Head holds its first bytes even then.
type File struct {
	Path       string
	Size       int64
	Executable bool
	Data       []byte
	Head       []byte
}
