package scan

import (
	"encoding/binary"
	"hash"
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/scan/vector"
	"slipway/verify/ternary"
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
	if len(q.Keep) > 0 {
		observers = append(observers, &keepObserver{ranges: q.Keep})
	}
	for _, rows := range q.Signs {
		observers = append(observers, observeSigns(dtype, rows))
	}
	if halves := observeHalves(dtype); q.Halves && halves != nil {
		observers = append(observers, halves)
	}
	values := ternary.HoldsValues(dtype)
	if values && len(q.Literal) > 0 && q.Asymmetric {
		observers = append(observers, observeAsymmetric(dtype, q.Literal))
	}
	if values && len(q.Literal) > 0 { // it looks for NaN too
		return append(observers, observeLiteral(dtype, q.Literal))
	}
	if finite := observeFinite(dtype); finite != nil {
		observers = append(observers, finite)
	}
	if q.Codes != nil {
		observers = append(observers, observeCodes(q.Codes))
	}
	if values && q.Scales {
		observers = append(observers, observeScales(dtype))
	}
	if values && q.Pair != Unpaired {
		observers = append(observers, observePair(dtype, q.Pair))
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

// finiteObserver counts NaN and infinite elements.
type finiteObserver struct {
	words        words
	float        vector.Float // its exponent is compared whole where equal
	equal        bool         // an element is NaN when it is the exponent's lane
	lane         int          // bits
	element      int64
	count, first int64
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
			lane: lane, float: vector.Float{Exponent: spread(lane, mask), One: spread(lane, mask&-mask), Top: spread(lane, 1<<(lane-1))},
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
		return &finiteObserver{lane: 8, float: vector.Float{Exponent: 0xff}, equal: true}
	case safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ:
		return &finiteObserver{lane: 8, float: vector.Float{Exponent: 0x80}, equal: true}
	}
	return nil
}

func (o *finiteObserver) write(p []byte) { o.words.feed(p, o.take) }

// take goes quickly through what is finite, which nearly all of it is.
func (o *finiteObserver) take(p []byte) {
	for !o.equal && len(p) >= 32 {
		n := vector.Finite(p, o.float)
		o.element += int64(n * 8 / o.lane)
		if p = p[n:]; len(p) >= 32 {
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
		if o.equal || (x&o.float.Exponent+o.float.One)&o.float.Top != 0 {
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
		bad := v&(o.float.Exponent&lane) == o.float.Exponent&lane
		if o.equal {
			bad = v == o.float.Exponent
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
