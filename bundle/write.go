package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
)

// WriteFolder executes a plan into a submission folder. The folder appears
// under its name when it is complete, in place of an earlier bundle if there
// was one; an earlier bundle that is the same already is left as it is.
func WriteFolder(ctx context.Context, plan *Plan, folder string, options Options) (*Sealed, error) {
	if err := plan.CheckOutput(folder); err != nil {
		return nil, err
	}
	if sealed, current := upToDate(ctx, plan, folder, options); current {
		return sealed, nil
	}
	stage, err := content.NewStage(folder)
	if err != nil {
		return nil, err
	}
	defer stage.Abort()
	s, err := newSealed(plan)
	if err != nil {
		return nil, err
	}
	err = s.seal(ctx, options, func(ctx context.Context, file PlannedFile) (manifest.Digest, error) {
		return s.copyInto(ctx, stage, file, options)
	})
	if err == nil {
		err = s.stageGenerated(stage)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = stage.Commit()
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	s.rememberFolder(folder, options.Cache)
	return s, nil
}

func (s *Sealed) copyInto(ctx context.Context, stage *content.Stage, file PlannedFile, options Options) (manifest.Digest, error) {
	target, err := stage.Create(manifest.File{Path: file.Path, Mode: file.Mode})
	if err != nil {
		return manifest.Digest{}, err
	}
	digest, err := s.digest(ctx, file, target, options)
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return digest, fmt.Errorf("store %s: %w", file.Path, err)
	}
	return digest, nil
}

func (s *Sealed) stageGenerated(stage *content.Stage) error {
	for _, file := range s.Files {
		data, generated := s.bytes[file.Path]
		if !generated {
			continue
		}
		target, err := stage.Create(file)
		if err != nil {
			return err
		}
		if _, err = target.Write(data); err != nil {
			err = content.WriteFault(err)
		}
		if closeErr := target.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", file.Path, err)
		}
	}
	return nil
}

// upToDate reports whether folder holds exactly this bundle, going by the
// cache alone: a byte that the cache does not know is not read for this.
func upToDate(ctx context.Context, plan *Plan, folder string, options Options) (*Sealed, bool) {
	if options.Cache == nil {
		return nil, false
	}
	for _, file := range plan.Files {
		if file.Source == "" {
			continue
		}
		info, err := os.Lstat(plan.onDisk(file))
		if err != nil {
			return nil, false
		}
		if _, known := options.Cache.Lookup(info); !known {
			return nil, false
		}
	}
	s, err := Seal(ctx, plan, options)
	if err != nil {
		return nil, false
	}
	if !s.equals(ctx, folder, options.Cache) {
		_ = s.Close()
		return nil, false
	}
	return s, true
}

// equals holds a folder's listing against the sealed files by cached digests.
func (s *Sealed) equals(ctx context.Context, folder string, cache *content.DigestCache) bool {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return false
	}
	defer root.Close()
	files, faults, err := content.Scan(ctx, root, ".", nil)
	if err != nil || len(faults) > 0 || len(files) != len(s.Files) {
		return false
	}
	for i, file := range files {
		info, err := root.Lstat(file.Path)
		if err != nil || info.Mode().Perm() != os.FileMode(s.Files[i].Mode) {
			return false
		}
		file.Digest, _ = cache.Lookup(info)
		if file != s.Files[i] {
			return false
		}
	}
	return true
}

// rememberFolder lets the cache know the files that were just written and
// hashed.
func (s *Sealed) rememberFolder(folder string, cache *content.DigestCache) {
	for _, file := range s.Files {
		name := filepath.Join(folder, filepath.FromSlash(file.Path))
		if info, err := os.Lstat(name); err == nil && info.Size() == file.Size {
			cache.Add(name, info, info, file.Digest)
		}
	}
}

// LayoutOptions are the choices that a layout adds.
type LayoutOptions struct {
	Tag  string // name in the layout's index; "" for none
	Link bool   // hard links instead of copies: later writes to a source damage the blob, and are noticed
}

// WriteLayout executes a plan into an OCI layout, which is created where
// absent. The tag moves when everything else is complete.
func WriteLayout(ctx context.Context, plan *Plan, target *layout.Layout, chosen LayoutOptions, options Options) (*Sealed, error) {
	s, err := newSealed(plan)
	if err != nil {
		return nil, err
	}
	err = s.seal(ctx, options, func(ctx context.Context, file PlannedFile) (manifest.Digest, error) {
		return s.ingest(ctx, target, file, chosen, options)
	})
	if err == nil {
		_, err = content.Copy(ctx, s, "", target, chosen.Tag, content.CopyOptions{Workers: options.workers()})
	}
	if err == nil && chosen.Tag == "" {
		err = target.Tag(ctx, s.Descriptor, "")
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// ingest takes a large file straight into the layout: one read. Small files
// go by way of their tar layer.
func (s *Sealed) ingest(ctx context.Context, target *layout.Layout, file PlannedFile, chosen LayoutOptions, options Options) (manifest.Digest, error) {
	if !isRaw(file) {
		return s.digest(ctx, file, nil, options)
	}
	root := s.roots[file.folder]
	before, err := root.Lstat(file.Source)
	if err != nil {
		return manifest.Digest{}, fmt.Errorf("look at %s: %w", file.Source, bare(err))
	}
	if known, cached := options.Cache.Lookup(before); cached && before.Size() == file.Size {
		present, err := target.Has(ctx, manifest.Descriptor{Digest: known, Size: file.Size})
		if err != nil || present {
			options.report(file.Size)
			return known, err
		}
	}
	take := target.Ingest
	if chosen.Link {
		take = target.Link
	}
	digest, err := take(ctx, root, file.Source, file.Size, options.Progress)
	if err != nil {
		return digest, fmt.Errorf("store %s: %w", file.Path, err)
	}
	if after, err := root.Lstat(file.Source); err == nil {
		options.Cache.Add(s.plan.onDisk(file), before, after, digest)
	}
	return digest, nil
}
