package goruntime

import (
	"context"
	"fmt"
	"io"

	"slipway/manifest"
)

// maxSourceTar bounds a bundle's source.tar, in bytes.
const maxSourceTar = 256 << 20

// Rebuild builds the plain runtime from a bundle's source.tar and returns its
// digest: what runtime/serve must be. Toolchain and modules that the machine
// lacks are fetched by the go command, as its environment says.
func Rebuild(ctx context.Context, sourceTar io.Reader, tools Tools) (manifest.Digest, error) {
	source, err := ReadSourceTar(sourceTar, maxSourceTar)
	if err != nil {
		return manifest.Digest{}, err
	}
	// Nothing that the bundle influences may enter the cache that builds use.
	cache, done, err := tools.workFolder("slipway-rebuild-*")
	if err != nil {
		return manifest.Digest{}, fmt.Errorf("rebuild the runtime: %w", err)
	}
	defer func() { _ = done() }()
	tools.CacheDir = cache
	built, err := Build(ctx, source, "cpu", manifest.Digest{}, tools)
	if err != nil {
		return manifest.Digest{}, err
	}
	return built.Locked.Runtime, nil
}
