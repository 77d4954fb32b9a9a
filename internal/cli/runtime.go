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
	locked, ok := lock.Find(device)
	if ok && sizeOnly && locked.Source == source.Digest {
		tar, err := source.Tar(locked)
		return &bundle.Runtime{Digest: locked.Runtime, Size: locked.Size, SourceTar: tar}, err
	}
	var built *goruntime.Built
	if a.relock {
		if built = a.relocked[device]; built == nil {
			built, err = a.relockAll(ctx, source, lock, device)
		}
	} else {
		built, err = goruntime.Build(ctx, source, device, locked.Runtime, a.buildTools())
	}
	if err != nil {
		return nil, err
	}
	if a.relock {
		locked = built.Locked
	} else if err := built.Check(lock); err != nil {
		return nil, err
	}
	tar, err := source.Tar(locked)
	if err != nil {
		return nil, err
	}
	return &bundle.Runtime{Path: built.Path, Digest: locked.Runtime, Size: built.Locked.Size, SourceTar: tar}, nil
}

// knownRuntimes lists the runtimes that the lock of the source which this program
// carries names, with the archives that go with them: what a bundle of this
// slipway has. A source that was changed since it was locked has none.
func (a *app) knownRuntimes() []verify.Runtime {
	if a.Source == nil {
		return nil
	}
	source, err := goruntime.ReadSource(a.Source)
	if err != nil {
		return nil // who builds is told
	}
	lock, err := goruntime.DecodeLock(source.Lock)
	if err != nil {
		return nil
	}
	var known []verify.Runtime
	for _, locked := range lock.Builds {
		if tar, err := source.Tar(locked); err == nil && locked.Source == source.Digest {
			known = append(known, verify.Runtime{Program: locked.Runtime, Source: manifest.DigestBytes(tar)})
		}
	}
	return known
}

// relockAll builds the runtimes of all devices and locks them; that of the device
// is returned. What this machine cannot build of the others stays as it was locked.
func (a *app) relockAll(ctx context.Context, source *goruntime.Source, lock *goruntime.Lock, device string) (*goruntime.Built, error) {
	if lock == nil {
		lock = &goruntime.Lock{}
	}
	var wanted *goruntime.Built
	for _, each := range goruntime.Devices {
		built, err := goruntime.Build(ctx, source, each, manifest.Digest{}, a.buildTools())
		switch {
		case err != nil && each != device && errors.Is(err, goruntime.ErrTools):
			fmt.Fprintf(a.Stderr, "note: --relock: the build for %s stays as it was locked: %v\n", each, err)
			continue
		case err != nil:
			return nil, err
		case each == device:
			wanted = built
		}
		lock.Set(built.Locked)
		if a.relocked == nil {
			a.relocked = map[string]*goruntime.Built{}
		}
		a.relocked[each] = built
	}
	return wanted, relock(lock)
}

func (a *app) buildTools() goruntime.Tools {
	tools := goruntime.Tools{Go: a.GoCommand, GCC: a.GCC, Environment: a.Variables, Prebuilt: a.Runtimes, WorkFolder: a.workFolder}
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

// relock writes the lock of the clone that this is run in.
func relock(lock *goruntime.Lock) error {
	if _, err := os.Stat(goruntime.LockPath); err != nil {
		return manifest.WithHint(errors.New("--relock: there is no runtime/runtime.lock here"), "run it in a clone of slipway's repository")
	}
	data, err := lock.Encode()
	if err != nil {
		return err
	}
	if err := content.ReplaceFile(goruntime.LockPath, data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", goruntime.LockPath, err)
	}
	return nil
}
