package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Folder packs the checkpoint of the folder from into the folder to, which
// appears when it is complete. Files beside the shards are copied; pack.json
// holds what Undo needs.
func Folder(ctx context.Context, from, to string, options Options) (*Report, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", from, manifest.Cause(err))
	}
	defer root.Close()
	report, err := packFolder(ctx, root, to, options)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", from, err)
	}
	return report, nil
}

func packFolder(ctx context.Context, root *os.Root, to string, options Options) (*Report, error) {
	stage, err := content.NewStageOver(to, notEmpty)
	if err != nil {
		return nil, err
	}
	defer stage.Abort()
	c, err := ReadCheckpoint(ctx, root, ".")
	if err != nil {
		return nil, err
	}
	for _, s := range c.Sources { // or Undo could not read what is recorded
		if err := checkName(s.Name()); err != nil {
			return nil, manifest.WithHint(err, "rename the shard, and name it so in the index and the quantization manifest")
		}
	}
	survey, err := Look(ctx, root, c, options)
	if err != nil {
		return nil, err
	}
	out, err := Arrange(c, survey, options)
	if err != nil {
		return nil, err
	}
	if out.Unchanged(c) {
		return nil, errors.New("nothing to do: no head to drop, and no shard that is too large")
	}
	w := &folderWriter{root: root, stage: stage, options: options}
	files, err := w.shards(ctx, out.Shards)
	if err != nil {
		return nil, err
	}
	if err := w.documents(c, survey, out, files); err != nil {
		return nil, err
	}
	left, err := w.others(ctx, c.Others)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	report := newReport(c, survey, out, files)
	for _, folder := range c.Folders {
		left = append(left, path.Base(folder)+"/")
	}
	slices.Sort(left)
	report.LeftOut = left
	return report, stage.Commit()
}

// notEmpty refuses every folder that holds something: what was packed may be
// the only copy.
func notEmpty(string) string { return "it is not empty" }

// Unchanged reports whether the output's shards are the checkpoint's.
func (o *Output) Unchanged(c *Checkpoint) bool {
	return len(o.Shards) == len(c.Sources) && !slices.ContainsFunc(o.Shards, func(s *Shard) bool { return s.Unchanged == nil })
}

// folderWriter writes what a folder of weights is made of.
type folderWriter struct {
	root    *os.Root
	stage   *content.Stage
	options Options
}

// shards writes shards one after the other, each by all cores, and digests them
// meanwhile.
func (w *folderWriter) shards(ctx context.Context, shards []*Shard) ([]File, error) {
	files := make([]File, len(shards))
	var total int64
	for _, s := range shards {
		total += s.Size
	}
	w.options.phase("write weights", total)
	sources := newSources(w.root)
	defer sources.close()
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(w.options.workers())
	for i, s := range shards {
		files[i] = File{Name: s.Name, Size: s.Size}
		target, err := w.stage.Create(manifest.File{Path: s.Name, Mode: manifest.ModeFile})
		if err == nil {
			err = w.fill(inner, s, sources, target)
		}
		if err != nil {
			return nil, errors.Join(group.Wait(), err)
		}
		group.Go(func() (err error) {
			files[i].Digest, err = digest(inner, target, s.Size)
			if closeErr := target.Close(); err == nil && closeErr != nil {
				err = content.WriteFault(closeErr)
			}
			if err != nil {
				return fmt.Errorf("store %s: %w", s.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// fill writes a shard, and closes the file where that is an error.
func (w *folderWriter) fill(ctx context.Context, s *Shard, sources *sources, target *os.File) (err error) {
	if s.Unchanged != nil {
		_, err = content.Intake(ctx, w.root, s.Unchanged.Path, s.Size, target, w.options.Progress)
	} else {
		err = s.fill(ctx, sources, target, w.options)
	}
	if err != nil {
		_ = target.Close()
		return fmt.Errorf("store %s: %w", s.Name, err)
	}
	return nil
}

func digest(ctx context.Context, file *os.File, size int64) (manifest.Digest, error) {
	h := manifest.NewHash()
	if _, err := content.CopyBlocks(ctx, h, io.NewSectionReader(file, 0, size), nil); err != nil {
		return manifest.Digest{}, manifest.Cause(err)
	}
	return manifest.FinishHash(h), nil
}

// documents writes what describes the shards.
func (w *folderWriter) documents(c *Checkpoint, survey *Survey, out *Output, files []File) error {
	if out.Quantization != nil {
		data, err := out.Quantization.Encode()
		if err != nil {
			return fmt.Errorf("write %s: %w", manifest.QuantizationPath, err)
		}
		if err := w.write(manifest.QuantizationPath, data); err != nil {
			return err
		}
	}
	if out.Index != nil {
		if err := w.write(safetensors.IndexName, out.Index); err != nil {
			return err
		}
	}
	r, err := newRecord(c, survey, files)
	if err != nil {
		return err
	}
	data, err := manifest.EncodeLines(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", RecordPath, err)
	}
	return w.write(RecordPath, data)
}

func (w *folderWriter) write(name string, data []byte) error {
	target, err := w.stage.Create(manifest.File{Path: name, Mode: manifest.ModeFile})
	if err != nil {
		return err
	}
	_, err = target.Write(data)
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", name, content.WriteFault(err))
	}
	return nil
}

// otherWeights are the endings of weights in formats that are not packed.
var otherWeights = []string{".bin", ".pt", ".pth", ".ckpt", ".npz", ".npy", ".gguf", ".onnx", ".pkl", ".msgpack", ".h5"}

// others copies the files beside the shards, and returns the names of those
// that it leaves: hidden ones, and weights in other formats.
func (w *folderWriter) others(ctx context.Context, files []manifest.File) (left []string, err error) {
	for _, file := range files {
		name := path.Base(file.Path)
		if strings.HasPrefix(name, ".") || slices.Contains(otherWeights, path.Ext(name)) {
			left = append(left, name)
			continue
		}
		if err := w.copy(ctx, file, name); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func (w *folderWriter) copy(ctx context.Context, file manifest.File, name string) error {
	target, err := w.stage.Create(manifest.File{Path: name, Mode: file.Mode})
	if err != nil {
		return err
	}
	_, err = content.Intake(ctx, w.root, file.Path, file.Size, target, nil)
	if closeErr := target.Close(); err == nil && closeErr != nil {
		err = content.WriteFault(closeErr)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}
