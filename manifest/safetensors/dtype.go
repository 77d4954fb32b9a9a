package safetensors

// DType is the element type of a tensor. The zero value is no type.
type DType uint8

// The element types of the format.
const (
	BOOL DType = iota + 1
	U8
	I8
	F8E5M2
	F8E4M3
	F8E8M0
	F8E4M3FNUZ
	F8E5M2FNUZ
	I16
	U16
	F16
	BF16
	I32
	U32
	F32
	I64
	U64
	F64
	C64
	F4
	F6E2M3
	F6E3M2
)

// dtypes gives the spelling in a header and the width of one element in bits.
var dtypes = [...]struct {
	name string
	bits int
}{
	BOOL: {"BOOL", 8}, U8: {"U8", 8}, I8: {"I8", 8},
	F8E5M2: {"F8_E5M2", 8}, F8E4M3: {"F8_E4M3", 8}, F8E8M0: {"F8_E8M0", 8},
	F8E4M3FNUZ: {"F8_E4M3FNUZ", 8}, F8E5M2FNUZ: {"F8_E5M2FNUZ", 8},
	I16: {"I16", 16}, U16: {"U16", 16}, F16: {"F16", 16}, BF16: {"BF16", 16},
	I32: {"I32", 32}, U32: {"U32", 32}, F32: {"F32", 32},
	I64: {"I64", 64}, U64: {"U64", 64}, F64: {"F64", 64}, C64: {"C64", 64},
	F4: {"F4", 4}, F6E2M3: {"F6_E2M3", 6}, F6E3M2: {"F6_E3M2", 6},
}

var dtypeByName = func() map[string]DType {
	byName := make(map[string]DType, len(dtypes))
	for i := BOOL; int(i) < len(dtypes); i++ {
		byName[dtypes[i].name] = i
	}
	return byName
}()

// ParseDType returns the type spelled name, such as "F8_E4M3". The spelling
// is exact; ok is false for any other.
func ParseDType(name string) (d DType, ok bool) {
	d, ok = dtypeByName[name]
	return d, ok
}

// String returns the spelling used in a header, or "invalid".
func (d DType) String() string {
	if !d.valid() {
		return "invalid"
	}
	return dtypes[d].name
}

// Bits returns the width of one element in bits: 4, 6, 8, 16, 32 or 64; 0 for
// a value that is no type.
func (d DType) Bits() int {
	if !d.valid() {
		return 0
	}
	return dtypes[d].bits
}

func (d DType) valid() bool { return d != 0 && int(d) < len(dtypes) }
