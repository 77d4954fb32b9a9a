package safetensors

import "io"

// File reads single tensors out of a file. It is safe for concurrent use if
// its reader is.
type File struct {
	Header *Header
	r      io.ReaderAt
}

// Open reads and checks the header of a file of size bytes. It does not take
// over r: closing it remains the caller's.
func Open(r io.ReaderAt, size int64) (*File, error) {
	h, err := ReadHeaderAt(r, size)
	if err != nil {
		return nil, err
	}
	return &File{Header: h, r: r}, nil
}

// Section returns the bytes of the tensor of that exact name, Tensor.Bytes of
// them, C order, little endian; ok is false if there is none. Nothing is read
// until the section is.
func (f *File) Section(name string) (section *io.SectionReader, ok bool) {
	t, ok := f.Header.Lookup(name)
	if !ok {
		return nil, false
	}
	return io.NewSectionReader(f.r, f.Header.DataStart+t.Begin, t.Bytes()), true
}
