package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Import is one that was tried.
type Import struct {
	Statement string
	Path      string // of the file that it stands in, in the submission; "" for a module that was tried by its name
	Line      int
	Why       Why
	Wheel     string   // that the module is of
	Problem   string   // the exception's last line, or what else became of it; "" for an import that goes well
	Certain   bool     // whoever calls its function meets it, and what it needs is nowhere; else there may be a reason
	Files     []string // of the submission, that it imports
	Late      bool     // it did not end in time, which is no fault on a slow machine
}

// Why an import was tried.
type Why int

// Reached are imports in functions and branches of what the server is made of;
// Computed are the submission's other modules where it imports some by a name that
// only a run knows; Own those where it does not; OfWheel are modules of shipped
// wheels that nothing of these names.
const (
	Reached Why = iota
	Computed
	Own
	OfWheel
)

// Modules is what became of the imports that were tried.
type Modules struct {
	Tried  int
	Failed []Import
	Open   string // why not all were tried; "" where they were
	Gone   bool   // because what they need went with the server
}

// modulesTime is what all trials together may take.
const modulesTime = 3 * time.Minute

// mostRestarts is how often the interpreter may end in the middle of an import.
const mostRestarts = 8

// TryModules tries the imports of a server, whose submission lies at root, that
// its start did not try. One that fails is tried once more alone, so that what
// an earlier import left in the interpreter does not count.
func (p *Program) TryModules(ctx context.Context, place Place, root string) Modules {
	return p.tryModules(ctx, place, root, modulesTime)
}

func (p *Program) tryModules(ctx context.Context, place Place, root string, limit time.Duration) (m Modules) {
	deadline := time.Now().Add(limit)
	over := func() bool { return ctx.Err() != nil || !time.Now().Before(deadline) }
	for next, restarts := 0, 0; ; restarts++ {
		r := p.tryFrom(ctx, place, root, next, -1, time.Until(deadline))
		m.Tried += len(r.imports)
		for _, i := range r.imports {
			if i.Problem != "" && !i.Late && i.Why != OfWheel {
				if over() {
					m.Open = "the time for the trials was over before each that failed could be tried alone"
					break
				}
				again := p.tryFrom(ctx, place, root, 0, i.number, time.Until(deadline))
				if again.well() {
					continue
				}
				i.Certain = i.Certain && len(again.imports) == 1 && again.imports[0].Certain
				if again.late() {
					i.Late, i.Problem = true, i.Problem+", and there was no time to try it alone"
				}
			}
			if i.Problem != "" {
				m.Failed = append(m.Failed, i.Import)
			}
		}
		switch {
		case m.Open != "":
			return m
		case r.open != "":
			m.Open, m.Gone = r.open, r.gone
			return m
		case r.done:
			m.Open = r.unread
			return m
		case len(r.imports) == 0, restarts == mostRestarts, over():
			m.Open = "the trials did not come to their end"
			return m
		}
		next = r.imports[len(r.imports)-1].number + 1
	}
}

type numbered struct {
	Import
	number int
}

// trial is what one run of the interpreter came to.
type trial struct {
	imports []numbered // the last one ended the interpreter where done is false
	done    bool
	ranOut  bool   // its time
	unread  string // a file that was not searched for imports, and why
	open    string
	gone    bool // what is needed for any trial went with the server
}

// well reports whether the one import of a trial went well.
func (t trial) well() bool { return t.done && len(t.imports) == 1 && t.imports[0].Problem == "" }

// late reports whether time ran out on the one import of a trial.
func (t trial) late() bool { return t.ranOut || len(t.imports) == 1 && t.imports[0].Late }

func (p *Program) tryFrom(ctx context.Context, place Place, root string, first, only int, limit time.Duration) (t trial) {
	words := append([]string{root, strconv.Itoa(first), strconv.Itoa(only)}, p.Args...)
	said, output, ended := p.run(ctx, place, false, max(limit, time.Second), modulesProgram, words...)
	t.ranOut = errors.Is(ended, ErrLate)
	open := false // an import has begun and not ended
	for _, data := range said {
		var line struct {
			Number          *int
			Statement, Path string
			Line            int
			Why, Lost       string
			Unread          string
			Ended           *string
			Certain         bool
			Files           []string
			Late            int
			Done            bool
		}
		if err := json.Unmarshal(data, &line); err != nil {
			continue
		}
		last := len(t.imports) - 1
		switch {
		case line.Lost != "":
			t.gone, t.open = true, fmt.Sprintf("%s, which was on PYTHONPATH, went with the server", line.Lost)
			return t
		case line.Unread != "":
			t.unread = fmt.Sprintf("%s was not searched for imports: %s", line.Path, line.Unread)
		case line.Done:
			t.done = true
		case line.Number != nil:
			i := Import{Statement: line.Statement, Path: line.Path, Line: line.Line, Files: line.Files}
			i.Why, i.Wheel = whyOf(line.Why)
			t.imports, open = append(t.imports, numbered{i, *line.Number}), true
		case line.Late > 0 && last >= 0:
			t.imports[last].Problem, t.imports[last].Late, open = fmt.Sprintf("it did not end within %d s", line.Late), true, false
		case line.Ended != nil && last >= 0:
			t.imports[last].Problem, t.imports[last].Certain, open = *line.Ended, line.Certain, false
		}
	}
	if len(t.imports) == 0 && !t.done {
		t.open = "nothing was tried: " + endOf(output, ended)
		t.gone = ended != nil && strings.Contains(ended.Error(), "no such file or directory") // its folder, or its interpreter
		return t
	}
	switch last := len(t.imports) - 1; {
	case open && t.ranOut:
		t.imports[last].Problem, t.imports[last].Late = ended.Error(), true
	case open:
		t.imports[last].Problem = "it ended the interpreter: " + endOf("", ended)
	}
	return t
}

func whyOf(text string) (Why, string) {
	switch text {
	case "reached":
		return Reached, ""
	case "computed":
		return Computed, ""
	case "own":
		return Own, ""
	}
	return OfWheel, text
}
