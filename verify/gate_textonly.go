package verify

import (
	"fmt"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/script"
	"slipway/verify/words"
)

// Arguments of the servers' commands, as vLLM and SGLang name them.
var (
	speculativeFlags = []string{
		"--speculative", "--num-speculative", "--spec-decode", "--enable-mtp", "--mtp", "--draft-model", "--enable-multi-layer-eagle",
	}
	textOnlyFlag = "--language-model-only" // vLLM leaves the vision tower out
)

// decideTextOnly asks what vision and MTP tensors are stored, and whether what
// serves leaves them alone.
func decideTextOnly(e *evidence) outcome {
	var o outcome
	a := e.analyse()
	for _, c := range a.Commands {
		for _, word := range c.Argv {
			if isSpeculative(word) {
				o.Fail(report.Finding{Path: c.Path, Problem: fmt.Sprintf("line %d starts the server with %s", c.Line, manifest.Clip(word)),
					Hint: "remove it: only the main language model may produce the answers"})
			}
		}
	}
	if e.blocked != "" {
		return o.or(undecided(e.blocked))
	}
	vision, mtp := e.besidesText()
	stored := storedBesides(vision, mtp)
	switch {
	case vision+mtp == 0:
		o.Note("no vision or MTP tensor is stored")
		return o
	case e.ownRuntime() == report.Pass:
		o.Note("%s; the runtime's source, which %s was built from, shows that it does not read them", stored, runtimeProgram)
		return o
	case e.ownRuntime() == report.Undecided:
		return o.or(undecided(stored + "; whether the server is the one whose source is shipped, gate rebuild has not decided"))
	case a.Main < 0:
		return o.or(undecided(stored + "; what serves is not known: see gate script"))
	}
	return o.or(e.servesTextOnly(a, stored))
}

// storedBesides says what is stored beside the text model.
func storedBesides(vision, mtp int) string {
	var parts []string
	if vision > 0 {
		parts = append(parts, words.Are(int64(vision), "vision tensor")+" stored")
	}
	if mtp > 0 {
		parts = append(parts, words.Are(int64(mtp), "MTP tensor")+" stored")
	}
	return strings.Join(parts, ", ")
}

// or returns other's status, with the findings of both.
func (o outcome) or(other outcome) outcome {
	other.Findings = append(o.Findings, other.Findings...)
	other.Notes = append(o.Notes, other.Notes...)
	return other
}

// servesTextOnly judges the command that serves, and the branches that may take
// its place.
func (e *evidence) servesTextOnly(a *script.Analysis, stored string) (o outcome) {
	main := a.Commands[a.Main]
	if !hasWord(main.Argv, textOnlyFlag) {
		return undecided(fmt.Sprintf("%s; the server is not started with %s, and what its code does with them is for a reviewer to read", stored, textOnlyFlag))
	}
	for i, c := range a.Commands {
		if i != a.Main && sameProgram(c.Argv, main.Argv) && !hasWord(c.Argv, textOnlyFlag) {
			o.Warn(report.Finding{Path: c.Path, Problem: fmt.Sprintf("line %d starts the server without %s", c.Line, textOnlyFlag), Got: c.Branch,
				Hint: "start it with the same arguments in every branch, or remove the branch"})
		}
	}
	o.Note("%s; the server is started with %s", stored, textOnlyFlag)
	return o
}

func isSpeculative(word string) bool {
	name, _, _ := strings.Cut(strings.ReplaceAll(word, "_", "-"), "=")
	for _, flag := range speculativeFlags {
		if name == flag || strings.HasPrefix(name, flag+"-") || strings.HasPrefix(name, flag+".") {
			return true
		}
	}
	return false
}

func hasWord(words []string, want string) bool {
	for _, w := range words {
		if w == want || strings.HasPrefix(w, want+"=") && !strings.HasSuffix(strings.ToLower(w), "=false") {
			return true
		}
	}
	return false
}

// sameProgram reports whether two commands start the same: the program, and the
// script or module that an interpreter runs.
func sameProgram(a, b []string) bool {
	n := min(3, len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return strings.HasPrefix(a[i], "-") && strings.HasPrefix(b[i], "-") && i > 1
		}
	}
	return n > 0
}

// besidesText counts the stored tensors that are no part of the text model.
func (e *evidence) besidesText() (vision, mtp int) {
	for key := range e.stored {
		switch e.roleOf(key) {
		case manifest.RoleVision:
			vision++
		case manifest.RoleMTP:
			mtp++
		}
	}
	return vision, mtp
}

// roleOf says what a stored tensor is a part of: by the contract under its own
// name or its entry's, else by its name.
func (e *evidence) roleOf(key manifest.StoredTensor) manifest.Role {
	names := []string{key.Tensor}
	for _, use := range e.sub.uses[key] {
		names = append(names, use.Entry)
	}
	role := manifest.RoleBackbone
	for _, name := range names {
		r := manifest.RoleOf(name)
		if e.base != nil {
			if t, known := e.base.Tensors[name]; known {
				r = t.Role
			}
		}
		if r == manifest.RoleVision || r == manifest.RoleMTP {
			role = r
		}
	}
	return role
}

// ownRuntime says whether what serves is the program that the shipped source
// builds: Pass, Undecided where it was not built here, Fail or NotApplicable
// where it is not or there is none.
func (e *evidence) ownRuntime() report.Status {
	a := e.analyse()
	if a.Main < 0 || len(a.Commands[a.Main].Argv) == 0 || !strings.HasSuffix(a.Commands[a.Main].Argv[0], "/"+runtimeProgram) && a.Commands[a.Main].Argv[0] != runtimeProgram {
		return report.NotApplicable
	}
	o := decideRebuild(e)
	switch {
	case o.Status != "":
		return o.Status
	case len(o.Findings) > 0:
		return report.Fail
	}
	return report.Pass
}
