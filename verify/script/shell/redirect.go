package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// connects reports a redirection by which bash connects to another machine.
func (s *shell) connects(rd *syntax.Redirect) {
	if rd.Word == nil || s.language == syntax.LangPOSIX || !strings.HasPrefix(source(rd.Word), "/dev/") {
		return
	}
	parts := strings.Split(s.literal(rd.Word), "/")
	if len(parts) != 5 || parts[2] != "tcp" && parts[2] != "udp" || slices.Contains([]string{"localhost", "127.0.0.1", "0.0.0.0", "::1"}, parts[3]) || !Known(parts[3]) {
		return
	}
	s.run.find(Finding{Check: "C22", Warning: s.tested > 0, Path: s.path, Line: s.line(),
		Problem: "connects to " + parts[3] + ", and a grader has no network", Hint: "ship what it fetches"})
}

// terminal is where somebody sits, or nobody.
const terminal = "/dev/tty"

// endlessFiles can be read for ever.
var endlessFiles = []string{"/dev/urandom", "/dev/random", "/dev/zero"}

// redirect applies one redirection; false where it fails for certain.
func (s *shell) redirect(rd *syntax.Redirect) bool {
	errors := rd.N != nil && rd.N.Value != "1"
	s.connects(rd)
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text, err := "", error(nil)
		if rd.Hdoc != nil && s.allSet(rd.Hdoc) {
			text, err = expand.Document(s.config(), rd.Hdoc)
		}
		s.expanded(err)
		s.input, s.hasInput, s.inputLine, s.endless = text, true, 0, false
		if rd.Hdoc != nil && !s.quoted {
			s.inputLine = int(rd.Hdoc.Pos().Line())
		}
	case syntax.WordHdoc:
		s.input, s.hasInput, s.inputLine, s.endless = s.literal(rd.Word)+"\n", true, 0, false
	case syntax.DplOut, syntax.DplIn:
		if rd.Op == syntax.DplOut && !errors && s.literal(rd.Word) != "1" {
			s.output = nil
		}
	case syntax.RdrIn, syntax.RdrInOut:
		from := s.absolute(s.literal(rd.Word))
		n, there := s.run.Tree.Get(from)
		if there == No {
			return false
		}
		s.input, s.hasInput, s.inputLine, s.endless = Unknown, from != terminal, 0, slices.Contains(endlessFiles, from)
		if from == "/dev/null" {
			s.input = ""
		}
		if n.Data != nil {
			s.input = clip(string(n.Data))
		}
	default: // output to a file
		to := s.absolute(s.literal(rd.Word))
		if !errors || rd.Op == syntax.RdrAll || rd.Op == syntax.AppAll {
			s.output = nil
		}
		s.wrote(rd.Op.String(), to)
	}
	return true
}
