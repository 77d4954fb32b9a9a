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
		"yes":  func(s *shell, _ []string) Answer { s.pours = true; return printsUnknown(s, nil) },
		"grep": grep, "diff": func(*shell, []string) Answer { return perhapsYes },
		"cmp":   func(*shell, []string) Answer { return perhapsYes },
		"which": func(s *shell, args []string) Answer { return s.which(args[1:]) },
	}
	delete(programs, "xargs") // starts programs: written down as it is
	for _, name := range []string{"cat", "tr", "base64", "od", "xxd", "hexdump", "strings", "fold", "sed", "awk", "cut", "uniq"} {
		programs[name] = passesOn(programs[name])
	}
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
