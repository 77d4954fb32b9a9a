package verify

import (
	"fmt"
	"maps"
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
	read, python := e.prose(), e.searchPython()
	written := map[string]int64{}
	for _, f := range read {
		if !isDescription(f.Path) {
			found, searched := python.tables[f.Path]
			if !searched && !texts.IsPython(f.Path) {
				found = texts.Tables(f)
			}
			o.add(found)
			if !isEncoded(e.facts[f.Path]) {
				written[f.Path] = found.Written
			}
		}
	}
	o.asFarAsSearched(python)
	o.Note("%s looked through for tables of answers", words.Plural(len(read)-len(python.beyond), "text file"))
	for _, p := range e.unread() {
		if size := e.facts[p].Size; path.Ext(p) == ".py" && size > maxProseBytes && !isEncoded(e.facts[p]) {
			written[p] = size
			continue
		}
		if slices.Contains([]string{".json", ".jsonl", ".csv", ".tsv", ".py", ".txt"}, strings.ToLower(path.Ext(p))) {
			o.Warn(report.Finding{Path: p, Problem: "is too large to be looked through for answers", Hint: "remove it if no code reads it"})
		}
	}
	o.writtenOut(written)
	return o
}

// maxWritten is how many bytes of data the code of a submission may write out in
// all: as much as a file of an unknown type may have. Tables of Unicode or of an
// algorithm are smaller.
const maxWritten = 1 << 20

// writtenOut refuses code that data of the size of weights stand in, however many
// files and statements they are spread over.
func (o *outcome) writtenOut(written map[string]int64) {
	total, most := int64(0), ""
	for _, p := range slices.Sorted(maps.Keys(written)) {
		total += written[p]
		if most == "" || written[p] > written[most] {
			most = p
		}
	}
	if total <= maxWritten {
		return
	}
	o.Fail(report.Finding{Path: most, Problem: words.Grouped(total) + " bytes of data are written out in code, most of it here",
		Want: fmt.Sprintf("at most %d bytes in all files together", maxWritten), Got: fmt.Sprintf("%d bytes here", written[most]),
		Hint: "ship weights as .safetensors, and other data that the program needs as a file of its own"})
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
