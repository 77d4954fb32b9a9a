package ternary

// Order says which weight's code lies where. Weights are numbered in C order.
// Read from byte to byte, and in a byte from slot to slot, codes belong to one
// scale unit after the other, and no code lies behind padding in its byte.
type Order interface {
	// Slot returns in which byte of the codes, and where in it, the code of a
	// weight lies.
	Slot(element int64) (at int64, slot int)
	// Element returns the weight whose code lies in a slot of a byte; ok is false
	// where that is padding.
	Element(at int64, slot int) (element int64, ok bool)
}

// sideBySide has the codes of a row after each other in bytes of its own.
type sideBySide struct{ inputs, rowBytes, slots int64 }

func (o sideBySide) Slot(element int64) (at int64, slot int) {
	row, input := element/o.inputs, element%o.inputs
	return row*o.rowBytes + input/o.slots, int(input % o.slots)
}

func (o sideBySide) Element(at int64, slot int) (element int64, ok bool) {
	row, input := at/o.rowBytes, at%o.rowBytes*o.slots+int64(slot)
	return row*o.inputs + input, input < o.inputs
}

// quarters has in each byte a code of each quarter of the rows.
type quarters struct{ rows, inputs, packedRows int64 }

func (o quarters) Slot(element int64) (at int64, slot int) {
	row, input := element/o.inputs, element%o.inputs
	return row%o.packedRows*o.inputs + input, int(row / o.packedRows)
}

func (o quarters) Element(at int64, slot int) (element int64, ok bool) {
	row := at/o.inputs + int64(slot)*o.packedRows
	return row*o.inputs + at%o.inputs, row < o.rows
}
