package shell

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// changes records what other programs than installers write: archives that are
// unpacked, and files that are made to a size.
func (s *shell) changes(args []string) {
	value := func(names ...string) string { return optionValue(args, names) }
	switch path.Base(args[0]) {
	case "tar", "bsdtar":
		if !has(args, "--extract", 'x') && !(len(args) > 1 && !strings.HasPrefix(args[1], "-") && strings.Contains(args[1], "x")) || has(args, "--to-stdout", 'O') {
			return
		}
		s.unpacked("tar", value("-C", "--directory"))
	case "unzip":
		if !has(args, "-l", 'l') && !has(args, "-p", 'p') {
			s.unpacked("unzip", value("-d"))
		}
	case "dd":
		s.dumped(args)
	case "fallocate", "truncate":
		for _, word := range Operands(args, "-l --length -o --offset -s --size -r --reference") {
			s.sized(path.Base(args[0]), s.absolute(word), bytesOf(value("-l", "--length", "-s", "--size")))
		}
	}
}

// optionValue is the word of an option, behind it or joined to it.
func optionValue(args []string, names []string) string {
	for i, word := range args {
		for _, name := range names {
			if word == name && i+1 < len(args) {
				return args[i+1]
			}
			if rest, ok := strings.CutPrefix(word, name+"="); ok {
				return rest
			}
			if rest, ok := strings.CutPrefix(word, name); ok && len(name) == 2 && rest != "" {
				return rest
			}
		}
	}
	return ""
}

// unpacked records an archive that is unpacked into a folder, "" for the working
// one. The folder itself then has what is not known.
func (s *shell) unpacked(what, folder string) {
	p := s.absolute(folder)
	s.wrote(what, p)
	if n, there := s.run.Tree.Get(p); there != Yes || !n.Folder {
		s.run.Tree.made[p] = &Node{Folder: true}
	}
	s.run.Tree.unpacked[p] = true
}

// sized records a file of a size in bytes.
func (s *shell) sized(what, to string, size int64) {
	before := len(s.run.Writes)
	s.wrote(what, to)
	if len(s.run.Writes) > before {
		s.run.Writes[before].Size = size
	}
}

// dumped is dd: it writes count blocks, or as much as its input has.
func (s *shell) dumped(args []string) {
	operands := map[string]string{"bs": "512"}
	for _, word := range args[1:] {
		name, value, _ := strings.Cut(word, "=")
		operands[name] = value
	}
	if operands["of"] == "" {
		return
	}
	count, err := strconv.ParseInt(operands["count"], 10, 64)
	size := bytesOf(operands["bs"])
	switch {
	case err == nil && count > 0 && size > 0 && size < math.MaxInt64/count:
		size *= count
	case operands["count"] == "" && operands["if"] != "":
		size = s.run.Tree.sizeOf(s.absolute(operands["if"]))
	default:
		size = 0
	}
	s.sized("dd", s.absolute(operands["of"]), size)
}

// units are the multiples that coreutils know.
var units = []struct {
	suffix string
	bytes  int64
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}}

// bytesOf reads a size as "4G"; 0 where it is none.
func bytesOf(text string) int64 {
	text, factor := strings.ToUpper(text), int64(1)
	if i := slices.IndexFunc(units, func(u struct {
		suffix string
		bytes  int64
	}) bool {
		return strings.HasSuffix(text, u.suffix)
	}); i >= 0 {
		text, factor = strings.TrimSuffix(text, units[i].suffix), units[i].bytes
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0
	}
	return n * factor
}

// stream is sed, which writes only where it is told to edit in place.
func stream(s *shell, args []string) Answer {
	inPlace := slices.ContainsFunc(args[1:], func(a string) bool {
		return strings.HasPrefix(a, "--in-place") || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "i") && !strings.HasPrefix(a, "-e") && !strings.HasPrefix(a, "-f")
	})
	if !inPlace {
		return printsUnknown(s, args)
	}
	words := Operands(args, "-e -f --expression --file")
	if !slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "-e") || strings.HasPrefix(a, "-f") || strings.HasPrefix(a, "--expression") || strings.HasPrefix(a, "--file")
	}) && len(words) > 0 {
		words = words[1:]
	}
	for _, word := range words {
		p := s.absolute(word)
		if _, there := s.run.Tree.Get(p); there == No {
			return No
		}
		s.wrote("sed -i", p)
		if s.tested > 0 && s.readOnly(p) {
			return No
		}
	}
	return Yes
}
