package verify

import (
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/texts"
	"slipway/verify/words"
)

func decideSecrets(e *evidence) outcome {
	var o outcome
	for _, f := range e.tree.Files {
		facts := e.facts[f.Path]
		if what := texts.CredentialFile(f.Path); what != "" && what != "an environment" && facts.Err == nil && f.Size > 0 {
			o.Fail(report.Finding{Path: f.Path, Problem: "is a file that holds " + what, Hint: texts.Revoke})
		}
	}
	read := e.prose()
	for _, f := range read {
		o.add(texts.Secrets(f))
	}
	o.Note("%s searched for keys, tokens and passwords", words.Plural(len(read), "text file"))
	if unread := e.unread(); len(unread) > 0 {
		o.Note("too large to be searched: %s", manifest.Clip(strings.Join(unread, ", ")))
	}
	return o
}
