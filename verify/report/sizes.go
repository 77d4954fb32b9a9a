package report

import (
	"path"
	"strings"

	"slipway/manifest/content"
	"slipway/verify/scan"
)

// FileKind is what a file of a submission is for, as its path tells.
type FileKind string

// The kinds of files, in the order of a report.
const (
	WeightFiles      FileKind = "weights"
	TokenizerFiles   FileKind = "tokenizer"
	WheelFiles       FileKind = "wheels"
	RuntimeFiles     FileKind = "runtime"
	CodeFiles        FileKind = "code"
	DeclarationFiles FileKind = "declarations"
	DocumentFiles    FileKind = "docs"
	OtherFiles       FileKind = "other"
)

var fileKinds = []FileKind{WeightFiles, TokenizerFiles, WheelFiles, RuntimeFiles, CodeFiles, DeclarationFiles, DocumentFiles, OtherFiles}

// KindSize is how many files there are of a kind, and their bytes together.
type KindSize struct {
	Kind  FileKind `json:"kind"`
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
}

// SizesByKind sums a listing, kinds without files left out.
func SizesByKind(files []content.TreeFile) []KindSize {
	sums := map[FileKind]KindSize{}
	for _, f := range files {
		sum := sums[KindOf(f.Path)]
		sums[KindOf(f.Path)] = KindSize{KindOf(f.Path), sum.Files + 1, sum.Bytes + f.Size}
	}
	sizes := []KindSize{}
	for _, kind := range fileKinds {
		if sum, ok := sums[kind]; ok {
			sizes = append(sizes, sum)
		}
	}
	return sizes
}

// KindOf tells a file's kind by its path alone.
func KindOf(p string) FileKind {
	base := path.Base(p)
	extension := strings.ToLower(path.Ext(base))
	switch {
	case scan.IsShard(p):
		return WeightFiles
	case extension == ".whl":
		return WheelFiles
	case strings.HasPrefix(p, "runtime/"):
		return RuntimeFiles
	}
	switch base {
	case "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
		"vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json":
		return TokenizerFiles
	}
	switch extension {
	case ".py", ".pyi", ".sh", ".c", ".h", ".cc", ".cpp", ".cu", ".cuh", ".go", ".rs", ".so", ".jinja":
		return CodeFiles
	case ".json":
		return DeclarationFiles
	case ".md", ".txt", ".log", ".rst", ".pdf":
		return DocumentFiles
	}
	return OtherFiles
}
