package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
)

// Unpack writes a tree's files into a folder, which appears when it is
// complete, and returns the set digest of what was written. A tree with faults,
// with paths that may not stand in a bundle, or with bytes that are not the
// ones it claims leaves nothing behind. progress may be nil.
func Unpack(ctx context.Context, tree *Tree, folder string, progress func(int64)) (manifest.Digest, error) {
	if err := treeFaults(tree); err != nil {
		return manifest.Digest{}, fmt.Errorf("%s: %w", tree.Name, err)
	}
	stage, err := NewStage(folder)
	if err != nil {
		return manifest.Digest{}, err
	}
	defer stage.Abort()
	written := make([]manifest.File, len(tree.Files))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range tree.Files {
		group.Go(func() error {
			digest, err := unpackFile(inner, tree, file, stage, progress)
			if err != nil {
				return fmt.Errorf("%s: %w", file.Path, tree.damaged(err))
			}
			written[i] = file.File
			written[i].Digest = digest
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return manifest.Digest{}, err
	}
	return manifest.SetDigest(written), stage.Commit()
}

func treeFaults(tree *Tree) error {
	var faults []error
	for _, f := range tree.Faults {
		faults = append(faults, fmt.Errorf("%q %s", f.Path, f.Detail))
	}
	paths := make([]string, 0, len(tree.Files))
	for _, f := range tree.Files {
		paths = append(paths, f.Path)
	}
	return errors.Join(append(faults, manifest.CheckPaths(paths)...)...)
}

func unpackFile(ctx context.Context, tree *Tree, file TreeFile, stage *Stage, progress func(int64)) (manifest.Digest, error) {
	source, err := tree.Open(ctx, file)
	if err != nil {
		return manifest.Digest{}, err
	}
	defer source.Close()
	target, err := stage.Create(file.File)
	if err != nil {
		return manifest.Digest{}, err
	}
	h := manifest.NewHash()
	n, err := CopyBlocks(ctx, io.MultiWriter(target, h), source, progress)
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return manifest.Digest{}, err
	}
	digest := manifest.FinishHash(h)
	if n != file.Size || (!file.Digest.IsZero() && digest != file.Digest) {
		return digest, &IntegrityError{Want: file.Digest, Got: digest, WantSize: file.Size, GotSize: n}
	}
	return digest, nil
}
