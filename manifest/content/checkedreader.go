package content

import (
	"errors"
	"fmt"
	"hash"
	"io"

	"slipway/manifest"
)

// CheckedReader passes a blob through and returns io.EOF only after its size
// and digest agreed with a descriptor. Any other end is an *IntegrityError or
// the error of the reader below.
type CheckedReader struct {
	source io.Reader
	want   manifest.Descriptor
	hash   hash.Hash
	read   int64
	ended  error
}

// IntegrityError says that bytes were not the ones that a descriptor names.
// Got is zero where the size alone settled it.
type IntegrityError struct {
	Want, Got         manifest.Digest
	WantSize, GotSize int64
}

func (e *IntegrityError) Error() string {
	switch {
	case e.GotSize > e.WantSize:
		return fmt.Sprintf("%s: longer than its %d bytes", e.Want, e.WantSize)
	case e.GotSize < e.WantSize:
		return fmt.Sprintf("%s: ends after %d of %d bytes", e.Want, e.GotSize, e.WantSize)
	}
	return fmt.Sprintf("%s: its bytes have digest %s", e.Want, e.Got)
}

// NewCheckedReader wraps source, which must yield exactly the blob.
func NewCheckedReader(source io.Reader, want manifest.Descriptor) *CheckedReader {
	return &CheckedReader{source: source, want: want, hash: manifest.NewHash()}
}

func (r *CheckedReader) Read(p []byte) (int, error) {
	if r.ended != nil {
		return 0, r.ended
	}
	n, err := r.source.Read(p)
	r.read += int64(n)
	_, _ = r.hash.Write(p[:n]) // a hash never returns a write error
	switch {
	case r.read > r.want.Size:
		r.ended = &IntegrityError{Want: r.want.Digest, WantSize: r.want.Size, GotSize: r.read}
		return 0, r.ended
	case errors.Is(err, io.EOF):
		r.ended = r.verdict()
		return n, r.ended
	case err != nil:
		r.ended = err
	}
	return n, err
}

func (r *CheckedReader) verdict() error {
	got := manifest.FinishHash(r.hash)
	if r.read == r.want.Size && got == r.want.Digest {
		return io.EOF
	}
	return &IntegrityError{Want: r.want.Digest, Got: got, WantSize: r.want.Size, GotSize: r.read}
}

// ReadAll reads a small blob whole and verified. limit guards against a
// descriptor that claims more than the caller is ready to hold.
func ReadAll(source io.Reader, want manifest.Descriptor, limit int64) ([]byte, error) {
	if want.Size > limit {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d that are read at once", want.Digest, want.Size, limit)
	}
	data := make([]byte, 0, want.Size+1)
	checked := NewCheckedReader(source, want)
	for {
		n, err := checked.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
