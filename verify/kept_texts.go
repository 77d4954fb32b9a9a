package verify

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway/manifest/content"
	"slipway/verify/texts"
)

// proseExtensions are those of texts beside the ones that gate script reads.
var proseExtensions = []string{".md", ".log", ".jsonl", ".csv", ".tsv", ".rst", ".html", ".hcl", ".lock", ".pem", ".key", ".jinja", ".out", ".err"}

// maxProseBytes bounds one of them. A log or a table is longer than a script.
const maxProseBytes = 8 << 20

// isProse reports whether a file is one of them, to be kept whole.
func isProse(p string, size int64) bool {
	name := path.Base(p)
	extension := strings.ToLower(path.Ext(name))
	wanted := slices.Contains(proseExtensions, extension) || slices.Contains(scriptExtensions, extension) || texts.CredentialFile(p) != ""
	return wanted && size <= maxProseBytes
}

// wantsText reports whether a file is kept whole for the gates of a profile.
func wantsText(gates []string, file content.TreeFile) bool {
	asks := func(ids ...string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(gates, id) })
	}
	return asks("script", "text-only") && isText(file.Path, file.Size) || asks("secrets", "data", "lookup") && isProse(file.Path, file.Size)
}

// textBudget is how many bytes of texts may be held with a file's. Logs and
// tables leave half of it to what says what a start does.
func textBudget(file content.TreeFile) int64 {
	if isText(file.Path, file.Size) {
		return maxKeptTextsBytes
	}
	return maxKeptTextsBytes / 2
}

// prose lists the texts that were kept, by path; those of a tokenizer, which
// hold every word there is, are left out.
func (e *evidence) prose() []texts.File {
	var list []texts.File
	for _, p := range slices.Sorted(maps.Keys(e.sub.texts)) {
		if data := e.sub.texts[p]; !isVocabulary(p) && bytes.IndexByte(data, 0) < 0 {
			list = append(list, texts.File{Path: p, Data: data})
		}
	}
	return list
}

// vocabularyNames are the files of a tokenizer or an index, in the transformers
// library's names.
var vocabularyNames = []string{
	"tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json", "special_tokens_map.json", "tokenizer_config.json",
	"bpe.codes", "dict.txt", "normalizer.json",
}

func isVocabulary(p string) bool {
	name := path.Base(p)
	return slices.Contains(vocabularyNames, name) || strings.HasSuffix(name, ".safetensors.index.json")
}

// unread lists the texts that are too large to be kept.
func (e *evidence) unread() (paths []string) {
	for _, f := range e.tree.Files {
		extension := strings.ToLower(path.Ext(f.Path))
		text := slices.Contains(proseExtensions, extension) || slices.Contains(scriptExtensions, extension)
		if _, kept := e.sub.texts[f.Path]; text && !kept && !isVocabulary(f.Path) && e.facts[f.Path].Small == nil && e.facts[f.Path].Err == nil {
			paths = append(paths, f.Path)
		}
	}
	return paths
}
