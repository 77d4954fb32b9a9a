package registry

import (
	"errors"
	"io"
	"sync"
)

// loan lends bytes to request bodies. A connection may still read a body when
// its request is already answered, so the owner of the bytes ends the loan
// before using their memory again.
type loan struct {
	mutex sync.Mutex
	data  []byte
	ended bool
}

var errLoanEnded = errors.New("the request is over")

// open returns a body of the bytes from their start.
func (l *loan) open() (io.ReadCloser, error) { return &loanReader{loan: l}, nil }

// end takes the bytes back: no body reads them any more when it returns.
func (l *loan) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
}

type loanReader struct {
	loan *loan
	read int
}

func (r *loanReader) Read(p []byte) (int, error) {
	r.loan.mutex.Lock()
	defer r.loan.mutex.Unlock()
	if r.loan.ended {
		return 0, errLoanEnded
	}
	if r.read == len(r.loan.data) {
		return 0, io.EOF
	}
	n := copy(p, r.loan.data[r.read:])
	r.read += n
	return n, nil
}

func (r *loanReader) Close() error { return nil }
