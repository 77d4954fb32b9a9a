package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/script/shell"
)

// checkSettings looks for paths of a build machine in the JSON files that the
// main path names: as a word of a command, or as a string of its Python.
func (a *analysis) checkSettings() {
	for _, at := range a.tree.Below(a.tree.Root) {
		n := a.tree.Base[at]
		if path.Ext(at) != ".json" || strings.HasPrefix(path.Base(at), "tokenizer") || n.Data == nil || !a.named(path.Base(at)) {
			continue
		}
		var value any
		if manifest.DecodeLoose(n.Data, &value) != nil {
			continue
		}
		eachText(value, func(text string) {
			p := a.buildPath(text)
			if p == "" {
				p = a.pathBelow(text, elsewhereFolders)
			}
			if p == "" || !strings.HasPrefix(text, p) {
				return
			}
			line := 0
			if quoted, err := json.Marshal(text); err == nil {
				if i := bytes.Index(n.Data, quoted); i >= 0 {
					line = 1 + bytes.Count(n.Data[:i], []byte("\n"))
				}
			}
			a.add(shell.Finding{Check: "C20", Warning: true, Path: n.Source, Line: line, Problem: fmt.Sprintf("names %s, which no submission brings", manifest.Clip(p)),
				Hint: "name it relative to the file's own folder"})
		})
	}
}

// named reports whether the main path names a file.
func (a *analysis) named(base string) bool {
	for _, st := range a.main.Steps {
		if slices.ContainsFunc(st.Argv, func(w string) bool { return strings.HasSuffix(w, base) }) {
			return true
		}
	}
	for _, m := range a.modules {
		for _, l := range m.parsed.Strings {
			if m.main && path.Base(l.Text) == base {
				return true
			}
		}
	}
	return false
}

// eachText calls f for each string of a JSON value, names left out, and where
// transformers keeps the path that a checkpoint was once loaded from.
func eachText(value any, f func(text string)) {
	switch value := value.(type) {
	case string:
		f(value)
	case []any:
		for _, v := range value {
			eachText(v, f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name != "_name_or_path" && name != "name_or_path" {
				eachText(value[name], f)
			}
		}
	}
}
