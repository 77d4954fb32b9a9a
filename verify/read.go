package verify

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
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
	vocabularies := map[string]*modelconfig.Vocabulary{}
	_, folders := listShards(tree.Files)
	var rest []content.TreeFile
	overlong := map[string]string{}
	kept := int64(0)
	texts, keptTexts := map[string][]byte{}, int64(0)
	for _, file := range tree.Files {
		limit := smallLimit(file.Path, folders)
		text := wantsText(options.Profile.Gates, file) && keptTexts+file.Size <= textBudget(file)
		if text {
			keptTexts += file.Size
		}
		if text && limit == 0 {
			f := scanner.Whole(ctx, file)
			texts[file.Path], f.Small = f.Small, nil // for the gates that read texts alone
			facts[file.Path] = f
			continue
		}
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
		if text {
			texts[file.Path] = f.Small
		}
		if path.Base(file.Path) == tokenizerName && f.Err == nil {
			vocabularies[file.Path] = modelconfig.ReadVocabulary(f.Small)
			f.Small = nil // the largest of them, and needed no more
		}
		facts[file.Path] = f
	}
	sub := readSubmission(tree.Files, facts, options.fieldNames())
	sub.vocabularies, sub.texts = vocabularies, texts
	more, err := scanner.Read(ctx, rest, newAsking(sub, contract, options.Digests, options.Profile.Ternary != nil && options.Profile.Ternary.AllowAsymmetric).ask)
	if err != nil {
		return nil, nil, err
	}
	for p, f := range more {
		f.Overlong = overlong[p]
		facts[p] = f
	}
	sub.unpaired = audit.FindUnpaired(ctx, tree, sub.quantization, facts)
	sub.wheels = readWheels(ctx, tree, options, facts)
	sub.runtime = readRuntime(ctx, tree, options, facts)
	sub.started = readStarted(ctx, tree, options, facts, sub)
	if err := sampleBase(ctx, options, sub); err != nil {
		return nil, nil, err
	}
	return facts, sub, ctx.Err()
}

// smallLimit returns up to how many bytes a file is read whole; 0: never.
// Only files at the root and beside shards are.
func smallLimit(p string, shardFolders []string) int64 {
	if slices.Contains(lockNames, p) {
		return maxSmallBytes
	}
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
