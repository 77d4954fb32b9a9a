package audit

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/ternary"
)

// sanity reports the doubts: one is worth a look, two are an error.
func (c *entryCheck) sanity() {
	if len(c.doubts) == 0 {
		return
	}
	file := c.entry.File
	if c.entry.Codes != nil {
		file = c.entry.Codes.File
	}
	f := report.Finding{Path: file, Tensor: c.name, Problem: "does not look like trained weights: " + strings.Join(c.doubts, "; "),
		Hint: "compare it with the model that was trained: a tensor may have been exported twice, or not at all"}
	if len(c.doubts) > 1 {
		c.Fail(f)
	} else {
		c.Warn(f)
	}
}

// minimumAlike is how many elements a stored tensor has at least for its
// likeness to another to mean something.
const minimumAlike = 64

// storedAlike finds entries whose codes, scales or float matrices are those of
// an earlier entry: same type, shape, statistics and first bytes, and the same
// digest where both were taken. To hash every tensor on its own would cost as much
// again as hashing the files.
func (e *Evidence) storedAlike(q manifest.Quantization) map[capacityOf]string {
	type earlier struct {
		name   string
		digest manifest.Digest
	}
	alike, first := map[capacityOf]string{}, map[string]earlier{}
	seen := map[manifest.StoredTensor]bool{} // of one that serves twice gate coverage speaks
	for _, name := range q.Names() {
		entry := q.Tensors[name]
		for _, r := range References(&entry) {
			key := manifest.StoredTensor{File: *r.File, Tensor: r.Tensor}
			tensor, ok := e.Stored[key]
			if !ok || seen[key] || tensor.Elements() < minimumAlike {
				continue
			}
			seen[key] = true
			facts := e.stats(key)
			print, how := fmt.Sprintf("%s %v %s", r.As, Describe(tensor), facts.Prefix), " and have their statistics"
			switch {
			case r.As == AsCodes && facts.Codes != nil:
				print += fmt.Sprint(facts.Codes.Histogram)
			case r.As == AsScales && facts.Scales != nil && !facts.Scales.AllEqual():
				print += fmt.Sprint(facts.Scales.Min, facts.Scales.Max, facts.Scales.Negative)
			case r.As == AsValues && facts.Literal != nil:
				l := facts.Literal
				print += fmt.Sprint(l.Zeros, l.Minus, l.Min, l.Max)
			case r.As == AsValues && len(tensor.Shape) > 1 && RoleOf(e.Base, name) == manifest.RoleBackbone:
				how = ""
			default:
				continue
			}
			switch other, there := first[print]; {
			case !there:
				first[print] = earlier{name, facts.Digest}
			case other.digest.IsZero() || facts.Digest.IsZero():
				alike[capacityOf{name, r.As}] = fmt.Sprintf("its %s begin like those of %s%s", r.As, other.name, how)
			case other.digest == facts.Digest:
				alike[capacityOf{name, r.As}] = fmt.Sprintf("its %s are those of %s, byte for byte", r.As, other.name)
			}
		}
	}
	return alike
}

// capacityOf is one of the stored tensors of an entry.
type capacityOf struct {
	name string
	as   Capacity
}

// doubtAlike doubts a stored tensor that is like an earlier entry's.
func (c *entryCheck) doubtAlike(as Capacity) {
	if doubt := c.alike[capacityOf{c.name, as}]; doubt != "" {
		c.doubts = append(c.doubts, doubt)
	}
}

// signsOf returns the sampled signs of the first so many weights of an entry that
// is declared ternary.
func (e *Evidence) signsOf(entry manifest.Quantity, weights int64) signs {
	if entry.Kind == manifest.KindPacked2Bit {
		l, err := ternary.LayoutOf(entry)
		if _, there := e.Stored[*entry.Codes]; err != nil || !there {
			return nil
		}
		return signsOfCodes(&l, e.stats(*entry.Codes).Kept, weights)
	}
	key := manifest.StoredTensor{File: entry.File, Tensor: entry.Tensor}
	if _, there := e.Stored[key]; !there {
		return nil
	}
	return signsOfValues(e.Stored[key], e.stats(key).Kept, weights)
}

// againstBase compares a ternary tensor with the base's own weights, where they
// are at hand: quantization keeps most signs, and scales are of the size of the
// weights that they stand for.
func (c *entryCheck) againstBase() {
	base, there := c.Samples[c.name]
	if !there || c.entry.Kind == manifest.KindFloat || len(c.Findings) > 0 || !slices.Equal(base.Tensor.Shape, c.entry.Shape) {
		return
	}
	trits := c.signsOf(c.entry, allWeights)
	like := compareSigns(trits, signsOfValues(base.Tensor, base.Kept, allWeights))
	if like.weights < enoughSigns {
		return
	}
	file := c.entry.File
	if c.entry.Codes != nil {
		file = c.entry.Codes.File
	}
	switch share := ratioText(int64(like.agree), int64(like.weights)); {
	case 100*like.agree < 60*like.weights:
		c.bad(file, "its signs agree with the base's no better than chance does", "most of them", share,
			"look for a wrong axis, bit order, layer or rotation: this is another tensor than the one that it is named after")
		return
	case 100*like.agree < 75*like.weights:
		c.doubts = append(c.doubts, "only "+share+" of its signs are the base's")
	}
	low, high := c.magnitudes()
	if mean := meanOfValues(base.Tensor, base.Kept, trits); high > 0 && (mean > 8*high || 8*mean < low) {
		c.bad(file, "its scales are not of the size of the base's weights", "about "+number(mean), number(low)+" to "+number(high),
			"look for scales that are stored inverted, or for the wrong tensor's scales")
	}
}

// magnitudes returns the least and largest scale of an entry, or magnitude of a
// literal one; zeros where they are not known.
func (c *entryCheck) magnitudes() (low, high float64) {
	if c.entry.Kind == manifest.KindLiteral {
		if l := c.stats(manifest.StoredTensor{File: c.entry.File, Tensor: c.entry.Tensor}).Literal; l != nil {
			return l.Min, l.Max
		}
		return 0, 0
	}
	if s := c.stats(*c.entry.Scales).Scales; s != nil && s.Min <= s.Max {
		return s.Min, s.Max
	}
	return 0, 0
}
