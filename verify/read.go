package verify

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
)

// Bounds of what is held at once.
const (
	maxSmallBytes   = 16 << 20 // one small JSON file
	maxLargeJSON    = 64 << 20 // quantization manifest, inventory, tokenizer
	maxKeptBytes    = 96 << 20 // all of them together
	entropyMinBytes = 1 << 20  // text up to here is not looked at
)

// read reads the tree: first the small files, whole, since they say what to
// look for in the others; then every other file in one sequential pass each. A
// file that cannot be read leaves an Err in its facts; only the end of ctx is
// an error here.
func read(ctx context.Context, tree *content.Tree, options Options, contract *manifest.Contract) (map[string]*scan.File, *submission, error) {
	scanner := scan.New(tree, scan.Options{Workers: options.Workers, Progress: options.Progress, Dense: wantsEntropy})
	facts := map[string]*scan.File{}
	vocabularies := map[string]*vocabulary{}
	_, folders := listShards(tree.Files)
	var rest []content.TreeFile
	overlong := map[string]string{}
	kept := int64(0)
	for _, file := range tree.Files {
		limit := smallLimit(file.Path, folders)
		if limit == 0 || file.Size > limit || kept+file.Size > maxKeptBytes {
			rest = append(rest, file)
			if limit > 0 {
				overlong[file.Path] = fmt.Sprintf("its %d bytes are more than is read of such a file", file.Size)
				facts[file.Path] = &scan.File{Overlong: overlong[file.Path]}
			}
			continue
		}
		kept += file.Size
		f := scanner.Whole(ctx, file)
		if path.Base(file.Path) == tokenizerName && f.Err == nil {
			vocabularies[file.Path] = readVocabulary(f.Small)
			f.Small = nil // the largest of them, and needed no more
		}
		facts[file.Path] = f
	}
	sub := readSubmission(tree.Files, facts)
	sub.vocabularies = vocabularies
	more, err := scanner.Read(ctx, rest, asking{sub, contract}.ask)
	if err != nil {
		return nil, nil, err
	}
	for p, f := range more {
		f.Overlong = overlong[p]
		facts[p] = f
	}
	return facts, sub, ctx.Err()
}

// smallLimit returns up to how many bytes a file is read whole; 0: never.
// Only files at the root and beside shards are.
func smallLimit(p string, shardFolders []string) int64 {
	if folder := path.Dir(p); folder != "." && !slices.Contains(shardFolders, folder) {
		return 0
	}
	switch base := path.Base(p); base {
	case manifest.QuantizationPath, manifest.InventoryPath, tokenizerName:
		return maxLargeJSON
	case configName, generationName, architecturePath, startingPath, backbonePath:
		return maxSmallBytes
	default:
		if strings.HasSuffix(base, ".safetensors.index.json") {
			return maxSmallBytes
		}
	}
	return 0
}

// asking says what to look for in stored tensors, by what the quantization
// manifest and the contract say of them.
type asking struct {
	sub      *submission
	contract *manifest.Contract
}

func (a asking) ask(shard string, header *safetensors.Header) func(safetensors.Tensor) scan.Questions {
	// Head and embedding are compared only where one should serve as the other.
	tied := slices.ContainsFunc(a.sub.models, func(m model) bool { return m.config != nil && m.config.Tied })
	headStored := tied && a.sub.storesHead()
	for _, t := range header.Tensors {
		headStored = headStored || tied && roleByName(t.Name) == manifest.RoleHead
	}
	return func(t safetensors.Tensor) scan.Questions {
		uses := a.sub.uses[manifest.StoredTensor{File: shard, Tensor: t.Name}]
		q := a.byUse(t, uses)
		q.Digest = a.wantsDigest(t.Name, headStored)
		for _, use := range uses { // what the tensor is called in the quantization manifest
			q.Digest = q.Digest || a.wantsDigest(use.entry, headStored)
		}
		return q
	}
}

// byUse asks by the first use of a tensor that has something to ask; a second
// one is an error of its own.
func (a asking) byUse(t safetensors.Tensor, uses []usage) (q scan.Questions) {
	for _, use := range uses {
		entry := a.sub.quantization.Tensors[use.entry]
		switch {
		case use.as == asCodes:
			q.Codes = max(t.Bytes(), 1)
			if p, err := packingOf(entry); err == nil && slices.Equal(p.codes, t.Shape) {
				q.Codes = entry.GroupSize / 4
			}
			return q
		case use.as == asScales && scan.HoldsValues(t.DType):
			q.Scales = true
			return q
		case entry.Kind == manifest.KindLiteral && scan.HoldsValues(t.DType) && literalUnit(entry) > 0:
			q.Literal = literalUnit(entry)
			return q
		}
	}
	return q
}

// wantsDigest says which tensors are hashed on their own: those whose digest
// the contract knows, and embedding and head where they are to be compared.
func (a asking) wantsDigest(name string, headStored bool) bool {
	if a.contract != nil {
		long := longPrefix + strings.TrimPrefix(name, shortPrefix)
		if a.contract.Tensors[name].SHA256 != "" || a.contract.Tensors[long].SHA256 != "" {
			return true
		}
	}
	role := roleByName(name)
	return headStored && (role == manifest.RoleHead || role == manifest.RoleEmbedding)
}
