package bundle

import (
	"path"
	"slices"
	"strings"

	"slipway/manifest"
)

// declarations are the files at a bundle's root that say what it is.
var declarations = []string{
	manifest.QuantizationPath, manifest.InventoryPath, architecturePath, startingArtifactPath, backboneContractPath,
}

// weightLike are endings of files that hold weights in other formats: they are
// left out of a weights block, but never without a word.
var weightLike = []string{".bin", ".pt", ".pth", ".ckpt", ".npz", ".npy", ".gguf", ".onnx", ".pkl", ".msgpack", ".h5"}

func isShard(name string) bool { return strings.HasSuffix(name, ".safetensors") }

// kindOf says what a file of a bundle is for, by its path in the bundle alone.
func kindOf(name string) manifest.Kind {
	base, top := path.Base(name), strings.SplitN(name, "/", 2)[0]
	switch {
	case isShard(name):
		return manifest.KindWeight
	case slices.Contains(declarations, name), top == "weights":
		return manifest.KindConfig
	case top == "provenance", strings.HasSuffix(base, ".md"), strings.HasSuffix(base, ".log"), strings.HasPrefix(base, "LICENSE"):
		return manifest.KindDoc
	}
	return manifest.KindCode
}
