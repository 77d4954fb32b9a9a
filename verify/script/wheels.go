package script

import (
	"archive/zip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"slipway/verify/image"
	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// Bounds of the source that is read from one wheel.
const (
	maxSourceBytes  = 64 << 20 // of one file
	maxSourcesBytes = 64 << 20 // of all
	maxSourceFiles  = 200
	maxUnpacked     = 1000 // times a wheel's size: deflate's limit
)

// Wheel is what a shipped wheel says of the programs that it brings.
type Wheel struct {
	Path         string
	Distribution string            // normalised
	Scripts      map[string]string // console scripts: the module that each starts
	Sources      map[string][]byte // by installed path, as "package/module.py"
	Hooks        []string          // .pth files, which Python reads as it starts
	Unpacked     int64             // bytes, as its directory says; 0: not known
	Modules      int               // .py files, which pip compiles
}

// ReadWheel reads from a wheel of size bytes the source of what a shell script
// could start: modules and console scripts whose names are among words, what
// these import of the same wheel, and where known servers declare their options.
// Nothing is unpacked; file is the wheel's path. An error says that it is no ZIP
// archive, or that a member could not be read.
func ReadWheel(file string, r io.ReaderAt, size int64, words map[string]bool) (Wheel, error) {
	w := Wheel{Path: file, Distribution: distributionOf(path.Base(file)), Scripts: map[string]string{}, Sources: map[string][]byte{}}
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return w, fmt.Errorf("read directory of %s: %w", file, err)
	}
	in := wheelReader{members: map[string]*zip.File{}, left: maxSourcesBytes}
	for _, f := range archive.File {
		name := installedPath(f.Name)
		in.members[name] = f
		if path.Ext(name) == ".py" {
			w.Modules++
		}
		w.Unpacked = min(w.Unpacked+int64(min(f.UncompressedSize64, uint64(maxUnpacked*size))), maxUnpacked*size)
		if path.Ext(name) == ".pth" && !strings.Contains(name, "/") && w.Distribution != "setuptools" {
			w.Hooks = append(w.Hooks, name)
		}
	}
	slices.Sort(w.Hooks)
	if err := w.readScripts(&in); err != nil {
		return w, fmt.Errorf("read entry_points.txt of %s: %w", file, err)
	}
	for _, name := range w.wanted(&in, words) {
		if err := w.read(&in, name); err != nil {
			return w, fmt.Errorf("read %s of %s: %w", name, file, err)
		}
	}
	return w, nil
}

// wheelReader is a wheel while it is read.
type wheelReader struct {
	members map[string]*zip.File // by installed path
	left    int64
}

// installedPath is where an installer puts a member, from site-packages (PyPA,
// "Binary distribution format": the .data folder).
func installedPath(p string) string {
	parts := strings.SplitN(p, "/", 3)
	if len(parts) == 3 && strings.HasSuffix(parts[0], ".data") && (parts[1] == "purelib" || parts[1] == "platlib") {
		return parts[2]
	}
	return p
}

func (in *wheelReader) text(f *zip.File) ([]byte, error) {
	limit := min(in.left, maxSourceBytes)
	if f.UncompressedSize64 > uint64(limit) {
		return nil, nil
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit))
	in.left -= int64(len(data))
	return data, err
}

// readScripts reads the console scripts (PyPA, "Entry points specification").
func (w *Wheel) readScripts(in *wheelReader) error {
	for name, f := range in.members {
		folder, base := path.Split(name)
		if base != "entry_points.txt" || !strings.HasSuffix(folder, ".dist-info/") || strings.Count(name, "/") != 1 {
			continue
		}
		data, err := in.text(f)
		if err != nil {
			return err
		}
		group := ""
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				group = strings.Trim(line, "[] \t")
				continue
			}
			if script, target, ok := strings.Cut(line, "="); ok && group == "console_scripts" && !strings.HasPrefix(line, "#") {
				module, _, _ := strings.Cut(target, ":")
				w.Scripts[strings.TrimSpace(script)] = strings.TrimSpace(module)
			}
		}
	}
	return nil
}

// wanted lists the files to begin with, sorted.
func (w *Wheel) wanted(in *wheelReader, words map[string]bool) (files []string) {
	modules := map[string]bool{}
	for script, module := range w.Scripts {
		if words[script] {
			modules[module] = true
		}
	}
	sources, mentioned := serverSources[w.Distribution], words[w.Distribution]
	for word := range words {
		mentioned = mentioned || strings.HasPrefix(word, w.Distribution+".")
	}
	for name := range in.members {
		module := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(name, ".py"), "/__main__"), "/", ".")
		isServer := mentioned && slices.ContainsFunc(sources, func(s string) bool {
			return name == s || strings.HasSuffix(s, "/") && strings.HasPrefix(name, s)
		})
		if strings.HasSuffix(name, ".py") && (words[module] || modules[strings.TrimSuffix(module, ".__init__")] || isServer) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// read reads a file and, unless it is a known server's, what it imports of the
// same wheel.
func (w *Wheel) read(in *wheelReader, name string) error {
	f := in.members[name]
	if f == nil || w.Sources[name] != nil || len(w.Sources) >= maxSourceFiles {
		return nil
	}
	data, err := in.text(f)
	if err != nil || data == nil {
		return err
	}
	w.Sources[name] = data
	if serverSources[w.Distribution] != nil {
		return nil
	}
	for _, imported := range w.imports(name, func(p string) bool { return in.members[p] != nil }) {
		if err := w.read(in, imported); err != nil {
			return err
		}
	}
	return nil
}

// imports are the wheel's files that one of its files may load.
func (w *Wheel) imports(name string, has func(string) bool) (files []string) {
	for _, i := range python.Scan(w.Sources[name]).Imports {
		module, folder := i.Module, ""
		if strings.HasPrefix(module, ".") {
			folder = path.Dir(name)
			for module = module[1:]; strings.HasPrefix(module, "."); module = module[1:] {
				folder = path.Dir(folder)
			}
		}
		names := []string{module}
		for _, n := range i.Names {
			names = append(names, strings.TrimPrefix(module+"."+n, "."))
		}
		for _, n := range names {
			p := path.Join(folder, strings.ReplaceAll(n, ".", "/"))
			for _, candidate := range []string{p + ".py", path.Join(p, "__init__.py")} {
				if has(candidate) && !slices.Contains(files, candidate) {
					files = append(files, candidate)
				}
			}
		}
	}
	return files
}

// file is the one that a module's start runs, or "".
func (w *Wheel) file(module string) string {
	p := strings.ReplaceAll(module, ".", "/")
	for _, name := range []string{p + ".py", p + "/__main__.py", p + "/__init__.py"} {
		if w.Sources[name] != nil {
			return name
		}
	}
	return ""
}

// startedOf finds what a command starts of a shipped wheel, and its arguments.
func (a *analysis) startedOf(r *shell.Run, st *shell.Step) (w *Wheel, file string, args []string) {
	p, isPython := shell.PythonOf(st.Argv)
	for i := range a.shippedWheels {
		w := &a.shippedWheels[i]
		switch {
		case isPython && p.Module != "" && a.moduleOf(r, st, p) == "":
			if file := w.file(p.Module); file != "" {
				return w, file, p.Args
			}
		case !isPython:
			if n, _ := r.Tree.Get(absoluteIn(st.Folder, st.Argv[0])); n != nil && n.Source != "" {
				continue // shipped beside the wheel
			}
			if module, ok := w.Scripts[path.Base(st.Argv[0])]; ok {
				if file := w.file(module); file != "" {
					return w, file, st.Argv[1:]
				}
			}
		}
	}
	return nil, "", nil
}

// checkWheelArguments holds the command line of a program that a shipped wheel
// brings against the options that it declares, and reports whether it is one.
func (a *analysis) checkWheelArguments(r *shell.Run, st *shell.Step, main bool) bool {
	w, file, args := a.startedOf(r, st)
	if w == nil || serverSources[w.Distribution] != nil {
		return false
	}
	declares, m := w.declaring(file)
	name := w.Path + ": " + declares
	switch {
	case m.OpenEnded == python.ReadsNone:
	case m.OpenEnded != "":
		if len(args) > 0 {
			a.note(fmt.Sprintf("the options of %s were not checked: %s", name, m.OpenEnded))
		}
	default:
		a.addArgumentFaults(m, name, args, st, main)
	}
	return true
}

// declaring finds the file that reads the command line: the one that is started,
// or the first that it imports.
func (w *Wheel) declaring(file string) (string, python.Module) {
	queue, seen := []string{file}, map[string]bool{file: true}
	for i := 0; i < len(queue); i++ {
		m := python.Scan(w.Sources[queue[i]])
		if m.OpenEnded != python.ReadsNone {
			return queue[i], m
		}
		for _, next := range w.imports(queue[i], func(p string) bool { return w.Sources[p] != nil }) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return file, python.Module{OpenEnded: python.ReadsNone}
}

// normalWheels orders wheels, and leaves out those of which nothing was read.
func normalWheels(wheels []Wheel) (kept []Wheel) {
	for _, w := range wheels {
		if len(w.Sources)+len(w.Hooks) > 0 || w.Unpacked > 0 {
			w.Distribution = image.NormalName(w.Distribution)
			kept = append(kept, w)
		}
	}
	slices.SortFunc(kept, func(x, y Wheel) int { return strings.Compare(x.Path, y.Path) })
	return kept
}
