// Package plainfile opens the files of a checkpoint: regular ones only.
//
// It promises that no file's kind or size holds up the start or fills the
// memory: a pipe, which would wait for a writer, a device and a file beyond the
// limit are errors that name it. Symbolic links are followed.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Limits of JSON files, in bytes: of a configuration, and of a tokenizer or the
// index of the shards.
const (
	Config = 64 << 20
	Large  = 512 << 20
)

// Open opens a regular file for reading. Errors name it.
func Open(name string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(name) // opening a pipe would wait
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			path.Op = "open"
		}
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("open %s: is not a regular file", name)
	}
	file, err := os.Open(name)
	return file, info, err
}

// Read returns the content of a regular file of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	file, info, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, 0, min(info.Size(), limit)+1)
	for {
		if int64(len(data)) > limit {
			return nil, fmt.Errorf("read %s: has more than %d bytes", name, limit)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := file.Read(data[len(data):min(int64(cap(data)), limit+1)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
