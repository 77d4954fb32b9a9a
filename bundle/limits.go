package bundle

import (
	"fmt"

	"slipway/manifest"
)

// registryLimits are documented or reported upper bounds on one layer, in
// bytes, smallest first.
var registryLimits = []struct {
	bytes    int64
	registry string
}{
	{5 << 30, "distribution with S3 storage before the fix of its 5 GiB copy limit"},
	{10_000_000_000, "ghcr.io (10 GB a layer, ten minutes an upload)"},
	{10_000 << 20, "ECR Public (10,000 MiB a layer)"},
	{32 << 30, "Harbor behind its usual proxy (32 GiB)"},
	{52_000 << 20, "ECR (52,000 MiB a layer)"},
}

// registryNotes says which registries would refuse a layer of the plan.
func registryNotes(layers []Layer) []string {
	var notes []string
	for _, layer := range layers {
		if layer.Encoding != manifest.EncodingRaw {
			continue
		}
		for _, limit := range registryLimits {
			if layer.Size > limit.bytes {
				notes = append(notes, fmt.Sprintf("%s has %d bytes: more than %s takes", layer.Paths[0], layer.Size, limit.registry))
			}
		}
	}
	return notes
}
