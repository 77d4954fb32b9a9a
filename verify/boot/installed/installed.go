// Package installed says what of a folder of Python packages (site-packages,
// dist-packages) belongs to which distribution. It promises to name only what
// lies in the folder, and of two distributions that share a folder, as parts of a
// namespace package do, to tell the one's files from the other's where their
// metadata list them.
package installed

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/image"
)

// Folder is one folder of packages.
type Folder struct {
	files  map[string]bool     // paths in the folder, of files or of whole packages
	owners map[string][]string // of those and of the folders above them: names in normal form (PEP 503)
}

// metadata matches what names an installed distribution: NAME-VERSION.dist-info
// (PEP 376, PEP 427), and the file or folder of setuptools, where the version may
// be left out and -pyX.Y may follow.
var metadata = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*?)(?:-\d[A-Za-z0-9.!+_]*(?:-py\d[\d.]*)?)?\.(?:dist|egg)-info$`)

// Read reads a folder's metadata. One that cannot be read, or is not there, has
// no distributions.
func Read(folder string) *Folder {
	f := &Folder{files: map[string]bool{}, owners: map[string][]string{}}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return f
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	for _, info := range names {
		m := metadata.FindStringSubmatch(info)
		if m == nil {
			continue
		}
		distribution := image.NormalName(m[1])
		f.add(distribution, info)
		for _, file := range filesOf(filepath.Join(folder, info), distribution, names) {
			f.add(distribution, file)
		}
	}
	return f
}

func (f *Folder) add(distribution, file string) {
	f.files[file] = true
	for prefix := file; prefix != "." && !slices.Contains(f.owners[prefix], distribution); prefix = path.Dir(prefix) {
		f.owners[prefix] = append(f.owners[prefix], distribution)
	}
}

// filesOf are the files, or whole packages, of a distribution, relative to the
// folder whose entries are names: from RECORD, else from what setuptools keeps,
// else by its own name.
func filesOf(info, distribution string, names []string) (files []string) {
	if data, err := os.ReadFile(filepath.Join(info, "RECORD")); err == nil {
		return recorded(data)
	}
	if data, err := os.ReadFile(filepath.Join(info, "installed-files.txt")); err == nil {
		for line := range lines(data) {
			files = appendFile(files, path.Join(path.Base(filepath.ToSlash(info)), line))
		}
		return files
	}
	modules := map[string]bool{}
	if data, err := os.ReadFile(filepath.Join(info, "top_level.txt")); err == nil {
		for line := range lines(data) {
			modules[line] = true
		}
	}
	for _, name := range names {
		module, _, _ := strings.Cut(name, ".")
		if modules[module] || len(modules) == 0 && image.NormalName(module) == distribution {
			files = appendFile(files, name)
		}
	}
	return files
}

// recorded are the files that a RECORD lists, up to the first line that is none.
func recorded(data []byte) (files []string) {
	reader := csv.NewReader(bytes.NewReader(data))
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	for record, err := reader.Read(); err == nil; record, err = reader.Read() {
		files = appendFile(files, path.Clean(record[0]))
	}
	return files
}

// appendFile leaves out what lies elsewhere, as programs do, and compiled copies,
// which nothing finds without their source.
func appendFile(files []string, name string) []string {
	if path.IsAbs(name) || name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "__pycache__/") {
		return files
	}
	return append(files, name)
}

func lines(data []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
			if line := strings.TrimSpace(scanner.Text()); line != "" && !yield(line) {
				return
			}
		}
	}
}

// Distributions returns the names of all, in normal form and in order.
func (f *Folder) Distributions() (all []string) {
	for _, owners := range f.owners {
		all = append(all, owners...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Only returns the fewest paths that hold all files that are of some
// distributions alone, and nothing of others, as far as metadata say.
func (f *Folder) Only(are func(distribution string) bool) (paths []string) {
	others := func(distribution string) bool { return !are(distribution) }
	for file := range f.files {
		for end := range len(file) + 1 {
			if end < len(file) && file[end] != '/' {
				continue
			}
			if prefix := file[:end]; !slices.ContainsFunc(f.owners[prefix], others) {
				paths = append(paths, prefix)
				break
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// compiled matches what Python makes of a module's source.
var compiled = regexp.MustCompile(`(^|/)__pycache__/([^/.]+)\.[^/]*\.pyc$`)

// Owners returns the distributions that a file is of, by its path in the folder:
// those that list it, else those that list the most of the path to it; nil where
// no metadata speak of it.
func (f *Folder) Owners(file string) []string {
	for prefix := compiled.ReplaceAllString(file, "$1$2.py"); prefix != "."; prefix = path.Dir(prefix) {
		if owners := f.owners[prefix]; owners != nil {
			return owners
		}
	}
	return nil
}
