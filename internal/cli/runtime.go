package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slipway/bundle"
	"slipway/bundle/goruntime"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify"
)

// builtRuntime returns the runtime of a device, built from the source that this
// program carries and held against its lock. Where only its size is wanted, the
// lock answers if it can.
func (a *app) builtRuntime(ctx context.Context, device string, sizeOnly bool) (*bundle.Runtime, error) {
	source, err := goruntime.ReadSource(a.Source)
	if err != nil {
		return nil, err
	}
	lock, err := goruntime.DecodeLock(source.Lock)
	if err != nil && !a.relock {
		return nil, err
	}
	tar, err := source.Tar()
	if err != nil {
		return nil, err
	}
	if locked, ok := lock.Find(device); ok && sizeOnly && locked.Source == source.Digest {
		return &bundle.Runtime{Size: locked.Size, SourceTar: tar}, nil
	}
	var want manifest.Digest
	if locked, ok := lock.Find(device); ok && !a.relock {
		want = locked.Runtime
	}
	built, err := goruntime.Build(ctx, source, device, want, a.buildTools())
	if err != nil {
		return nil, err
	}
	if a.relock {
		if source.Lock, err = relock(lock, built.Locked); err != nil {
			return nil, err
		}
		if tar, err = source.Tar(); err != nil {
			return nil, err
		}
	} else if err := built.Check(lock); err != nil {
		return nil, err
	}
	return &bundle.Runtime{Path: built.Path, Size: built.Locked.Size, SourceTar: tar}, nil
}

func (a *app) buildTools() goruntime.Tools {
	tools := goruntime.Tools{Go: a.GoCommand, Environment: a.Variables, Prebuilt: a.Runtimes, WorkFolder: a.workFolder}
	if a.CacheDir != "" {
		tools.CacheDir = filepath.Join(a.CacheDir, "runtime")
	}
	return tools
}

// rebuild decides gate rebuild.
func (a *app) rebuild(ctx context.Context, sourceTar io.Reader) (manifest.Digest, error) {
	digest, err := goruntime.Rebuild(ctx, sourceTar, a.buildTools())
	if errors.Is(err, goruntime.ErrTools) {
		err = fmt.Errorf("%w: %w", verify.ErrCannotRebuild, err)
	}
	return digest, err
}

// relock writes a build into the lock of the clone that this is run in.
func relock(lock *goruntime.Lock, built goruntime.Locked) ([]byte, error) {
	if _, err := os.Stat(goruntime.LockPath); err != nil {
		return nil, manifest.WithHint(errors.New("--relock: there is no runtime/runtime.lock here"), "run it in a clone of slipway's repository")
	}
	if lock == nil {
		lock = &goruntime.Lock{}
	}
	lock.Set(built)
	data, err := lock.Encode()
	if err != nil {
		return nil, err
	}
	if err := content.ReplaceFile(goruntime.LockPath, data, 0o644); err != nil {
		return nil, fmt.Errorf("write %s: %w", goruntime.LockPath, err)
	}
	return data, nil
}
