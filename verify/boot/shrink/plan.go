package shrink

import (
	"fmt"
	"path"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// plan is a twin before its values exist.
type plan struct {
	to           twinDimensions
	shards       []twinShard
	quantization manifest.Quantization
	bytes        int64 // of the shards, headers included
}

type twinShard struct {
	path    string
	header  []byte
	tensors []safetensors.Tensor // laid out
	fills   []fill               // of each
	seeds   []string             // of each: what its values are drawn by
}

// shrink plans the widest twin within the limit.
func (s *submission) shrink(limit int64) (*plan, error) {
	unit, err := s.readParts()
	if err != nil {
		return nil, err
	}
	s.countLayers()
	smallest := int64(0)
	for _, to := range s.model.candidates(unit) {
		p, err := s.plan(to)
		if err != nil {
			return nil, err
		}
		if p.bytes <= limit {
			return p, nil
		}
		smallest = p.bytes
	}
	return nil, unshrinkable("the smallest twin has %d bytes of weights, more than %d", smallest, limit)
}

func (s *submission) plan(to twinDimensions) (*plan, error) {
	p := &plan{to: to}
	for _, real := range s.shards {
		twin := twinShard{path: real.path}
		for _, tensor := range real.header.Tensors {
			small, fill, err := s.narrowTensor(real.path, tensor, to)
			if err != nil {
				return nil, fmt.Errorf("%s: tensor %q: %w", real.path, manifest.Clip(tensor.Name), err)
			}
			if fill != nil {
				twin.tensors, twin.fills = append(twin.tensors, small), append(twin.fills, fill)
				twin.seeds = append(twin.seeds, s.partOf(real.path, tensor.Name).seed(tensor.Name))
			}
		}
		if err := twin.layOut(real.header.Metadata); err != nil {
			return nil, fmt.Errorf("%s: %w", real.path, err)
		}
		p.bytes += int64(len(twin.header))
		for _, tensor := range twin.tensors {
			p.bytes += tensor.Bytes()
		}
		p.shards = append(p.shards, twin)
	}
	var err error
	p.quantization, err = s.narrowManifest(to)
	return p, err
}

func (t *twinShard) layOut(metadata map[string]string) (err error) {
	if t.tensors, err = safetensors.Layout(t.tensors); err != nil {
		return err
	}
	t.header, err = safetensors.EncodeHeader(t.tensors, metadata)
	return err
}

// indexOf returns the index of a twin's shards in the folder of the given path.
func (p *plan) indexOf(indexPath string, real *safetensors.Index) any {
	weights, total := map[string]string{}, int64(0)
	for _, s := range p.shards {
		for _, t := range s.tensors {
			if real.WeightMap[t.Name] == path.Base(s.path) && path.Dir(s.path) == path.Dir(indexPath) {
				weights[t.Name] = path.Base(s.path)
				total += t.Bytes()
			}
		}
	}
	metadata := map[string]any{"total_size": total}
	for key, value := range real.Metadata {
		metadata[key] = value
	}
	return map[string]any{"metadata": metadata, "weight_map": weights}
}
