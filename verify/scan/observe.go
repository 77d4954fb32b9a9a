package scan

import (
	"encoding/binary"
	"hash"
	"math"
	"math/bits"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// An observer sees all bytes of one tensor, in order and in pieces of any
// length, and keeps what gates need of them.
type observer interface {
	write(p []byte)
	finish(facts *Tensor)
}

// walker feeds the data section of a shard to the observers of the tensor that
// each byte belongs to.
type walker struct {
	header    *safetensors.Header
	ask       func(safetensors.Tensor) Questions
	facts     map[string]*Tensor
	next      int // index of the tensor under the cursor
	offset    int64
	observers []observer
}

func newWalker(header *safetensors.Header, ask func(safetensors.Tensor) Questions) *walker {
	w := &walker{header: header, ask: ask, facts: make(map[string]*Tensor, len(header.Tensors))}
	w.enter()
	return w
}

// enter begins the tensor under the cursor, ending the empty ones before it.
func (w *walker) enter() {
	for w.next < len(w.header.Tensors) {
		t := w.header.Tensors[w.next]
		w.observers = observersOf(t.DType, w.ask(t))
		if t.End > w.offset {
			return
		}
		w.leave()
	}
}

// observersOf returns those that answer the questions about a tensor.
func observersOf(dtype safetensors.DType, q Questions) []observer {
	observers := []observer{observePrefix()}
	if q.Digest {
		observers = append(observers, observeDigest())
	}
	if finite := observeFinite(dtype); finite != nil {
		observers = append(observers, finite)
	}
	var o observer
	switch {
	case q.Codes > 0:
		o = observeCodes(q.Codes)
	case q.Scales:
		o = observeScales(dtype)
	case q.Literal > 0:
		o = observeLiteral(dtype, q.Literal)
	}
	if o != nil {
		observers = append(observers, o)
	}
	return observers
}

func (w *walker) leave() {
	facts := &Tensor{}
	for _, o := range w.observers {
		o.finish(facts)
	}
	w.facts[w.header.Tensors[w.next].Name] = facts
	w.next++
}

func (w *walker) write(p []byte) {
	for len(p) > 0 && w.next < len(w.header.Tensors) {
		n := min(int64(len(p)), w.header.Tensors[w.next].End-w.offset)
		for _, o := range w.observers {
			o.write(p[:n])
		}
		p = p[n:]
		w.offset += n
		if w.offset == w.header.Tensors[w.next].End {
			w.leave()
			w.enter()
		}
	}
}

// digestObserver hashes a tensor, whole or its first prefixBytes.
type digestObserver struct {
	hash  hash.Hash
	left  int64
	whole bool
}

func observeDigest() *digestObserver {
	return &digestObserver{hash: manifest.NewHash(), left: math.MaxInt64, whole: true}
}

func observePrefix() *digestObserver {
	return &digestObserver{hash: manifest.NewHash(), left: prefixBytes}
}

func (o *digestObserver) write(p []byte) {
	n := min(o.left, int64(len(p)))
	_, _ = o.hash.Write(p[:n]) // a hash never returns a write error
	o.left -= n
}

func (o *digestObserver) finish(facts *Tensor) {
	if o.whole {
		facts.Digest = manifest.FinishHash(o.hash)
	} else {
		facts.Prefix = manifest.FinishHash(o.hash)
	}
}

// codesObserver counts two-bit codes and finds the scale units whose codes all
// mean zero. Four codes lie in a byte; their order does not matter here.
type codesObserver struct {
	facts     Codes
	unitBytes int64 // bytes of codes that share a scale
	unit      int64 // under the cursor
	seen      int64 // bytes of that unit
	zero      bool  // all of them zero codes
	offset    int64 // bytes of the tensor
	low, high int64 // codes with the low bit, with the high bit set
}

func observeCodes(unitBytes int64) *codesObserver {
	return &codesObserver{facts: Codes{ZeroUnits: UnitSet{}}, unitBytes: unitBytes, zero: true}
}

func (o *codesObserver) write(p []byte) {
	for len(p) > 0 {
		n := min(int64(len(p)), unitsAtOnce) / o.unitBytes * o.unitBytes
		if o.seen != 0 || n == 0 || o.unitBytes%8 != 0 {
			n = min(int64(len(p)), o.unitBytes-o.seen)
			o.byUnit(p[:n])
		} else if count := countCodes(p[:n]); count.zeroWord {
			o.byUnit(p[:n])
		} else { // where no word is all zero codes, no unit is
			o.add(p[:n], count)
			o.unit += n / o.unitBytes
		}
		p = p[n:]
	}
}

// byUnit counts unit by unit, to know which of them are all zero codes.
func (o *codesObserver) byUnit(p []byte) {
	for len(p) > 0 {
		n := min(int64(len(p)), o.unitBytes-o.seen)
		o.add(p[:n], countCodes(p[:n]))
		o.zero = o.zero && allZeroCodes(p[:n])
		p = p[n:]
		if o.seen += n; o.seen == o.unitBytes {
			if o.zero {
				o.facts.ZeroUnits.add(o.unit)
			}
			o.unit++
			o.seen, o.zero = 0, true
		}
	}
}

// unitsAtOnce is how many bytes of codes are counted in one go.
const unitsAtOnce = 2 << 10

func (o *codesObserver) add(p []byte, count codeCount) {
	o.low += count.low
	o.high += count.high
	if count.bad > 0 && o.facts.Histogram[3] == 0 {
		o.facts.FirstBad = o.offset*4 + firstBadCode(p)
	}
	o.facts.Histogram[3] += count.bad
	o.offset += int64(len(p))
}

func (o *codesObserver) finish(facts *Tensor) {
	h := &o.facts.Histogram
	h[1], h[2] = o.low-h[3], o.high-h[3]
	h[0] = o.offset*4 - h[1] - h[2] - h[3]
	facts.Codes = &o.facts
}

const (
	lowBits   = 0x5555555555555555
	zeroCodes = 0x5555555555555555 // code 1 in all 32 places of a word
)

type codeCount struct {
	low, high, bad int64
	zeroWord       bool // all codes of an eight-byte word are 1
}

// countCodes counts the codes of p. Of two words the low bits fit into one, and
// so do the high bits: one population count a word. Code 3, both bits set, is
// looked for with an or and counted only where it is.
func countCodes(p []byte) codeCount {
	var low, high int
	var both uint64
	var count codeCount
	rest := p
	for len(rest) >= 32 {
		a, b := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:16])
		c, d := binary.LittleEndian.Uint64(rest[16:24]), binary.LittleEndian.Uint64(rest[24:32])
		low += bits.OnesCount64(a&lowBits|b&lowBits<<1) + bits.OnesCount64(c&lowBits|d&lowBits<<1)
		high += bits.OnesCount64(a>>1&lowBits|b&^lowBits) + bits.OnesCount64(c>>1&lowBits|d&^lowBits)
		both |= a&(a>>1) | b&(b>>1) | c&(c>>1) | d&(d>>1)
		if a == zeroCodes || b == zeroCodes || c == zeroCodes || d == zeroCodes {
			count.zeroWord = true
		}
		rest = rest[32:]
	}
	for len(rest) >= 8 {
		a := binary.LittleEndian.Uint64(rest)
		low += bits.OnesCount64(a & lowBits)
		high += bits.OnesCount64(a &^ lowBits)
		both |= a & (a >> 1)
		count.zeroWord = count.zeroWord || a == zeroCodes
		rest = rest[8:]
	}
	for _, c := range rest {
		low += bits.OnesCount8(c & 0x55)
		high += bits.OnesCount8(c & 0xaa)
		both |= uint64(c & (c >> 1))
	}
	count.low, count.high = int64(low), int64(high)
	if both&lowBits != 0 {
		for _, c := range p {
			count.bad += int64(bits.OnesCount8(c & (c >> 1) & 0x55))
		}
	}
	return count
}

// allZeroCodes reports whether every code is 1.
func allZeroCodes(p []byte) bool {
	for _, c := range p {
		if c != 0x55 {
			return false
		}
	}
	return true
}

// firstBadCode returns the index of the first code 3, lowest bits first.
func firstBadCode(p []byte) int64 {
	for i, c := range p {
		if bad := c & (c >> 1) & 0x55; bad != 0 {
			return int64(i)*4 + int64(bits.TrailingZeros8(bad)/2)
		}
	}
	return int64(len(p)) * 4
}

// words cuts a stream of pieces into eight-byte words.
type words struct {
	carry [8]byte
	n     int
}

// feed calls take with the longest prefix of carry and p that is whole words.
func (w *words) feed(p []byte, take func(p []byte)) {
	if w.n > 0 {
		n := copy(w.carry[w.n:], p)
		w.n += n
		p = p[n:]
		if w.n < 8 {
			return
		}
		take(w.carry[:])
		w.n = 0
	}
	whole := len(p) &^ 7
	if whole > 0 {
		take(p[:whole])
	}
	w.n = copy(w.carry[:], p[whole:])
}

// rest returns the bytes after the last whole word, zero-padded to a word.
func (w *words) rest() (word uint64, bytes int) {
	clear(w.carry[w.n:])
	return binary.LittleEndian.Uint64(w.carry[:]), w.n
}

// finiteObserver counts NaN and infinite elements. Of a word it keeps the
// exponent bits; where they are all ones, adding the lowest one carries into
// the sign's place, which was cleared.
type finiteObserver struct {
	words          words
	mask, one, top uint64
	equal          bool // an element is NaN when it equals mask's lane
	lane           int  // bits
	element        int64
	count, first   int64
}

// observeFinite returns nil for types that hold no such values.
func observeFinite(dtype safetensors.DType) observer {
	spread := func(lane int, v uint64) uint64 {
		out := uint64(0)
		for shift := 0; shift < 64; shift += lane {
			out |= v << shift
		}
		return out
	}
	exponent := func(lane int, mask uint64) observer {
		return &finiteObserver{
			lane: lane, mask: spread(lane, mask), one: spread(lane, mask&-mask), top: spread(lane, 1<<(lane-1)),
		}
	}
	switch dtype {
	case safetensors.BF16:
		return exponent(16, 0x7f80)
	case safetensors.F16:
		return exponent(16, 0x7c00)
	case safetensors.F32, safetensors.C64:
		return exponent(32, 0x7f800000)
	case safetensors.F64:
		return exponent(64, 0x7ff0000000000000)
	case safetensors.F8E5M2:
		return exponent(8, 0x7c)
	case safetensors.F8E4M3: // no infinities: NaN is the exponent and the mantissa all ones
		return exponent(8, 0x7f)
	case safetensors.F8E8M0:
		return &finiteObserver{lane: 8, mask: 0xff, equal: true}
	case safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ:
		return &finiteObserver{lane: 8, mask: 0x80, equal: true}
	}
	return nil
}

func (o *finiteObserver) write(p []byte) { o.words.feed(p, o.take) }

func (o *finiteObserver) take(p []byte) {
	perWord := int64(64 / o.lane)
	if !o.equal {
		// Four words at a time: what is finite, nearly all of it, costs one branch.
		mask, one, top := o.mask, o.one, o.top
		for len(p) >= 32 {
			run := p
			for len(run) >= 32 {
				a, b := binary.LittleEndian.Uint64(run), binary.LittleEndian.Uint64(run[8:16])
				c, d := binary.LittleEndian.Uint64(run[16:24]), binary.LittleEndian.Uint64(run[24:32])
				if ((a&mask+one)|(b&mask+one)|(c&mask+one)|(d&mask+one))&top != 0 {
					break
				}
				run = run[32:]
			}
			o.element += int64(len(p)-len(run)) / 8 * perWord
			if p = run; len(p) < 32 {
				break
			}
			o.byWord(p[:32])
			p = p[32:]
		}
	}
	o.byWord(p)
}

// byWord looks into whole words one at a time.
func (o *finiteObserver) byWord(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		if o.equal || (x&o.mask+o.one)&o.top != 0 {
			o.inspect(x)
		}
		o.element += int64(64 / o.lane)
	}
}

// inspect looks at the lanes of a word one by one.
func (o *finiteObserver) inspect(x uint64) {
	lane := uint64(1)<<o.lane - 1 // all ones for 64 bits, where the shift gives 0
	for i := range 64 / o.lane {
		v := x >> (i * o.lane) & lane
		bad := v&(o.mask&lane) == o.mask&lane
		if o.equal {
			bad = v == o.mask
		}
		if bad {
			if o.count == 0 {
				o.first = o.element + int64(i)
			}
			o.count++
		}
	}
}

func (o *finiteObserver) finish(facts *Tensor) {
	if x, n := o.words.rest(); n > 0 { // zero padding is finite in every type
		o.inspect(x)
	}
	facts.NonFinite, facts.FirstNonFinite = o.count, o.first
}
