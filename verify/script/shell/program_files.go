package shell

import (
	"path"
	"slices"
	"strings"
)

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
		switch {
		case strings.HasPrefix(p+"/", from+"/") && n != nil && n.Folder:
			return No // into itself
		case len(s.run.Tree.made) > maxMade:
			s.stop("makes too many files to be followed to its end")
		case Known(p):
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
