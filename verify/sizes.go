package verify

import (
	"path"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/profiles"
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

// sizesByKind sums a listing, kinds without files left out.
func sizesByKind(files []content.TreeFile) []KindSize {
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
	case architecturePath, startingPath, backbonePath, manifest.QuantizationPath, manifest.InventoryPath:
		return DeclarationFiles
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

// Limits are the profile's bounds that a report's numbers are held against; what
// is 0 or "" the profile does not bound. Times are seconds.
type Limits struct {
	Bytes         int64   `json:"bytes,omitempty"`          // of all files, at most
	FractionAbove string  `json:"fraction_above,omitempty"` // "95/100": of ternary weights, more than
	StoredAtMost  string  `json:"stored_at_most,omitempty"` // "11/10": of the base's parameters
	StartSeconds  float64 `json:"start_seconds,omitempty"`  // from the start to the first 200 of /health
	TotalSeconds  float64 `json:"total_seconds,omitempty"`  // of the whole graded load
}

func limitsOf(p profiles.Profile) Limits {
	limits := Limits{Bytes: p.MaxBytes, StartSeconds: p.Load.StartSeconds, TotalSeconds: p.Load.TotalSeconds}
	if t := p.Ternary; t != nil {
		if t.FractionAbove.Denominator > 0 {
			limits.FractionAbove = ratio(t.FractionAbove)
		}
		if t.StoredAtMost.Denominator > 0 {
			limits.StoredAtMost = ratio(t.StoredAtMost)
		}
	}
	return limits
}
