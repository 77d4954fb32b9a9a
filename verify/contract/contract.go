// Package contract makes the contract of a base model: what each of its tensors
// is called, its type, shape and part, and, where it is asked to read the bytes,
// the sha256 of each. It reads headers and config.json and believes no other
// file, and it writes nothing.
package contract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Options shape Of.
type Options struct {
	Repository string                  // of the base, "owner/name"
	Revision   string                  // 40 hex digits
	Digests    bool                    // read all tensors, and give the sha256 of each
	Workers    int                     // shards read at a time, at least 1
	Progress   func(done, total int64) // bytes of tensors, only with Digests; may be nil; one call at a time
}

// Of returns the contract of the model whose shards a tree holds, in any
// folder. A file that ends with its header does as well as the whole shard,
// unless digests are asked for. The head is tied where config.json says so, or where it says nothing
// and no head is stored. An error names the file that is at fault.
func Of(ctx context.Context, tree *content.Tree, options Options) (manifest.Contract, error) {
	r := &reader{tree: tree, options: options, contract: manifest.Contract{
		Schema: 1, Repository: options.Repository, Revision: options.Revision, Tensors: map[string]manifest.ContractTensor{},
	}}
	shards := slices.DeleteFunc(slices.Clone(tree.Files), func(f content.TreeFile) bool { return path.Ext(f.Path) != ".safetensors" })
	if len(shards) == 0 {
		return manifest.Contract{}, fmt.Errorf("%s holds no .safetensors file", tree.Name)
	}
	for _, shard := range shards {
		r.total += shard.Size
	}
	if err := r.shards(ctx, shards); err != nil {
		return manifest.Contract{}, err
	}
	tied, err := r.tied(ctx)
	r.contract.TiedHead = tied
	return r.contract, err
}

type reader struct {
	tree    *content.Tree
	options Options

	mutex       sync.Mutex
	contract    manifest.Contract
	done, total int64
}

// shards reads all shards on the workers; of several errors it returns that of
// the first shard.
func (r *reader) shards(ctx context.Context, shards []content.TreeFile) error {
	faults := make([]error, len(shards))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, min(r.options.Workers, len(shards))) {
		workers.Go(func() {
			for i := range next {
				faults[i] = r.shard(ctx, shards[i])
			}
		})
	}
	for i := range shards {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, err := range faults {
		if err != nil {
			return fmt.Errorf("read %s: %w", shards[i].Path, err)
		}
	}
	return nil
}

// shard adds the tensors of one shard.
func (r *reader) shard(ctx context.Context, shard content.TreeFile) error {
	source, err := r.tree.Open(ctx, shard)
	if err != nil {
		return err
	}
	defer source.Close()
	header, alone, err := readHeader(source, shard.Size)
	if err != nil {
		return err
	}
	if alone && r.options.Digests && header.FileSize > shard.Size {
		return errors.New("it is a header alone, and holds no weights to digest")
	}
	r.progress(header.DataStart)
	for _, t := range header.Tensors { // in the order of their bytes
		tensor := manifest.ContractTensor{DType: t.DType.String(), Shape: t.Shape, Role: manifest.RoleOf(t.Name)}
		if tensor.Shape == nil {
			tensor.Shape = []int64{}
		}
		if r.options.Digests {
			if tensor.SHA256, err = r.digest(ctx, source, t); err != nil {
				return fmt.Errorf("tensor %q: %w", manifest.Clip(t.Name), err)
			}
		}
		if err := r.add(t.Name, tensor); err != nil {
			return err
		}
	}
	return nil
}

// digest hashes the next tensor of a shard.
func (r *reader) digest(ctx context.Context, source io.Reader, t safetensors.Tensor) (string, error) {
	const block = 4 << 20
	sum := manifest.NewHash()
	for left := t.Bytes(); left > 0; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := io.CopyN(sum, source, min(block, left))
		r.progress(n)
		if left -= n; err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
	}
	return manifest.FinishHash(sum).Hex(), nil
}

func (r *reader) add(name string, tensor manifest.ContractTensor) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, twice := r.contract.Tensors[name]; twice {
		return fmt.Errorf("tensor %q is in another shard too", manifest.Clip(name))
	}
	r.contract.Tensors[name] = tensor
	return nil
}

func (r *reader) progress(n int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.done += n
	if r.options.Digests && r.options.Progress != nil {
		r.options.Progress(r.done, r.total)
	}
}

// maxConfigBytes bounds a config.json.
const maxConfigBytes = 16 << 20

// tied reports whether the embedding serves as head.
func (r *reader) tied(ctx context.Context) (bool, error) {
	stored := false
	for _, tensor := range r.contract.Tensors {
		stored = stored || tensor.Role == manifest.RoleHead
	}
	for _, file := range r.tree.Files {
		if path.Base(file.Path) != "config.json" {
			continue
		}
		said, flag, err := r.tieFlag(ctx, file)
		if err != nil {
			return false, fmt.Errorf("read %s: %w", file.Path, err)
		}
		if said {
			return flag, nil
		}
	}
	return !stored, nil
}

// tieFlag reads tie_word_embeddings of a config.json, of the model or of its
// text part.
func (r *reader) tieFlag(ctx context.Context, file content.TreeFile) (said, flag bool, err error) {
	if file.Size > maxConfigBytes {
		return false, false, fmt.Errorf("its %d bytes are more than is read of such a file", file.Size)
	}
	source, err := r.tree.Open(ctx, file)
	if err != nil {
		return false, false, err
	}
	defer source.Close()
	data, err := io.ReadAll(source)
	if err != nil {
		return false, false, err
	}
	var config struct {
		Tie  *bool `json:"tie_word_embeddings"`
		Text struct {
			Tie *bool `json:"tie_word_embeddings"`
		} `json:"text_config"`
	}
	if err := manifest.DecodeLoose(data, &config); err != nil {
		return false, false, err
	}
	for _, tie := range []*bool{config.Tie, config.Text.Tie} {
		if tie != nil {
			return true, *tie, nil
		}
	}
	return false, false, nil
}
