package content

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"slipway/manifest"
)

// WriteTar writes the one tar form that the format knows: the given files in
// the given order, each with a header made from nothing but path, mode and
// size (type regular, owner 0, time 0), then two zero blocks. open yields a
// file's bytes; a file that has another size than its header says is an error.
func WriteTar(w io.Writer, files []manifest.File, open func(manifest.File) (io.ReadCloser, error)) error {
	archive := tar.NewWriter(w)
	for _, file := range files {
		if err := archive.WriteHeader(tarHeader(file)); err != nil {
			return fmt.Errorf("add %s to the tar layer: %w", file.Path, err)
		}
		if err := appendFile(archive, file, open); err != nil {
			return fmt.Errorf("add %s to the tar layer: %w", file.Path, err)
		}
	}
	return archive.Close()
}

func appendFile(archive *tar.Writer, file manifest.File, open func(manifest.File) (io.ReadCloser, error)) error {
	source, err := open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	n, err := io.Copy(archive, source)
	if errors.Is(err, tar.ErrWriteTooLong) || (err == nil && n != file.Size) {
		return fmt.Errorf("its size is no longer %d bytes", file.Size)
	}
	return err
}

func tarHeader(file manifest.File) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg, Name: file.Path, Size: file.Size, Mode: int64(file.Mode), ModTime: time.Unix(0, 0),
	}
}

// tarMember is a regular file found in a tar layer.
type tarMember struct {
	file   manifest.File // without digest
	offset int64         // of its bytes from the start of the layer
}

// readTar lists a tar layer. Entries that are not regular files, and fields
// that WriteTar would have written otherwise, are faults; bytes that are no tar
// are an error.
func readTar(layer io.ReadSeeker) (members []tarMember, faults []Fault, err error) {
	archive := tar.NewReader(layer)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return members, faults, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if header.Typeflag != tar.TypeReg {
			faults = append(faults, Fault{Path: header.Name, Detail: fmt.Sprintf("is a tar entry of type %q, not a regular file", string(header.Typeflag))})
			continue
		}
		offset, err := layer.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, nil, err
		}
		mode := manifest.NormalMode(uint32(header.Mode))
		if int64(mode) != header.Mode {
			faults = append(faults, Fault{Path: header.Name, Detail: fmt.Sprintf("has mode %#o, neither 0644 nor 0755", header.Mode)})
		}
		members = append(members, tarMember{manifest.File{Path: header.Name, Mode: mode, Size: header.Size}, offset})
	}
}

// ReadTar hands every file of a tar in the format's form to take, in order,
// with its bytes. Any other form is an error: a byte that WriteTar would not have
// written, after the end too, and files that are not sorted by path.
func ReadTar(archive []byte, take func(path string, data []byte)) error {
	members, faults, err := readTar(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%q %s", faults[0].Path, faults[0].Detail)
	}
	files, contents := make([]manifest.File, 0, len(members)), map[string][]byte{}
	for _, m := range members {
		if n := len(files); n > 0 && files[n-1].Path >= m.file.Path {
			return fmt.Errorf("%q does not come after %q, as it sorts", m.file.Path, files[n-1].Path)
		}
		if m.offset+m.file.Size > int64(len(archive)) {
			return fmt.Errorf("%q ends after the archive does", m.file.Path)
		}
		files, contents[m.file.Path] = append(files, m.file), archive[m.offset:m.offset+m.file.Size]
	}
	rest := expectation(archive)
	err = WriteTar(&rest, files, func(f manifest.File) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(contents[f.Path])), nil
	})
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes come after its end", len(rest))
	}
	for _, f := range files {
		take(f.Path, contents[f.Path])
	}
	return nil
}

// expectation is what has yet to be written; other bytes are an error.
type expectation []byte

func (e *expectation) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(*e, p) {
		return 0, errors.New("its headers or padding are not in the format's form")
	}
	*e = (*e)[len(p):]
	return len(p), nil
}
