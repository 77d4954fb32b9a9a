package safetensors

import (
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"
)

// parser turns the JSON of a header into tensors, in the order of the file.
type parser struct {
	scanner
	tensors  []Tensor
	byName   map[string]int32
	metadata map[string]string
	shape    []int64 // scratch
}

// parseJSON checks everything that does not need all tensors at once: S2, S3,
// S4, S6, S8 and, of S5, the length of each tensor.
func parseJSON(src []byte) (*parser, error) {
	if len(src) == 0 || src[0] != '{' {
		return nil, fault("S2", "", "header does not begin with '{'")
	}
	if !utf8.Valid(src) {
		return nil, fault("S2", "", "header is not valid UTF-8 at byte %d", 8+firstInvalid(src))
	}
	expected := min(len(src)/128, 1<<15) // tensors; a guess that saves most growing
	p := &parser{
		scanner: scanner{src: src, base: 8, rule: "S3"},
		tensors: make([]Tensor, 0, expected),
		byName:  make(map[string]int32, expected),
	}
	if err := p.object(p.entry); err != nil {
		return nil, err
	}
	if limit := MaxPadding + 256*len(p.tensors); p.space > limit {
		return nil, fault("S2", "", "%d bytes of white space between tokens exceed %d", p.space, limit)
	}
	padding := src[p.pos:]
	if i := slices.IndexFunc(padding, func(c byte) bool { return c != ' ' }); i >= 0 {
		return nil, fault("S2", "", "byte 0x%02x at byte %d follows the header's JSON; only spaces may", padding[i], 8+p.pos+i)
	}
	if len(padding) > MaxPadding {
		return nil, fault("S2", "", "%d spaces after the header's JSON exceed %d", len(padding), MaxPadding)
	}
	return p, nil
}

func firstInvalid(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(src)
}

// entry reads the value of one top-level key.
func (p *parser) entry(key []byte) error {
	if string(key) == metadataKey {
		return p.readMetadata()
	}
	name := string(key)
	if i := controlIndex(name); i >= 0 {
		return fault("S8", name, "control character at byte %d of the name", i)
	}
	if _, twice := p.byName[name]; twice {
		return fault("S3", name, "name occurs twice")
	}
	if len(p.tensors) == MaxTensors {
		return fault("S3", "", "more than %d tensors", MaxTensors)
	}
	t, err := p.tensor(name)
	if err != nil {
		if e, ok := err.(*Error); ok {
			e.Tensor = name
		}
		return err
	}
	p.byName[name] = int32(len(p.tensors))
	p.tensors = append(p.tensors, t)
	return nil
}

// controlIndex returns the offset of the first control character (Unicode
// category Cc), or -1.
func controlIndex(name string) int {
	for i, r := range name {
		if unicode.IsControl(r) {
			return i
		}
	}
	return -1
}

func (p *parser) readMetadata() error {
	if p.metadata != nil {
		return fault("S3", "", "%s occurs twice", metadataKey)
	}
	p.metadata = make(map[string]string)
	total := 0
	return p.object(func(rawKey []byte) error {
		key := string(rawKey)
		if _, twice := p.metadata[key]; twice {
			return fault("S3", "", "%s key %s occurs twice", metadataKey, quote(key))
		}
		if p.peek() != '"' {
			return fault("S3", "", "%s key %s has a value that is not a string", metadataKey, quote(key))
		}
		value, err := p.string()
		if err != nil {
			return err
		}
		if total += len(key) + len(value); total > MaxMetadata {
			return fault("S3", "", "%s holds more than %d bytes", metadataKey, MaxMetadata)
		}
		p.metadata[key] = string(value)
		return nil
	})
}

// tensor reads {dtype, shape, data_offsets} in any order.
func (p *parser) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	const dtype, shape, offsets = 1, 2, 4
	seen := 0
	err := p.object(func(key []byte) error {
		var field int
		var read func(*Tensor) error
		switch string(key) {
		case "dtype":
			field, read = dtype, p.dtype
		case "shape":
			field, read = shape, p.dims
		case "data_offsets":
			field, read = offsets, p.offsets
		default:
			return fault("S3", name, "unknown key %s", quote(string(key)))
		}
		if seen&field != 0 {
			return fault("S3", name, "key %q occurs twice", key)
		}
		seen |= field
		return read(&t)
	})
	if err != nil {
		return t, err
	}
	for i, key := range []string{"dtype", "shape", "data_offsets"} {
		if seen&(1<<i) == 0 {
			return t, fault("S3", name, "key %q is missing", key)
		}
	}
	return t, t.checkLength()
}

func (p *parser) dtype(t *Tensor) error {
	text, err := p.string()
	if err != nil {
		return err
	}
	var ok bool
	if t.DType, ok = dtypeByName[string(text)]; !ok {
		return fault("S6", t.Name, "unknown dtype %s", quote(string(text)))
	}
	return nil
}

func (p *parser) dims(t *Tensor) error {
	p.shape = p.shape[:0]
	err := p.list('[', ']', func() error {
		if len(p.shape) == MaxRank {
			return fault("S4", t.Name, "more than %d dimensions", MaxRank)
		}
		dim, err := p.integer("S4")
		p.shape = append(p.shape, dim)
		return err
	})
	t.Shape = slices.Clone(p.shape)
	return err
}

func (p *parser) offsets(t *Tensor) error {
	var pair [2]int64
	n := 0
	err := p.list('[', ']', func() error {
		if n == len(pair) {
			return fault("S3", t.Name, "data_offsets has more than two numbers")
		}
		var err error
		pair[n], err = p.integer("S5")
		n++
		return err
	})
	if err == nil && n != len(pair) {
		err = fault("S3", t.Name, "data_offsets has %d numbers, not two", n)
	}
	t.Begin, t.End = pair[0], pair[1]
	return err
}

// checkLength holds the offsets against dtype and shape (rules S4 and S5).
func (t *Tensor) checkLength() error {
	size, err := t.size()
	if err != nil {
		return err
	}
	if t.End < t.Begin {
		return fault("S5", t.Name, "offsets [%d,%d] end before they begin", t.Begin, t.End)
	}
	if t.Bytes() != size {
		return fault("S5", t.Name, "offsets [%d,%d] span %d bytes, %v %v needs %d", t.Begin, t.End, t.Bytes(), t.DType, t.Shape, size)
	}
	return nil
}

// size returns the bytes that dtype and shape call for (rule S4). As in the
// format's own reader, the product is taken from the first dimension on and
// must fit 64 bits at every step, in bits; the result is below 2^61.
func (t *Tensor) size() (int64, error) {
	product := uint64(1)
	for _, dim := range t.Shape {
		if dim < 0 {
			return 0, fault("S4", t.Name, "negative dimension in shape %v", t.Shape)
		}
		high, low := bits.Mul64(product, uint64(dim))
		if high != 0 {
			return 0, fault("S4", t.Name, "element count of shape %v exceeds 64 bits", t.Shape)
		}
		product = low
	}
	high, total := bits.Mul64(product, uint64(t.DType.Bits()))
	if high != 0 {
		return 0, fault("S4", t.Name, "size of %v %v in bits exceeds 64 bits", t.DType, t.Shape)
	}
	if total%8 != 0 {
		return 0, fault("S4", t.Name, "%v %v is %d bits, not a whole number of bytes", t.DType, t.Shape, total)
	}
	return int64(total / 8), nil
}
