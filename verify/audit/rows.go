package audit

import (
	"fmt"
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"slipway/manifest/safetensors"
	"slipway/verify/scan"
)

// A part of a ternary tensor's rows, in whatever tensor it lies and at whatever
// row it begins there or here, is found by content. The samples of the ternary
// tensors begin rows; of a suspect the first signs of every row are kept. Two
// samples of one tensor must be found as far apart as they are: in a part of 2^19
// weights (1 MiB in 16 bits), or of a quarter of a smaller tensor, there are two.
// One is not enough, since trained rows point where embeddings do.
//
// Of weights in full precision the signs are the ternary ones where those are
// not zero, and anything else elsewhere: with a third of zeros five of six bits
// agree. Candidates are the pairs of which the bits of a band are equal; there
// are 16 bands of the 256 bits, of as many bits as there are sampled rows to
// tell apart, 8 to 16. A copy whose zeros are zeros is always found; with a third
// of zeros and 10,000 sampled rows of one length seven in ten rows are, with a
// half of zeros one in four, and one of a part's is enough. Few pairs are compared
// all.
const (
	bandStep  = 16
	bandCount = (sampleLength-16)/bandStep + 1
	allPairs  = 1 << 18

	// Of 128 random signs 85 of a hundred agree once in 10^15 cases; there are
	// up to 10^10 pairs of rows, of which the second sample is asked less.
	enoughOfRow    = 85
	enoughOfSecond = 80

	// maxRows bounds the rows of one suspect, 32 bytes each.
	maxRows = 1 << 18
)

// Rows lists the lengths of rows, in elements, whose first signs to keep of a
// tensor that could hold parts of ternary ones.
func (s *Suspects) Rows(t safetensors.Tensor) (rows []scan.Rows) {
	for _, steps := range s.rowSteps(t) {
		rows = append(rows, scan.Rows{Length: steps.every, Count: t.Elements() / steps.every})
	}
	return rows
}

// rowSteps is the length of a ternary tensor's rows, and how far apart the rows
// of a suspect are that are looked at: as far, or a multiple of it.
type rowSteps struct{ length, every int64 }

// rowSteps lists the rows that parts of ternary tensors could have in a tensor:
// its own, or, where no ternary tensor has such rows, all that fit.
func (s *Suspects) rowSteps(t safetensors.Tensor) (steps []rowSteps) {
	n := t.Elements()
	if !hasSigns(t.DType) || n < sampleLength {
		return nil
	}
	lengths := s.lengths
	if own := lastOf(t); s.inputs[own] > 0 {
		lengths = []int64{own}
	}
	for _, length := range lengths {
		if n%length != 0 {
			continue
		}
		every := length
		for every < sampleLength || n/every > maxRows {
			every *= 2
		}
		steps = append(steps, rowSteps{length, every})
	}
	return steps
}

// sampledRow is where a sample of a ternary tensor lies, and its signs.
type sampledRow struct {
	name string
	row  int64
	beginning
}

// rowIndex holds the sampled rows of one length, and finds them by bands.
type rowIndex struct {
	rows  []sampledRow
	bits  int
	first [bandCount][]int32 // by the bits of a band, the last such row; -1: none
	next  [bandCount][]int32 // the one before it
	quick [rowWords][]quickRow
}

// quickRow is a part of a row, to refuse nearly all candidates by.
type quickRow struct{ negative, weights uint64 }

// couldBe reports whether a word of a suspect's signs agrees with a row's well
// enough for the rows to be alike.
func (q quickRow) couldBe(signs uint64) bool {
	return 100*bits.OnesCount64((q.negative^^signs)&q.weights) >= 65*bits.OnesCount64(q.weights)
}

// rowsOf indexes the sampled rows of the ternary tensors with rows of a length.
func (s *search) rowsOf(length int64) *rowIndex {
	if index := s.indexes[length]; index != nil {
		return index
	}
	var names []string
	for _, name := range s.names {
		if s.rows[name] == length {
			names = append(names, name)
		}
	}
	sampled := make([][]sampledRow, len(names))
	inParts(len(names), 16, func(_, begin, end int) {
		for i := begin; i < end; i++ {
			sampled[i] = s.sampledRows(names[i], length)
		}
	})
	index := &rowIndex{rows: slices.Concat(sampled...)}
	index.build()
	s.indexes[length] = index
	return index
}

// sampledRows lists the samples of a ternary tensor with rows of a length.
func (s *search) sampledRows(name string, length int64) (rows []sampledRow) {
	trits := s.signsOf(name, allWeights)
	for _, first := range slices.Sorted(maps.Keys(trits)) {
		if len(trits[first]) != sampleLength {
			continue
		}
		if b := beginningOf(trits[first]); b.alike(&b, enoughOfRow) { // else nothing can be like it
			rows = append(rows, sampledRow{name, first / length, b})
		}
	}
	return rows
}

// inParts calls do for parts of count things, each of least or more, on all cores.
func inParts(count, least int, do func(part, begin, end int)) {
	parts := min(runtime.GOMAXPROCS(0), 1+count/least)
	var workers sync.WaitGroup
	for part := range parts {
		workers.Go(func() { do(part, count*part/parts, count*(part+1)/parts) })
	}
	workers.Wait()
}

// maxAlike is how many sampled rows with the same bits in a band are looked at:
// more is no chance, but rows that are alike.
const maxAlike = 64

func (x *rowIndex) build() {
	for word := range x.quick {
		x.quick[word] = make([]quickRow, len(x.rows))
		for i, row := range x.rows {
			x.quick[word][i] = quickRow{row.negative[word], row.negative[word] | row.positive[word]}
		}
	}
	x.bits = min(max(bits.Len(uint(len(x.rows))), 8), 16)
	for band := range bandCount {
		x.first[band] = slices.Repeat([]int32{-1}, 1<<x.bits)
		x.next[band] = make([]int32, len(x.rows))
		many := make([]uint8, 1<<x.bits)
		for i := range x.rows {
			key := x.band(&x.rows[i].negative, band)
			if many[key]++; many[key] > maxAlike {
				many[key] = maxAlike
				continue
			}
			x.next[band][i] = x.first[band][key]
			x.first[band][key] = int32(i)
		}
	}
}

// band returns some of a row's bits.
func (x *rowIndex) band(signs *[rowWords]uint64, band int) uint64 {
	at := band * bandStep
	value := signs[at/64] >> (at % 64)
	if at%64+x.bits > 64 {
		value |= signs[at/64+1] << (64 - at%64)
	}
	return value & (1<<x.bits - 1)
}

// hit is a row of a suspect and the sampled row that it is like.
type hit struct {
	at  int // -1: there is none
	row int32
}

// better reports whether a hit comes before another one.
func (h hit) better(than hit) bool {
	return than.at < 0 || h.at < than.at || h.at == than.at && h.row < than.row
}

const rowWords = sampleLength / 64

// suspectRows are the first signs of a suspect's rows, every so many of them.
type suspectRows struct {
	signs []uint64
	step  int64
}

func (r suspectRows) count() int { return len(r.signs) / rowWords }

func (r suspectRows) at(i int) *[rowWords]uint64 { return (*[rowWords]uint64)(r.signs[i*rowWords:]) }

// find returns the first of some rows of a suspect that is like a sampled one.
func (x *rowIndex) find(rows suspectRows, begin, end int) hit {
	best := hit{at: -1}
	look := func(at int, row int32) {
		if h := (hit{at, row}); h.better(best) && x.rows[row].isLike(rows.at(at), enoughOfRow) && x.confirmed(rows, h) {
			best = h
		}
	}
	if rows.count()*len(x.rows) <= allPairs {
		for at := begin; at < end; at++ {
			first := rows.at(at)[0]
			for row := range x.quick[0] {
				if x.quick[0][row].couldBe(first) {
					look(at, int32(row))
				}
			}
		}
		return best
	}
	for band := range bandCount { // one after the other, so that each is in the cache
		x.candidates(band, rows, begin, end, look)
	}
	return best
}

// confirmed reports whether the sample before or after a tensor's sampled row lies
// as far from it in the suspect too.
func (x *rowIndex) confirmed(rows suspectRows, h hit) bool {
	found := &x.rows[h.row]
	for _, other := range []int32{h.row - 1, h.row + 1} {
		if other < 0 || int(other) == len(x.rows) || x.rows[other].name != found.name {
			continue
		}
		apart := x.rows[other].row - found.row
		if at := int64(h.at) + apart/rows.step; apart%rows.step == 0 && at >= 0 && at < int64(rows.count()) &&
			x.rows[other].isLike(rows.at(int(at)), enoughOfSecond) {
			return true
		}
	}
	return false
}

// candidates calls with the pairs of rows of which a band is equal, but for those
// that another word shows to be unlike.
func (x *rowIndex) candidates(band int, rows suspectRows, begin, end int, look func(at int, row int32)) {
	other := (band*bandStep/64 + 2) % rowWords // none of the band is in it
	first, next, quick := x.first[band], x.next[band], x.quick[other]
	for at := begin; at < end; at++ {
		own := rows.at(at)
		for i := first[x.band(own, band)]; i >= 0; i = next[i] {
			if quick[i].couldBe(own[other]) {
				look(at, i)
			}
		}
	}
}

// isLike reports whether so many of a hundred signs of a sampled row are those of
// a suspect's row.
func (r *sampledRow) isLike(signs *[rowWords]uint64, percent int) bool {
	b := beginning{negative: *signs}
	for i, word := range signs {
		b.positive[i], b.known[i] = ^word, ^uint64(0)
	}
	return r.alike(&b, percent)
}

// search is find, on all cores.
func (x *rowIndex) search(rows suspectRows) hit {
	hits := slices.Repeat([]hit{{at: -1}}, runtime.GOMAXPROCS(0))
	inParts(rows.count(), 1024, func(part, begin, end int) { hits[part] = x.find(rows, begin, end) })
	best := hit{at: -1}
	for _, h := range hits {
		if h.at >= 0 && h.better(best) {
			best = h
		}
	}
	return best
}

// partRows says of which ternary tensor a suspect holds rows, or "".
func (s *search) partRows(t safetensors.Tensor, kept [][]uint64) string {
	steps := s.rowSteps(t)
	if len(steps) != len(kept) {
		return ""
	}
	for i, step := range steps {
		index := s.rowsOf(step.length)
		if h := index.search(suspectRows{kept[i], step.every / step.length}); h.at >= 0 {
			found := index.rows[h.row]
			return fmt.Sprintf("has from element %d on the signs of %s, which is declared ternary, from row %d on: a copy of a part of it in full precision",
				int64(h.at)*step.every, found.name, found.row)
		}
	}
	return ""
}
