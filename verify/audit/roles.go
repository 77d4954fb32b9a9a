package audit

import (
	"maps"
	"slices"

	"slipway/manifest"
)

// RoleOf returns a tensor's part: as the contract says, else by its name. A
// name that a contract does not know is backbone unless it is an untied head:
// so no invented name leaves what is counted.
func RoleOf(contract *manifest.Contract, name string) manifest.Role {
	if contract == nil {
		return manifest.RoleOf(name)
	}
	if t, known := contract.Tensors[name]; known {
		return t.Role
	}
	if IsAddedHead(contract, name) {
		return manifest.RoleHead
	}
	return manifest.RoleBackbone
}

// IsAddedHead reports whether name is the head that a submission may add to a
// base that ties its head to the embedding.
func IsAddedHead(contract *manifest.Contract, name string) bool {
	return contract.TiedHead && manifest.RoleOf(name) == manifest.RoleHead
}

// EmbeddingName returns the name of the contract's embedding, or "".
func EmbeddingName(contract *manifest.Contract) string {
	for _, name := range slices.Sorted(maps.Keys(contract.Tensors)) {
		if contract.Tensors[name].Role == manifest.RoleEmbedding {
			return name
		}
	}
	return ""
}
