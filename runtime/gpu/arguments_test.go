//go:build cuda

package gpu

import (
	"bytes"
	"testing"
)

func TestArgumentsLayout(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(*Arguments)
		want  []byte
	}{
		{"none", func(*Arguments) {}, nil},
		{"an int", func(a *Arguments) { a.Int32(-2) }, []byte{0xfe, 0xff, 0xff, 0xff}},
		{"a float", func(a *Arguments) { a.Float32(1) }, []byte{0, 0, 0x80, 0x3f}},
		{"a pointer after an int is padded", func(a *Arguments) { a.Int32(1).Pointer(0x0203) }, []byte{1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0}},
		{"two ints and a pointer are not", func(a *Arguments) { a.Int32(1).Int32(2).Uint64(3) }, []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}},
		{"no padding at the end", func(a *Arguments) { a.Uint64(1).Int32(2) }, []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}},
		{"a struct of 16", func(a *Arguments) { a.Int32(1).Bytes([]byte{7, 8}, 16).Int32(2) }, append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0}, 2, 0, 0, 0)},
		{"a tensor map", func(a *Arguments) { a.Int32(1).Bytes(make([]byte, 128), 64) }, append([]byte{1}, make([]byte, 191)...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// A buffer that has been used must not show through.
			a := &Arguments{}
			a.Bytes(bytes.Repeat([]byte{0xaa}, 256), 1)
			a.Reset()
			tc.build(a)
			if !bytes.Equal(a.data, tc.want) {
				t.Errorf("laid out as %v, want %v", a.data, tc.want)
			}
		})
	}
}

func TestArgumentsAllocateOnce(t *testing.T) {
	a := &Arguments{}
	fill := func() {
		a.Reset()
		a.Pointer(1).Int32(2).Float32(3).Uint64(4)
	}
	fill()
	if allocations := testing.AllocsPerRun(100, fill); allocations != 0 {
		t.Errorf("%v allocations for arguments that fit", allocations)
	}
}
