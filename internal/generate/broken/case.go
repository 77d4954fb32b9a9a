package broken

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Case is one fault, and what must be said of it.
type Case struct {
	Name  string
	Title string // what is wrong, in a sentence
	From  string // where it is known from

	Profile string // that it is checked with: majority.hcl, for drafters majority-draft.hcl, with images majority-image.hcl

	Gate      string   // the one that fails, and no other
	Sandboxed bool     // and does so only where the submission is started in the sandbox
	Says      []string // texts that the gate's findings hold
	Observed  []Saying // what is seen of others that it explains
	Needs     []string // programs without which the fault does not show
	Lacks     []string // Python packages with which the fault does not show

	changes []change // in order
}

// Saying is a text that a gate's findings hold.
type Saying struct {
	Gate, Text string
	Sandboxed  bool // there alone
}

// change is something that makes a submission differ from the base.
type change struct {
	of   string // whose: fault, twin or both
	act  string // file, edit, crlf, mode, append or drop
	path string
	data []byte // of file and edit
	rest string // argument of mode, append and drop
}

const (
	ofFault = "fault"
	ofTwin  = "fixed"
	ofBoth  = "both"
)

// readCases reads every case of a folder, sorted by name.
func readCases(folder fs.FS) ([]Case, error) {
	names, err := fs.Glob(folder, "*.txtar")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, name := range names {
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		c, err := readCase(strings.TrimSuffix(path.Base(name), ".txtar"), data)
		if err != nil {
			return nil, fmt.Errorf("read case %s: %w", name, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("read cases: there is none")
	}
	return all, nil
}

// readCase reads an archive whose comment begins with the title and goes on with
// "key: value" lines.
func readCase(name string, data []byte) (Case, error) {
	c := Case{Name: name, Profile: chatProfile}
	comment, sections := readArchive(data)
	title, keys, _ := strings.Cut(comment, "\n\n")
	c.Title = strings.Join(strings.Fields(title), " ")
	for line := range strings.SplitSeq(strings.TrimSpace(keys), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		if err := c.header(key, value); err != nil {
			return c, err
		}
	}
	for _, s := range sections {
		c.changes = append(c.changes, fileChange(s))
	}
	for _, change := range c.changes {
		if !filepath.IsLocal(change.path) {
			return c, fmt.Errorf("path %q leaves the submission", change.path)
		}
	}
	switch {
	case c.Title == "" || c.From == "":
		return c, errors.New("it has no title or does not say where it is from")
	case c.Gate == "":
		return c, errors.New("it does not say which gate fails")
	case len(c.changes) == 0:
		return c, errors.New("it changes nothing")
	}
	return c, nil
}

func (c *Case) header(key, value string) error {
	switch key {
	case "from":
		c.From = value
	case "fails", "fails in the sandbox":
		if c.Gate != "" || len(strings.Fields(value)) != 1 {
			return fmt.Errorf("%s %q: a case is one fault, and fails one gate", key, value)
		}
		c.Gate, c.Sandboxed = value, key != "fails"
	case "profile":
		if c.Profile = value; value != draftProfile && value != imageProfile {
			return fmt.Errorf("profile %q is neither %s nor %s", value, draftProfile, imageProfile)
		}
	case "lacks":
		c.Lacks = strings.Fields(value)
	case "needs":
		c.Needs = strings.Fields(value)
	case "says":
		c.Says = append(c.Says, value)
	case "observed", "observed in the sandbox":
		gate, text, ok := strings.Cut(value, ": ")
		if !ok {
			return fmt.Errorf("%s %q names no gate", key, value)
		}
		c.Observed = append(c.Observed, Saying{gate, text, key != "observed"})
	case "crlf", "mode", "append", "drop":
		target, rest, _ := strings.Cut(value, " ")
		c.changes = append(c.changes, change{of: ofFault, act: key, path: target, rest: rest})
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

// fileChange reads "[edit ][fixed/|both/]PATH".
func fileChange(s section) change {
	c := change{of: ofFault, act: "file", path: s.name, data: s.data}
	if rest, ok := strings.CutPrefix(c.path, "edit "); ok {
		c.act, c.path = "edit", rest
	}
	for _, of := range []string{ofTwin, ofBoth} {
		if rest, ok := strings.CutPrefix(c.path, of+"/"); ok {
			c.of, c.path = of, rest
		}
	}
	return c
}

// OwnTwin reports whether the fixed twin differs from the base submission.
func (c *Case) OwnTwin() bool {
	return slices.ContainsFunc(c.changes, func(change change) bool { return change.of != ofFault })
}

// Failed reports whether the case replays a submission that really failed, one of
// those that this project began with.
func (c *Case) Failed() bool { return strings.HasPrefix(c.From, "failed submission") }
