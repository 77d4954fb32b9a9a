package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// program simulates one of the machine's: what it prints and leaves behind, and
// whether it succeeds.
type program func(s *shell, args []string) Answer

var programs map[string]program

func init() { // which refers to builtins, which refer to programs
	programs = map[string]program{
		"dirname":  perWord(path.Dir),
		"basename": baseName,
		"readlink": realPath, "realpath": realPath,
		"mktemp": makeTemporary, "mkdir": makeFolders, "touch": touch, "tee": tee,
		"cp": copyFiles, "mv": copyFiles, "ln": copyFiles, "install": copyFiles, "rsync": copyFiles,
		"rm": remove, "rmdir": remove, "chmod": chmod, "chown": done,
		"cat": cat, "head": ends, "tail": ends, "sort": same, "wc": count, "ls": list, "find": find,
		"sleep": done, "sync": done, "clear": done, "true": done,
		"uname": uname, "nproc": processors, "id": user, "whoami": printsUnknown, "hostname": printsUnknown, "date": printsUnknown,
		"seq": sequence, "expr": expression, "df": printsUnknown, "free": printsUnknown, "du": printsUnknown, "stat": printsUnknown,
		"tr": printsUnknown, "cut": printsUnknown, "sed": stream, "awk": printsUnknown, "uniq": printsUnknown, "jq": printsUnknown,
		"env": printsUnknown, "printenv": printsUnknown, "ps": printsUnknown, "lscpu": printsUnknown, "xargs": nil,
		"grep": grep, "diff": func(*shell, []string) Answer { return perhapsYes },
		"cmp":   func(*shell, []string) Answer { return perhapsYes },
		"which": func(s *shell, args []string) Answer { return s.which(args[1:]) },
	}
	delete(programs, "xargs") // starts programs: written down as it is
}

func done(*shell, []string) Answer { return Yes }

func printsUnknown(s *shell, _ []string) Answer { s.print(Unknown + "\n"); return Yes }

// Operands are the words that are no options; valued names options whose next
// word is theirs.
func Operands(args []string, valued string) (words []string) {
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(words, args[i+1:]...)
		case slices.Contains(strings.Fields(valued), args[i]):
			i++
		case !strings.HasPrefix(args[i], "-") || args[i] == "-":
			words = append(words, args[i])
		}
	}
	return words
}

// has reports whether one of the options is given, alone or among short ones.
func has(args []string, long string, short byte) bool {
	return slices.ContainsFunc(args[1:], func(a string) bool {
		return a == long || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.IndexByte(a, short) > 0
	})
}

func perWord(f func(string) string) program {
	return func(s *shell, args []string) Answer {
		for _, word := range Operands(args, "") {
			s.print(f(word) + "\n")
		}
		return Yes
	}
}

func baseName(s *shell, args []string) Answer {
	words := Operands(args, "-s")
	if len(words) == 0 {
		return No
	}
	name := path.Base(words[0])
	if len(words) > 1 && name != words[1] {
		name = strings.TrimSuffix(name, words[1])
	}
	s.print(name + "\n")
	return Yes
}

func realPath(s *shell, args []string) Answer {
	for _, word := range Operands(args, "") {
		s.print(s.absolute(word) + "\n")
	}
	return Yes
}

func makeTemporary(s *shell, args []string) Answer {
	folder := s.variables["TMPDIR"].Str
	if folder == "" {
		folder = "/tmp"
	}
	name := "tmp.XXXXXX"
	for i, a := range args[1:] {
		switch {
		case a == "-p" || a == "--tmpdir":
			if i+2 < len(args) && a == "-p" {
				folder = args[i+2]
			}
		case strings.HasPrefix(a, "--tmpdir="):
			folder = strings.TrimPrefix(a, "--tmpdir=")
		case !strings.HasPrefix(a, "-") && args[i] != "-p":
			name = a
			if !has(args, "--tmpdir", 't') && !slices.Contains(args, "-p") {
				folder = s.folder
			}
		}
	}
	p := name
	if !path.IsAbs(p) {
		p = path.Join(folder, name)
	}
	p = s.absolute(p)
	if Known(p) {
		if n, there := s.run.Tree.Get(path.Dir(p)); there == No || !n.Folder || s.readOnly(path.Dir(p)) {
			return No
		}
		s.run.Tree.made[p] = &Node{Folder: has(args, "--directory", 'd')}
	}
	s.print(p + "\n")
	return Yes
}

func makeFolders(s *shell, args []string) Answer {
	for _, word := range Operands(args, "-m --mode") {
		p := s.absolute(word)
		n, there := s.run.Tree.Get(p)
		if Known(p) && !has(args, "--parents", 'p') && (there == Yes || s.lacksAbove(p)) {
			return No
		}
		if there == Yes && n.Folder {
			continue
		}
		s.wrote("mkdir", p)
		s.run.Tree.makeFolder(p)
		if s.tested > 0 && s.readOnly(p) {
			return No
		}
	}
	return Yes
}

// lacksAbove reports whether the folder above a path is known not to be there:
// in the submission, or in a folder that is empty at the start.
func (s *shell) lacksAbove(p string) bool {
	above := path.Dir(p)
	_, there := s.run.Tree.Get(above)
	fresh := slices.ContainsFunc([]string{"/tmp/", "/var/tmp/", "/dev/shm/"}, func(f string) bool { return strings.HasPrefix(above, f) })
	return there == No && (fresh || s.run.Tree.Within(above))
}

func touch(s *shell, args []string) Answer {
	for _, word := range Operands(args, "-d -r -t") {
		s.wrote("touch", s.absolute(word))
		if s.tested > 0 && s.readOnly(s.absolute(word)) {
			return No
		}
	}
	return Yes
}

func tee(s *shell, args []string) Answer {
	for _, word := range Operands(args, "") {
		s.wrote("tee", s.absolute(word))
	}
	s.print(s.input)
	return Yes
}

// copyFiles is cp, mv and ln: what is at the target then came from the source.
func copyFiles(s *shell, args []string) Answer {
	words := Operands(args, "-m -o -g --mode")
	if i := slices.Index(args, "-t"); i > 0 && i+1 < len(args) {
		words = append(slices.DeleteFunc(words, func(w string) bool { return w == args[i+1] }), args[i+1])
	}
	if len(words) < 2 {
		return No
	}
	to := s.absolute(words[len(words)-1])
	target, _ := s.run.Tree.Get(to)
	for _, word := range words[:len(words)-1] {
		from := s.absolute(word)
		n, there := s.run.Tree.Get(from)
		if there == No && path.Base(args[0]) != "ln" {
			s.missing(word, from)
			return No
		}
		p := to
		if target != nil && target.Folder {
			p = path.Join(to, path.Base(from))
		}
		if path.Base(args[0]) == "mv" && s.run.Tree.Within(from) {
			s.wrote("mv", from)
		}
		s.wrote(path.Base(args[0]), p)
		if writes := s.run.Writes; len(writes) > 0 && path.Base(args[0]) != "ln" {
			writes[len(writes)-1].Size = s.run.Tree.sizeOf(from)
		}
		if s.readOnly(p) && s.tested > 0 {
			return No
		}
		if Known(p) {
			s.copyTree(from, p, n)
		}
	}
	return Yes
}

// CopiesFromHost reports whether rsync is told of another machine.
func CopiesFromHost(args []string) bool {
	return slices.ContainsFunc(Operands(args, "-e --exclude --include -f"), func(word string) bool {
		host, _, ok := strings.Cut(word, ":")
		return ok && host != "" && !strings.Contains(host, "/")
	})
}

func (s *shell) copyTree(from, to string, n *Node) {
	if n == nil {
		s.run.Tree.made[to] = &Node{}
		return
	}
	c := *n
	s.run.Tree.made[to] = &c
	if !n.Folder {
		return
	}
	for _, nodes := range []map[string]*Node{s.run.Tree.Base, s.run.Tree.made} {
		var below []string
		for p := range nodes {
			if strings.HasPrefix(p, from+"/") && !strings.HasPrefix(p, to+"/") {
				below = append(below, p)
			}
		}
		for _, p := range below {
			if m := nodes[p]; m != nil {
				s.run.Tree.made[to+strings.TrimPrefix(p, from)] = m
			}
		}
	}
}

func remove(s *shell, args []string) Answer {
	for _, word := range Operands(args, "") {
		p := s.absolute(word)
		n, there := s.run.Tree.Get(p)
		if there == No {
			if !has(args, "--force", 'f') {
				return No
			}
			continue
		}
		if s.run.Tree.Within(p) {
			s.wrote("rm", p)
			continue
		}
		if n != nil && Known(p) {
			for made := range s.run.Tree.made {
				if strings.HasPrefix(made, p+"/") {
					s.run.Tree.made[made] = nil
				}
			}
			s.run.Tree.made[p] = nil
		}
	}
	return Yes
}

func chmod(s *shell, args []string) Answer {
	words := Operands(args, "")
	if len(words) < 2 {
		return No
	}
	for _, word := range words[1:] {
		p := s.absolute(word)
		n, there := s.run.Tree.Get(p)
		if there == No {
			return No
		}
		if s.run.Tree.Within(p) {
			s.wrote("chmod", p)
			if s.tested > 0 {
				return No
			}
			continue
		}
		c := *n
		c.Executable = strings.Contains(words[0], "x") || strings.Trim(words[0], "01234567") == "" && strings.ContainsAny(words[0], "1357")
		s.run.Tree.made[p] = &c
	}
	return Yes
}

func cat(s *shell, args []string) Answer {
	words := Operands(args, "")
	if len(words) == 0 {
		s.print(s.input)
	}
	for _, word := range words {
		n, there := s.run.Tree.Get(s.absolute(word))
		switch {
		case word == "-":
			s.print(s.input)
		case there == No:
			s.missing(word, s.absolute(word))
			return No
		case n.Data == nil:
			s.print(Unknown)
		default:
			s.print(clip(string(n.Data)))
		}
	}
	return Yes
}

// ends is head and tail of what is piped in.
func ends(s *shell, args []string) Answer {
	if len(Operands(args, "-n -c")) > 0 || !Known(s.input) {
		s.print(Unknown + "\n")
		return Yes
	}
	n := 10
	for i, a := range args[1:] {
		if value, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "n")); err == nil && (strings.HasPrefix(a, "-") || args[i] == "-n") {
			n = max(0, value)
		}
	}
	lines := strings.SplitAfter(strings.TrimSuffix(s.input, "\n"), "\n")
	if n = min(n, len(lines)); path.Base(args[0]) == "tail" {
		lines = lines[len(lines)-n:]
	} else {
		lines = lines[:n]
	}
	s.print(strings.Join(lines, ""))
	return Yes
}

func same(s *shell, args []string) Answer {
	if s.hasInput && len(Operands(args, "-k -t")) == 0 && len(args) == 1 {
		lines := strings.SplitAfter(s.input, "\n")
		slices.Sort(lines)
		s.print(strings.Join(lines, ""))
		return Yes
	}
	return printsUnknown(s, args)
}

func count(s *shell, args []string) Answer {
	if s.hasInput && Known(s.input) && len(args) == 2 && args[1] == "-l" {
		s.print(strconv.Itoa(strings.Count(s.input, "\n")) + "\n")
		return Yes
	}
	return printsUnknown(s, args)
}

func list(s *shell, args []string) Answer {
	words := Operands(args, "")
	if len(words) == 0 {
		words = []string{"."}
	}
	for _, word := range words {
		p := s.absolute(word)
		n, there := s.run.Tree.Get(p)
		switch {
		case there == No:
			return No
		case !n.Folder:
			s.print(word + "\n")
		default:
			entries, _ := s.run.Tree.list(p)
			for _, e := range entries {
				s.print(e.Name() + "\n")
			}
		}
	}
	return Yes
}

// find prints what find FOLDER -name PATTERN does; of other tests, nothing is
// known.
func find(s *shell, args []string) Answer {
	var folders []string
	name := ""
	i := 1
	for ; i < len(args) && !strings.HasPrefix(args[i], "-"); i++ {
		folders = append(folders, args[i])
	}
	for ; i < len(args); i++ {
		switch {
		case args[i] == "-name" && i+1 < len(args):
			i++
			name = args[i]
		case (args[i] == "-type" || args[i] == "-maxdepth") && i+1 < len(args):
			i++
		case args[i] == "-print" || args[i] == "-print0":
		default:
			return printsUnknown(s, args)
		}
	}
	for _, folder := range folders {
		if _, there := s.run.Tree.Get(s.absolute(folder)); there == No {
			return No
		}
		for _, p := range s.run.Tree.Below(s.absolute(folder)) {
			if ok, _ := path.Match(name, path.Base(p)); ok || name == "" {
				s.print(p + "\n")
			}
		}
	}
	return Yes
}

func uname(s *shell, args []string) Answer {
	switch {
	case has(args, "--machine", 'm'):
		s.print("x86_64\n")
	case len(args) == 1 || has(args, "--kernel-name", 's'):
		s.print("Linux\n")
	default:
		s.print(Unknown + "\n")
	}
	return Yes
}

func processors(s *shell, _ []string) Answer {
	if i := s.run.Tree.image; i != nil && i.CPUs >= 1 {
		s.print(strconv.Itoa(int(i.CPUs)) + "\n")
		return Yes
	}
	s.print(Unknown + "\n")
	return Yes
}

func user(s *shell, args []string) Answer {
	if i := s.run.Tree.image; i != nil && i.User != nil && has(args, "--user", 'u') {
		s.print(strconv.Itoa(*i.User) + "\n")
		return Yes
	}
	return printsUnknown(s, args)
}

func sequence(s *shell, args []string) Answer {
	words := Operands(args, "-s -f")
	first, last := 1, 0
	var err error
	switch len(words) {
	case 1:
		last, err = strconv.Atoi(words[0])
	case 2:
		if first, err = strconv.Atoi(words[0]); err == nil {
			last, err = strconv.Atoi(words[1])
		}
	default:
		return printsUnknown(s, args)
	}
	if err != nil {
		return printsUnknown(s, args)
	}
	for n := first; n <= last && n < first+maxLoop; n++ {
		s.print(strconv.Itoa(n) + "\n")
	}
	return Yes
}

// grep may find nothing; what it finds is not looked for.
func grep(s *shell, args []string) Answer {
	if !has(args, "--quiet", 'q') && !has(args, "--silent", 'q') {
		s.print(Unknown + "\n")
	}
	return perhapsYes
}

// expression is expr of two whole numbers: it fails where the result is 0.
func expression(s *shell, args []string) Answer {
	if len(args) == 4 {
		a, errA := strconv.Atoi(args[1])
		b, errB := strconv.Atoi(args[3])
		results := map[string]int{"+": a + b, "-": a - b, "*": a * b}
		if result, ok := results[args[2]]; ok && errA == nil && errB == nil {
			s.print(strconv.Itoa(result) + "\n")
			return IsTrue(result != 0)
		}
	}
	return printsUnknown(s, args)
}

func (s *shell) which(names []string) Answer {
	result := Yes
	for _, name := range names {
		if strings.HasPrefix(name, "-") {
			continue
		}
		p, there := s.search(name)
		if there == No {
			return No
		}
		if there != Yes {
			result = there
		}
		s.print(p + "\n")
	}
	return result
}
