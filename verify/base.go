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

// sampleBase reads the weights of the base that ternary entries are compared
// with; nil where no base is at hand. Entries have the base's names, or those
// under the other prefix.
func sampleBase(ctx context.Context, options Options, sub *submission) (map[string]audit.BaseSample, error) {
	if options.Base == nil || sub.quantization == nil {
		return nil, nil
	}
	names := map[string]string{} // of the base's tensors -> of the entries
	for name, entry := range sub.quantization.Tensors {
		if entry.Kind == manifest.KindFloat {
			continue
		}
		names[name] = name
		if rest, short := strings.CutPrefix(name, modelconfig.ShortPrefix); short && !strings.HasPrefix(name, modelconfig.LongPrefix) {
			names[modelconfig.LongPrefix+rest] = name
		}
	}
	shards := slices.DeleteFunc(slices.Clone(options.Base.Files), func(f content.TreeFile) bool { return !scan.IsShard(f.Path) })
	scanner := scan.New(options.Base, scan.Options{Workers: options.Workers, Dense: func(content.TreeFile) bool { return false }})
	facts, err := scanner.Read(ctx, shards, func(string, *safetensors.Header) func(safetensors.Tensor) scan.Questions {
		return func(t safetensors.Tensor) (q scan.Questions) {
			if names[t.Name] != "" {
				q.Keep = audit.ValueSamples(t)
			}
			return q
		}
	})
	if err != nil {
		return nil, err
	}
	samples := map[string]audit.BaseSample{}
	for _, shard := range shards {
		f := facts[shard.Path]
		if f.Err != nil {
			return nil, fmt.Errorf("base %s: read %s: %w", options.Base.Name, shard.Path, f.Err)
		}
		if f.HeaderErr != nil {
			return nil, fmt.Errorf("base %s: read header of %s: %w", options.Base.Name, shard.Path, f.HeaderErr)
		}
		for _, t := range f.Header.Tensors {
			if name := names[t.Name]; name != "" {
				samples[name] = audit.BaseSample{Tensor: t, Kept: f.Tensors[t.Name].Kept}
			}
		}
	}
	return samples, nil
}
