package verify

import (
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/texts"
	"slipway/verify/words"
)

// decideLookup looks for tables that answers could be read from. It judges the
// shape of the data, not what code does with it.
func decideLookup(e *evidence) outcome {
	var o outcome
	for _, f := range e.tree.Files {
		if facts := e.facts[f.Path]; facts.Err == nil {
			if what := texts.Database(f.Path, facts.Head); what != "" {
				o.Fail(report.Finding{Path: f.Path, Problem: "is " + what + ", which answers can be looked up in", Hint: texts.NoTable})
			}
		}
	}
	read := e.prose()
	for _, f := range read {
		if !isDescription(f.Path) {
			o.add(texts.Tables(f))
		}
	}
	o.Note("%s looked through for tables of answers", words.Plural(len(read), "text file"))
	for _, p := range e.unread() {
		if slices.Contains([]string{".json", ".jsonl", ".csv", ".tsv", ".py", ".txt"}, strings.ToLower(path.Ext(p))) {
			o.Warn(report.Finding{Path: p, Problem: "is too large to be looked through for answers", Hint: "remove it if no code reads it"})
		}
	}
	return o
}

// isDescription reports whether a file is one whose form the task or a library
// prescribes.
func isDescription(p string) bool {
	names := []string{
		configName, generationName, architecturePath, startingPath, backbonePath, manifest.QuantizationPath, manifest.InventoryPath,
		"preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json", "chat_template.json", "requirements.txt",
	}
	return slices.Contains(names, path.Base(p)) || strings.HasPrefix(path.Base(p), "LICENSE")
}
