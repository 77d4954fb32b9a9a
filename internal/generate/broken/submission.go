package broken

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/picture"
)

// Set is what the cases are made of.
type Set struct {
	Cases      []Case
	base       map[string]file   // of every submission
	rules      map[string][]byte // profiles, the image and the public examples
	vocabulary vocabulary
}

type file struct {
	data       []byte
	executable bool
}

const (
	chatProfile  = "majority.hcl"
	draftProfile = "majority-draft.hcl"
	imageProfile = "majority-image.hcl"
	imageFile    = "image.json"
	weightsFile  = "weights/model.safetensors"
	startCommand = "serve.sh"
)

// Load reads the folder examples/broken and makes the model and the examples.
func Load(folder fs.FS) (*Set, error) {
	s := &Set{base: map[string]file{}, rules: map[string][]byte{}, vocabulary: newVocabulary()}
	if err := s.readBase(folder); err != nil {
		return nil, err
	}
	names, err := fs.Glob(folder, "*.hcl")
	if err != nil {
		return nil, err
	}
	for _, name := range append(names, imageFile) {
		if s.rules[name], err = fs.ReadFile(folder, name); err != nil {
			return nil, err
		}
	}
	if err := s.generate(); err != nil {
		return nil, err
	}
	cases, err := fs.Sub(folder, "cases")
	if err != nil {
		return nil, err
	}
	s.Cases, err = readCases(cases)
	return s, err
}

func (s *Set) readBase(folder fs.FS) error {
	return fs.WalkDir(folder, "base", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, name)
		name = strings.TrimPrefix(name, "base/")
		s.base[name] = file{data, name == startCommand}
		return err
	})
}

// generate adds the files that are made, not kept.
func (s *Set) generate() error {
	v := s.vocabulary
	for name, produce := range map[string]func() ([]byte, error){
		weightsFile:                     func() ([]byte, error) { return weights(v, afterWord) },
		"weights/config.json":           func() ([]byte, error) { return config(v) },
		"weights/tokenizer.json":        v.tokenizer,
		"weights/tokenizer_config.json": tokenizerConfig,
	} {
		data, err := produce()
		if err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		s.base[name] = file{data: data}
	}
	var err error
	if s.rules["majority.questions.jsonl"], err = questionsFile(); err != nil {
		return err
	}
	if s.rules["majority.continuations.jsonl"], err = continuationsFile(v); err != nil {
		return err
	}
	for name, c := range colours {
		s.rules[pictureName(name)] = picture.Small(c).Data
	}
	s.rules["majority-image.questions.jsonl"], err = lines(makeImageQuestions())
	return err
}

// Clean is a case without a fault, checked with a profile.
func (s *Set) Clean(profile string) *Case {
	return &Case{Name: "clean", Profile: profile}
}

// Written is a submission on disk, with the profile that it is for.
type Written struct{ Folder, Profile string }

// Write writes a case's submission, or its fixed twin, below folder, beside the
// profile, the image and the public examples that it is checked with.
func (s *Set) Write(folder string, c *Case, fixed bool) (Written, error) {
	files, rules, err := s.apply(c, fixed)
	if err != nil {
		return Written{}, fmt.Errorf("make case %s: %w", c.Name, err)
	}
	name := c.Name
	if fixed {
		name += ".fixed"
	}
	out := Written{filepath.Join(folder, name), filepath.Join(folder, c.Profile)}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(0o644)
		if files[p].executable {
			mode = 0o755
		}
		if err := writeFile(filepath.Join(out.Folder, filepath.FromSlash(p)), files[p].data, mode); err != nil {
			return Written{}, err
		}
	}
	if c.ownRules() {
		out.Profile = filepath.Join(folder, name+".hcl")
		image := name + "." + imageFile
		rules[image] = rules[imageFile]
		delete(rules, imageFile)
		rules[name+".hcl"] = bytes.ReplaceAll(rules[c.Profile], []byte(strconv.Quote(imageFile)), []byte(strconv.Quote(image)))
		delete(rules, c.Profile)
	}
	for _, p := range slices.Sorted(maps.Keys(rules)) {
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(p)), rules[p], 0o644); err != nil {
			return Written{}, err
		}
	}
	return out, nil
}

func writeFile(name string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name, data, mode); err != nil {
		return err
	}
	return os.Chmod(name, mode) // whatever the umask
}

// ownRules reports whether a case changes its profile or its image.
func (c *Case) ownRules() bool { return slices.ContainsFunc(c.changes, change.ofRules) }

func (c change) ofRules() bool { return c.path == imageFile || path.Ext(c.path) == ".hcl" }

// apply returns the files of a case's submission and the rules it is checked
// with.
func (s *Set) apply(c *Case, fixed bool) (files map[string]file, rules map[string][]byte, err error) {
	files, rules = maps.Clone(s.base), maps.Clone(s.rules)
	if c.Profile == draftProfile {
		data, err := weights(s.vocabulary, never)
		if err != nil {
			return nil, nil, err
		}
		files[weightsFile] = file{data: data}
	}
	alterations := []change{} // of whole files: after what is in them
	for _, change := range c.changes {
		if !fixed && change.of == ofTwin || fixed && change.of == ofFault {
			continue
		}
		if change.act != "file" && change.act != "edit" {
			alterations = append(alterations, change)
			continue
		}
		if change.ofRules() {
			rules[change.path], err = change.content(rules[change.path])
		} else {
			f := files[change.path]
			f.executable = f.executable || bytes.HasPrefix(change.data, []byte("#!"))
			f.data, err = change.content(f.data)
			files[change.path] = f
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", change.path, err)
		}
	}
	for _, change := range alterations {
		f := files[change.path]
		if err := change.alter(&f, s.vocabulary); err != nil {
			return nil, nil, fmt.Errorf("%s %s: %w", change.act, change.path, err)
		}
		files[change.path] = f
	}
	return files, rules, packWheels(files)
}

func (c change) content(before []byte) ([]byte, error) {
	if c.act == "edit" {
		return edited(before, c.data)
	}
	return c.data, nil
}

// alter does what no archive of text can hold.
func (c change) alter(f *file, v vocabulary) (err error) {
	switch c.act {
	case "crlf":
		f.data = bytes.ReplaceAll(f.data, []byte("\n"), []byte("\r\n"))
	case "mode":
		f.executable = c.rest != "0644"
	case "append":
		var count int
		if count, err = strconv.Atoi(c.rest); err != nil || count < 1 || count > 16<<20 {
			return fmt.Errorf("%q is no small number of bytes", c.rest)
		}
		f.data = append(slices.Clone(f.data), make([]byte, count)...)
	case "drop":
		f.data, err = weights(v, afterWord, c.rest)
	}
	return err
}
