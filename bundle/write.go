package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

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
	if plan.looksLike(ctx, folder) {
		if sealed, err := sealAs(ctx, plan, folder, options); sealed != nil || err != nil {
			return sealed, err
		}
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
	written := &writtenFiles{stage: stage, infos: map[string]os.FileInfo{}}
	err = s.seal(ctx, options, func(ctx context.Context, file PlannedFile) (manifest.Digest, error) {
		return s.copyInto(ctx, written, file, options)
	})
	if err == nil {
		err = s.stageGenerated(written)
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
	for _, file := range s.Files {
		options.Cache.AddWritten(filepath.Join(folder, filepath.FromSlash(file.Path)), written.infos[file.Path], file.Digest)
	}
	return s, nil
}

// writtenFiles are the files of a stage, as they were after the last write.
type writtenFiles struct {
	stage *content.Stage
	mu    sync.Mutex
	infos map[string]os.FileInfo
}

// write creates a file and lets fill write it.
func (w *writtenFiles) write(file manifest.File, fill func(*os.File) error) error {
	target, err := w.stage.Create(file)
	if err != nil {
		return err
	}
	var info os.FileInfo
	if err = fill(target); err == nil {
		info, err = target.Stat()
	}
	if closeErr := target.Close(); err == nil && closeErr != nil {
		err = content.WriteFault(closeErr)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", file.Path, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.infos[file.Path] = info
	return nil
}

func (s *Sealed) copyInto(ctx context.Context, written *writtenFiles, file PlannedFile, options Options) (manifest.Digest, error) {
	var digest manifest.Digest
	err := written.write(manifest.File{Path: file.Path, Mode: file.Mode}, func(target *os.File) (err error) {
		digest, err = s.digest(ctx, file, target, options)
		return err
	})
	return digest, err
}

func (s *Sealed) stageGenerated(written *writtenFiles) error {
	for _, file := range s.Files {
		data, generated := s.bytes[file.Path]
		if !generated {
			continue
		}
		err := written.write(file, func(target *os.File) error {
			if _, err := target.Write(data); err != nil {
				return content.WriteFault(err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// looksLike reports whether a folder's names, sizes and modes are those that
// the plan would give it.
func (p *Plan) looksLike(ctx context.Context, folder string) bool {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return false
	}
	defer root.Close()
	files, faults, err := content.Scan(ctx, root, ".", nil)
	if err != nil || len(faults) > 0 || len(files) != len(p.Files)+1 {
		return false
	}
	planned := map[string]PlannedFile{}
	for _, f := range p.Files {
		planned[f.Path] = f
	}
	for _, f := range files {
		want, ok := planned[f.Path]
		if f.Path != manifest.InventoryPath && (!ok || want.Size != f.Size || want.Mode != f.Mode) {
			return false
		}
	}
	return true
}

// sealAs seals the plan if a folder holds exactly its bytes; nil if it does
// not. What the cache does not know is hashed: reading is cheaper than writing.
func sealAs(ctx context.Context, plan *Plan, folder string, options Options) (*Sealed, error) {
	s, err := Seal(ctx, plan, Options{Workers: options.Workers, Cache: options.Cache})
	if err != nil {
		return nil, err
	}
	same, err := s.equals(ctx, folder, options)
	if err != nil || !same {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// equals holds a folder's files against the sealed ones.
func (s *Sealed) equals(ctx context.Context, folder string, options Options) (bool, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return false, nil // it went away: it is written anew
	}
	defer root.Close()
	var differs atomic.Bool
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(options.workers())
	for _, file := range s.Files {
		group.Go(func() error {
			began := options.Cache.Now()
			before, err := root.Lstat(file.Path)
			if err != nil || differs.Load() {
				differs.Store(true)
				return nil
			}
			digest, known := options.Cache.Lookup(before)
			if !known {
				if digest, err = content.Intake(inner, root, file.Path, file.Size, nil, nil); err != nil {
					differs.Store(true)
					return inner.Err()
				}
				if after, err := root.Lstat(file.Path); err == nil {
					options.Cache.Add(before, after, began, digest)
				}
			}
			options.report(file.Size)
			if digest != file.Digest || before.Mode().Perm() != os.FileMode(file.Mode) {
				differs.Store(true)
			}
			return nil
		})
	}
	err = group.Wait()
	return !differs.Load(), err
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
// go by way of their tar layer; a shard that is made is made again when the
// layout asks for it.
func (s *Sealed) ingest(ctx context.Context, target *layout.Layout, file PlannedFile, chosen LayoutOptions, options Options) (manifest.Digest, error) {
	if !isRaw(file) || file.shard != nil {
		return s.digest(ctx, file, nil, options)
	}
	take := target.Ingest
	if chosen.Link {
		take = target.Link
	}
	present := func(known manifest.Digest) (bool, error) {
		return target.Has(ctx, manifest.Descriptor{Digest: known, Size: file.Size})
	}
	return s.remembered(file, options, present, func(root *os.Root) (manifest.Digest, error) {
		digest, err := take(ctx, root, file.Source, file.Size, options.Progress)
		if err != nil {
			return digest, fmt.Errorf("store %s: %w", file.Path, err)
		}
		return digest, nil
	})
}
