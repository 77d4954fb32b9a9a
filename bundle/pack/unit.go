package pack

import (
	"fmt"
	"math"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// Unit is what shares a scale: manifest.UnitTensor, UnitRow, or UnitGroup with
// the number of inputs of a group.
type Unit struct {
	Kind  string `json:"unit"`
	Group int64  `json:"group_size,omitempty"`
}

func (u Unit) String() string {
	if u.Kind == manifest.UnitGroup {
		return fmt.Sprintf("group of %d", u.Group)
	}
	return u.Kind
}

// matrix is a tensor's shape as codes see it: rows of inputs.
type matrix struct{ rows, inputs int64 }

func matrixOf(t safetensors.Tensor) matrix {
	inputs := t.Shape[len(t.Shape)-1]
	return matrix{t.Elements() / inputs, inputs}
}

// size returns the weights of a unit.
func (u Unit) size(m matrix) int64 {
	switch u.Kind {
	case manifest.UnitTensor:
		return m.rows * m.inputs
	case manifest.UnitRow:
		return m.inputs
	}
	return u.Group
}

// granule returns the consecutive weights of a unit that are looked at
// together: all of them, or a row of the whole tensor.
func (u Unit) granule(m matrix) int64 { return min(u.size(m), m.inputs) }

// groups are the sizes of groups that are tried, largest first, in inputs.
var groups = []int64{256, 128, 64, 32}

// smallestGroup is the least that shares a scale: less would be no compression
// of ternary weights but a table of float ones.
const smallestGroup = 32

// mostInputs bounds a row, which is held in memory: far more than models have.
const mostInputs = 1 << 22

// unitsOf lists the units that a tensor may have, largest first.
func unitsOf(m matrix) []Unit {
	units := []Unit{{Kind: manifest.UnitTensor}, {Kind: manifest.UnitRow}}
	for _, g := range groups {
		if g < m.inputs && m.inputs%g == 0 && m.inputs%smallestGroup == 0 {
			units = append(units, Unit{manifest.UnitGroup, g})
		}
	}
	return units
}

// finder finds the largest unit by which a tensor is ternary, in one pass, in
// memory that does not depend on the tensor.
type finder struct {
	floats
	matrix
	candidates []Unit // those that still hold, largest first
	smallest   Unit   // of those that there were
	magnitude  uint32 // of the whole tensor so far, 0 for zeros

	seen      int64    // weights
	good, bad int64    // of them, those in ternary units that are not zeros, and those in others
	zeros     int64    // negative zeros
	offence   *offence // the first place where the smallest unit does not hold
}

// offence is a place where a tensor is not ternary.
type offence struct {
	row, input int64
	unit       Unit
	found      uint32 // magnitude
	expected   uint32 // magnitude of its unit
}

func newFinder(f floats, m matrix, units []Unit) *finder {
	return &finder{floats: f, matrix: m, candidates: units, smallest: units[len(units)-1]}
}

// rowBytes returns the bytes of a row: add takes whole ones.
func (n *finder) rowBytes() int64 { return n.inputs * n.bytes }

// add looks at whole rows.
func (n *finder) add(rows []byte) {
	for len(rows) > 0 {
		unit := n.smallest
		if len(n.candidates) > 0 {
			unit = n.candidates[0]
		}
		// Sizes divide each other, so that what a candidate refuses begins a
		// unit of the next one, too.
		piece := rows[:unit.granule(n.matrix)*n.bytes]
		if n.accept(piece, unit) {
			rows = rows[len(piece):]
			n.seen += int64(n.count(piece))
		}
	}
}

// accept holds a piece against a unit. It is false where that was a candidate,
// which is none any more, and the next one has to be asked.
func (n *finder) accept(piece []byte, unit Unit) bool {
	m := n.first(piece)
	if unit.Kind == manifest.UnitTensor && n.magnitude != 0 && m < n.infinity {
		m = n.magnitude
	}
	ok, zeros := n.uniform(piece, m)
	if !ok && len(n.candidates) > 0 {
		if n.candidates = n.candidates[1:]; len(n.candidates) > 0 {
			return false
		}
		n.blame(piece, m, unit)
	}
	n.zeros += zeros
	switch {
	case !ok:
		n.bad += int64(n.count(piece))
	case m != 0:
		n.magnitude = m
		n.good += int64(n.count(piece))
	}
	return true
}

// blame remembers where a piece is not ternary.
func (n *finder) blame(piece []byte, expected uint32, unit Unit) {
	i := n.stray(piece, expected)
	at := n.seen + int64(i)
	found, _ := n.at(piece, i)
	n.offence = &offence{at / n.inputs, at % n.inputs, unit, found, expected}
}

// hopeless reports whether more than half of the tensor is not ternary.
func (n *finder) hopeless() bool { return 2*n.bad > n.rows*n.inputs }

// near reports whether at least half of what is not zero is ternary: no float
// weights look so by chance.
func (n *finder) near() bool { return n.good > 0 && n.good >= n.bad }

// describe says in words where and how a tensor is not ternary.
func (o offence) describe(f floats) string {
	if o.found >= f.infinity {
		return fmt.Sprintf("row %d, input %d: %s", o.row, o.input, f.text(o.found))
	}
	return fmt.Sprintf("row %d, input %d: magnitude %s in a %s of %s", o.row, o.input, f.text(o.found), o.unit, f.text(o.expected))
}

// text writes a magnitude as a number.
func (f floats) text(magnitude uint32) string {
	var v float64
	switch {
	case magnitude > f.infinity:
		return "not a number"
	case magnitude == f.infinity:
		return "infinite"
	case f.bytes == 4:
		v = float64(math.Float32frombits(magnitude))
	case f.infinity == 0x7f80:
		v = float64(math.Float32frombits(magnitude << 16))
	case magnitude < 0x400: // subnormal F16
		v = math.Ldexp(float64(magnitude), -24)
	default:
		v = math.Ldexp(1+float64(magnitude&0x3ff)/1024, int(magnitude>>10)-15)
	}
	return fmt.Sprintf("%.9g", v)
}
