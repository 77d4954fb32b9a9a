package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// copies finds tensors that repeat one which is declared ternary: its dense
// form, the weights that it was made from, or the base's. A server could load
// them in its place. They may have any name and any type of a whole number of
// bytes, be transposed, be part of a larger tensor, the beginning of a part, or a
// run of its rows.
func (e *Evidence) copies(q manifest.Quantization) (found []report.Finding) {
	search := e.newSearch(q)
	pinned := e.pinnedTernary(q)
	for _, key := range e.suspects(q) {
		f := report.Finding{Level: report.Error, Path: key.File, Tensor: key.Tensor, Hint: "remove it: a server could load it in place of the ternary one"}
		kept := e.stats(key).Kept
		if digest := e.stats(key).Digest; !digest.IsZero() && pinned[digest.Hex()] != "" {
			f.Problem = "is the base's " + pinned[digest.Hex()] + ", which is declared ternary"
		} else if f.Problem = search.problem(e.Stored[key], e.stats(key)); f.Problem == "" {
			f.Problem = search.related(e.Stored[key], kept)
			f.Level, f.Hint = report.Warning, "say what it is; what quantization took from the weights looks like this, and gives them back"
		}
		if f.Problem != "" {
			found = append(found, f)
		}
	}
	return found
}

// search compares tensors with all that are declared ternary.
type search struct {
	*Suspects
	signsOf func(name string, weights int64) signs
	bySize  map[int64][]string
	names   []string
	rows    map[string]int64    // inputs of a row
	trits   map[string]signs    // those that were asked for
	begins  []beginning         // of the trits, as names
	indexes map[int64]*rowIndex // by the length of a row
}

func (e *Evidence) newSearch(q manifest.Quantization) *search {
	s := &search{
		Suspects: NewSuspects(q), signsOf: func(name string, weights int64) signs { return e.signsOf(q.Tensors[name], weights) },
		bySize: map[int64][]string{}, rows: map[string]int64{}, trits: map[string]signs{}, indexes: map[int64]*rowIndex{},
	}
	for _, name := range q.Names() {
		entry := q.Tensors[name]
		if n, ok := ternary.Product(entry.Shape); ok && entry.Kind != manifest.KindFloat {
			s.bySize[n] = append(s.bySize[n], name)
			s.names = append(s.names, name)
			s.rows[name] = rowOf(entry)
			s.begins = append(s.begins, beginningOf(s.signsOf(name, sampleLength)[0]))
		}
	}
	return s
}

// problem says what a tensor repeats, or "".
func (s *search) problem(t safetensors.Tensor, facts *scan.Tensor) string {
	if len(facts.Kept) == 0 {
		return ""
	}
	sampled := s.samplesOf(t, facts.Kept, false)
	if problem := s.whole(t, sampled); problem != "" {
		return problem
	}
	if problem := s.part(t, sampled); problem != "" {
		return problem
	}
	return s.partRows(t, facts.Signs)
}

// whole compares a tensor with the ternary ones of its size, weight by weight.
func (s *search) whole(t safetensors.Tensor, sampled samples) string {
	names := s.bySize[t.Elements()]
	if len(names) == 0 {
		return ""
	}
	values := sampled.signs(t.Elements(), s.sizes[t.Elements()])
	for _, name := range names {
		if _, known := s.trits[name]; !known {
			s.trits[name] = s.signsOf(name, allWeights)
		}
		like := compareSigns(s.trits[name], values)
		switch {
		case like.masked():
			return "has a sign only where " + name + ", which is declared ternary, is zero: full precision that was combined with it bit by bit"
		case like.weights < enoughSigns || 100*like.agree < 75*like.weights:
		case like.differ == 0:
			return "is a dense copy of " + name + ", which is declared ternary"
		default:
			return "has the signs of " + name + ", which is declared ternary: a copy in full precision"
		}
	}
	return ""
}

// related says of which ternary tensor of its size a tensor's signs depend,
// although they are not its signs. What quantization to {-a, 0, +a} takes from
// normally distributed weights has, where the ternary weight is not zero, its
// sign in 41 of a hundred cases: most magnitudes above the threshold are below
// their mean. Tensors that have nothing to do with each other agree in 50.
func (s *search) related(t safetensors.Tensor, kept [][]byte) string {
	names := s.bySize[t.Elements()]
	if len(kept) == 0 || len(names) == 0 {
		return ""
	}
	values := s.samplesOf(t, kept, false).signs(t.Elements(), s.sizes[t.Elements()])
	for _, name := range names {
		like := compareSigns(s.trits[name], values)
		excess := 2*like.agree - like.known // of agreements over disagreements
		if 10*max(excess, -excess) > like.known && excess*excess > 64*like.known {
			return fmt.Sprintf("has signs that depend on those of %s, which is declared ternary: %s of them agree", name, ratioText(int64(like.agree), int64(like.known)))
		}
	}
	return ""
}

// part compares what a tensor begins with, its rows at the places where another
// could begin, and its first column, with the beginnings of the ternary ones.
func (s *search) part(t safetensors.Tensor, sampled samples) string {
	n := t.Elements()
	for _, place := range s.places(t) {
		values := beginningOf(sampled.run(place, 1, min(sampleLength, n-place)))
		for i, name := range s.names {
			if !s.begins[i].like(&values) || place > 0 && s.rows[name] != lastOf(t) {
				continue
			}
			if place == 0 {
				return "begins with the signs of " + name + ", which is declared ternary: a copy in full precision, or a part of one"
			}
			return fmt.Sprintf("has the signs of %s, which is declared ternary, from row %d on: a copy in full precision", name, place/lastOf(t))
		}
	}
	if !s.columns(t) {
		return ""
	}
	column := beginningOf(sampled.run(0, lastOf(t), min(sampleLength, n/lastOf(t))))
	for i, name := range s.names {
		if begins := s.begins[i].until(s.rows[name]); begins.like(&column) {
			return "has the signs of " + name + ", which is declared ternary, in its columns: a transposed copy in full precision"
		}
	}
	return ""
}

// A beginning is compared with that of every ternary tensor, so that more is
// asked of it: of 128 random signs, 80 of a hundred agree once in 10^11 cases.
// Both signs must agree, or a tensor without negative values would be alike.
const (
	enoughOfBeginning = 128
	enoughOfEachSign  = 24
)

// beginning is the signs of the first sampleLength elements of a tensor, a bit
// each: there are thousands of tensors to compare with.
type beginning struct{ negative, positive, known [sampleLength / 64]uint64 }

func beginningOf(trits []int8) (b beginning) {
	for i, trit := range trits {
		bit := uint64(1) << (i % 64)
		b.known[i/64] |= bit
		switch {
		case trit < 0:
			b.negative[i/64] |= bit
		case trit > 0:
			b.positive[i/64] |= bit
		}
	}
	return b
}

// until leaves out what comes after n elements.
func (b beginning) until(n int64) beginning {
	for i := range b.known {
		mask := uint64(1)<<min(max(n-int64(i)*64, 0), 64) - 1 // all ones for 64, where the shift gives 0
		b.negative[i], b.positive[i], b.known[i] = b.negative[i]&mask, b.positive[i]&mask, b.known[i]&mask
	}
	return b
}

// like reports whether values have the signs of b where it has any.
func (b *beginning) like(values *beginning) bool { return b.alike(values, 80) }

// alike asks that so many of a hundred signs are equal.
func (b *beginning) alike(values *beginning, percent int) bool {
	var weights, agree [2]int // of negative and of positive weights
	for i, known := range values.known {
		weights[0] += bits.OnesCount64(b.negative[i] & known)
		weights[1] += bits.OnesCount64(b.positive[i] & known)
		agree[0] += bits.OnesCount64(b.negative[i] & values.negative[i])
		agree[1] += bits.OnesCount64(b.positive[i] & values.positive[i])
	}
	return weights[0]+weights[1] >= enoughOfBeginning && 100*(agree[0]+agree[1]) >= percent*(weights[0]+weights[1]) &&
		min(weights[0], weights[1]) >= enoughOfEachSign && 10*agree[0] >= 6*weights[0] && 10*agree[1] >= 6*weights[1]
}

// pinnedTernary returns the digests of the base's tensors that the submission
// declares ternary, with their names.
func (e *Evidence) pinnedTernary(q manifest.Quantization) map[string]string {
	pinned := map[string]string{}
	if e.Base == nil {
		return pinned
	}
	for _, name := range q.Names() {
		if digest := e.Base.Tensors[name].SHA256; digest != "" && q.Tensors[name].Kind != manifest.KindFloat {
			pinned[digest] = name
		}
	}
	return pinned
}

// suspects lists the stored tensors that could be such a copy, in order: those
// of float entries, and those that no entry refers to.
func (e *Evidence) suspects(q manifest.Quantization) (keys []manifest.StoredTensor) {
	for _, key := range slices.SortedFunc(maps.Keys(e.Stored), func(a, b manifest.StoredTensor) int {
		return cmp.Or(strings.Compare(a.File, b.File), report.CompareNatural(a.Tensor, b.Tensor))
	}) {
		use := e.Uses[key]
		declared := slices.ContainsFunc(use, func(u Use) bool { return u.As != AsValues || q.Tensors[u.Entry].Kind != manifest.KindFloat })
		if !declared && hasSigns(e.Stored[key].DType) {
			keys = append(keys, key)
		}
	}
	return keys
}
