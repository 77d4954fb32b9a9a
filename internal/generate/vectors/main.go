// Command vectors writes verify/testdata/vectors: a clean toy submission, and
// for each known way to cheat or to go wrong a file that says how to make that
// one fault of it, which gate must fail, which tensor or file it must name, what
// it must say of it, and under which counting rules.
// Beside every fault stands a twin, the nearest submission without it, which
// must pass: so that a rule which refuses everything fails too. The program is
// the readable form of the vectors; the same program writes the same bytes.
//
//	go run ./internal/generate/vectors
package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway/internal/generate/patch"
)

// folder is where the vectors are kept, from the root of the repository.
const folder = "verify/testdata/vectors"

// The names within folder.
const (
	cleanFolder  = "clean"         // the submission that is edited
	baseFolder   = "base"          // some weights of the base that it was made from
	contractFile = "contract.json" // the base's contract
	elsewhere    = "elsewhere.txt" // the cases that no file of edits can show
	suffix       = ".vector"
	twinLine     = "== twin ==\n"
)

func main() {
	if err := write(folder); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

// write replaces the vectors in a folder.
func write(root string) error {
	all, err := contents()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	for name, data := range all {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// contents returns all files below the folder.
func contents() (map[string][]byte, error) {
	all := map[string][]byte{elsewhere: []byte(elsewhereText)}
	clean := newSubmission()
	files, err := clean.files()
	if err != nil {
		return nil, err
	}
	for p, data := range files.Content {
		all[cleanFolder+"/"+p] = data
	}
	base, err := encodeShard(clean.base)
	if err != nil {
		return nil, err
	}
	all[baseFolder+"/model.safetensors"] = base
	if all[contractFile], err = toyModel().Contract().Encode(); err != nil {
		return nil, err
	}
	for _, v := range vectors() {
		text, err := v.text(files)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", v.id, v.fault, err)
		}
		name := v.id + "-" + slug(v.fault) + suffix
		if all[name] != nil {
			return nil, fmt.Errorf("two vectors are called %s", name)
		}
		all[name] = []byte(text)
	}
	return all, nil
}

// vector is one fault and its clean twin.
type vector struct {
	id    string // "A30"
	fault string
	gate  string // the one that fails; "" where nothing may
	warns string // the one that warns, where none fails
	names string // the tensor or file that must be named
	says  string // what else the finding must say; nothing where no gate may say anything
	rules string // "no spare tensors", "task bounds", "any group"; "" is wide bounds
	count string // the counting rules that it is one fault under; "" is bothCounts
	asks  string // a gate that is asked beside those that all vectors are
	base  bool   // the base's weights are at hand

	alter    func(*submission)
	twin     func(*submission) // nil: the clean submission itself
	twinText string
}

// The counting rules, as a vector's header lists them.
const (
	bothCounts = "observed, strict"
	observed   = "observed"
	strict     = "strict"
)

// nothing is what the gates say of what must not be taken for a fault.
const nothing = "nothing"

// text writes the vector's file.
func (v vector) text(clean patch.Files) (string, error) {
	var out strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%-7s %s\n", name+":", value)
		}
	}
	line("case", v.id)
	line("fault", v.fault)
	line("fails", v.gate)
	line("warns", v.warns)
	line("names", v.names)
	line("says", v.says)
	line("rules", v.rules)
	line("asks", v.asks)
	if v.base {
		line("base", "at hand")
	}
	line("counts", cmp.Or(v.count, bothCounts))
	line("twin", cmp.Or(v.twinText, "the clean submission"))
	out.WriteString("\n")
	fault, err := v.edits(clean, v.alter)
	if err != nil {
		return "", err
	}
	twin, err := v.edits(clean, v.twin)
	if err != nil {
		return "", err
	}
	out.WriteString(fault + twinLine + twin)
	return out.String(), nil
}

func (v vector) edits(clean patch.Files, alter func(*submission)) (string, error) {
	s := newSubmission()
	if alter != nil {
		alter(s)
	}
	files, err := s.files()
	if err != nil {
		return "", err
	}
	return patch.Diff(clean, files), nil
}

// slug makes a file name of a fault's text.
func slug(text string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			out.WriteRune(r)
		case out.Len() > 0 && !strings.HasSuffix(out.String(), "-"):
			out.WriteByte('-')
		}
	}
	return strings.TrimSuffix(out.String(), "-")
}
