package goruntime

import (
	"context"
	"fmt"
	"io"

	"slipway/manifest"
)

// maxSourceTar bounds a bundle's source.tar, in bytes.
const maxSourceTar = 256 << 20

// Rebuild builds the runtime from a bundle's source.tar, for the device that the
// lock in it names, and returns its digest: what runtime/serve must be. Toolchain
// and modules that the machine lacks are fetched by the go command, as its
// environment says. Other bytes from another C compiler say nothing: ErrTools.
func Rebuild(ctx context.Context, sourceTar io.Reader, tools Tools) (manifest.Digest, error) {
	source, err := ReadSourceTar(sourceTar, maxSourceTar)
	if err != nil {
		return manifest.Digest{}, err
	}
	locked, err := source.build()
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
	built, err := Build(ctx, source, locked.Device, manifest.Digest{}, tools)
	if err != nil {
		return manifest.Digest{}, err
	}
	if locked.GCC != built.Locked.GCC && locked.Runtime != built.Locked.Runtime {
		return manifest.Digest{}, fmt.Errorf("%w as it was: it was built with %s, and this machine has %s", ErrTools, locked.GCC, built.Locked.GCC)
	}
	return built.Locked.Runtime, nil
}

// build is the one that the source's lock names.
func (s *Source) build() (Locked, error) {
	lock, err := DecodeLock(s.Lock)
	if err != nil {
		return Locked{}, err
	}
	if len(lock.Builds) != 1 {
		return Locked{}, fmt.Errorf("read runtime.lock in source.tar: it names %d builds, not the one of runtime/serve", len(lock.Builds))
	}
	return lock.Builds[0], nil
}
