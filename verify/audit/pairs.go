package audit

import (
	"context"
	"fmt"
	"io"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// Unpaired is the first bias of an entry that is not the negative of its scale.
type Unpaired struct {
	count, first        int64
	scaleBits, biasBits uint64
}

func (p *Unpaired) scale(dtype safetensors.DType) float64 { return ternary.Value(dtype, p.scaleBits) }

func (p *Unpaired) value(dtype safetensors.DType, code float64) float64 {
	return code*p.scale(dtype) + ternary.Value(dtype, p.biasBits)
}

// maxPairBytes bounds the scales of one tensor that are read again.
const maxPairBytes = 256 << 20

// FindUnpaired looks for the first bias of each entry that is not the negative
// of its scale. That there is one follows from the digests of the one pass over
// the files; only its place is read again.
func FindUnpaired(ctx context.Context, tree *content.Tree, quantization *manifest.Quantization, facts map[string]*scan.File) map[string]*Unpaired {
	found := map[string]*Unpaired{}
	if quantization == nil {
		return found
	}
	for name, entry := range quantization.Tensors {
		if entry.Biases == nil {
			continue
		}
		scales, dtype := pairedFacts(facts, *entry.Scales)
		biases, other := pairedFacts(facts, *entry.Biases)
		if scales.IsZero() || biases.IsZero() || scales == biases || dtype != other {
			continue
		}
		a, errA := readTensor(ctx, tree, facts, *entry.Scales)
		b, errB := readTensor(ctx, tree, facts, *entry.Biases)
		if errA != nil || errB != nil || len(a) != len(b) {
			continue // the finding then names no place
		}
		if p := compareBiases(dtype, a, b); p.count > 0 {
			found[name] = p
		}
	}
	return found
}

// pairedFacts returns the digest of values that are to be paired, and their type.
func pairedFacts(facts map[string]*scan.File, at manifest.StoredTensor) (manifest.Digest, safetensors.DType) {
	f := facts[at.File]
	if f == nil || f.Err != nil || f.Header == nil {
		return manifest.Digest{}, 0
	}
	t, there := f.Header.Lookup(at.Tensor)
	if !there {
		return manifest.Digest{}, 0
	}
	return f.Tensors[at.Tensor].Pair, t.DType
}

func compareBiases(dtype safetensors.DType, scales, biases []byte) *Unpaired {
	p := &Unpaired{}
	for i := range int64(len(scales) / (dtype.Bits() / 8)) {
		scale, bias := ternary.Bits(dtype, scales, i), ternary.Bits(dtype, biases, i)
		if ternary.IsNegated(dtype, scale, bias) {
			continue
		}
		if p.count++; p.count == 1 {
			p.first, p.scaleBits, p.biasBits = i, scale, bias
		}
	}
	return p
}

// readTensor reads one stored tensor of a tree.
func readTensor(ctx context.Context, tree *content.Tree, facts map[string]*scan.File, at manifest.StoredTensor) ([]byte, error) {
	header := facts[at.File].Header
	t, _ := header.Lookup(at.Tensor)
	if t.Bytes() > maxPairBytes {
		return nil, fmt.Errorf("%s: tensor %q is larger than is read again", at.File, at.Tensor)
	}
	file, _ := tree.Lookup(at.File)
	source, err := tree.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	if _, err := io.CopyN(io.Discard, source, header.DataStart+t.Begin); err != nil {
		return nil, err
	}
	data := make([]byte, t.Bytes())
	_, err = io.ReadFull(source, data)
	return data, err
}
