package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
	"slipway/verify/scan"
)

// fieldNames is how the task spells the quantization manifest's fields.
func (o Options) fieldNames() manifest.FieldNames {
	if o.Profile.Ternary == nil {
		return nil
	}
	return o.Profile.Ternary.Names
}

// sampleBase reads the base, if one is at hand: the digest of the set of its
// files, and some weights of the tensors that ternary entries are compared
// with. Entries have the base's names, or those under the other prefix.
func sampleBase(ctx context.Context, options Options, sub *submission) error {
	if options.Base == nil || sub.quantization == nil {
		return nil
	}
	names := map[string]string{} // of the base's tensors -> of the entries
	for name, entry := range sub.quantization.Tensors {
		if entry.Kind == manifest.KindFloat {
			continue
		}
		names[name] = name
		rest, short := strings.CutPrefix(name, modelconfig.ShortPrefix)
		if long := modelconfig.LongPrefix + rest; short && !strings.HasPrefix(name, modelconfig.LongPrefix) && sub.quantization.Tensors[long].Kind == "" {
			names[long] = name // unless an entry has that very name
		}
	}
	if !slices.ContainsFunc(options.Base.Files, func(f content.TreeFile) bool { return scan.IsShard(f.Path) }) {
		return manifest.WithHint(fmt.Errorf("base %s: there is no .safetensors file", options.Base.Name),
			"name the folder of the base's weights; links are not followed, so copy the files where a cache has links")
	}
	scanner := scan.New(options.Base, scan.Options{Workers: options.Workers, Dense: func(content.TreeFile) bool { return false }})
	facts, err := scanner.Read(ctx, options.Base.Files, func(string, *safetensors.Header) func(safetensors.Tensor) scan.Questions {
		return func(t safetensors.Tensor) (q scan.Questions) {
			if names[t.Name] != "" {
				q.Keep = audit.ValueSamples(t)
			}
			return q
		}
	})
	if err != nil {
		return err
	}
	sub.baseSamples = map[string]audit.BaseSample{}
	var set []manifest.File
	for _, file := range options.Base.Files {
		f := facts[file.Path]
		if f.Err != nil {
			return fmt.Errorf("base %s: read %s: %w", options.Base.Name, file.Path, f.Err)
		}
		if f.HeaderErr != nil {
			return fmt.Errorf("base %s: read header of %s: %w", options.Base.Name, file.Path, f.HeaderErr)
		}
		file.Digest = f.Digest
		set = append(set, file.File)
		if f.Header == nil {
			continue
		}
		for _, t := range f.Header.Tensors {
			if name := names[t.Name]; name != "" {
				sub.baseSamples[name] = audit.BaseSample{Tensor: t, Kept: f.Tensors[t.Name].Kept}
			}
		}
	}
	sub.baseDigest = manifest.SetDigest(set)
	return nil
}
