package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"slipway/manifest"
)

// blockSize of reads and writes of large files, in bytes: large enough that
// system calls do not count, small enough for a worker a core.
const blockSize = 1 << 20

// Intake reads a file of a folder once, start to end, and digests it. With a
// target it also copies the bytes there, sharing blocks where the file system
// can; the digest is then of what target holds. The file must have size bytes
// and may not change meanwhile (ErrChanged). progress may be nil.
func Intake(ctx context.Context, root *os.Root, name string, size int64, target *os.File, progress func(int64)) (manifest.Digest, error) {
	source, err := OpenRegular(root, name, size)
	if err != nil {
		return manifest.Digest{}, err
	}
	defer source.Close()
	steady := source.(*steadyFile)
	h := manifest.NewHash()
	reader := io.Reader(steady)
	sink := io.Writer(h)
	if target != nil {
		if cloneFile(target, steady.File) {
			reader = target
		} else {
			sink = io.MultiWriter(target, h)
		}
	}
	n, err := CopyBlocks(ctx, sink, reader, progress)
	if err != nil {
		return manifest.Digest{}, err
	}
	if n != size {
		return manifest.Digest{}, steady.changed()
	}
	if reader == io.Reader(target) { // the source itself was not read to its end
		if _, err := steady.Seek(0, io.SeekEnd); err != nil {
			return manifest.Digest{}, fmt.Errorf("read %s: %w", name, manifest.Cause(err))
		}
		if _, err := steady.Read(make([]byte, 1)); err != io.EOF {
			return manifest.Digest{}, steady.changed()
		}
	}
	return manifest.FinishHash(h), nil
}

// FileDigest digests a regular file of a folder, whatever its size.
func FileDigest(root *os.Root, name string) (manifest.Digest, error) {
	file, err := OpenRegular(root, name, -1)
	if err != nil {
		return manifest.Digest{}, err
	}
	defer file.Close()
	return digestReader(file)
}

// CopyBlocks is io.Copy that stops when ctx does and reports progress in bytes
// to progress, which may be nil. Errors of w begin with "write", and a full
// disk comes with a remedy.
func CopyBlocks(ctx context.Context, w io.Writer, r io.Reader, progress func(int64)) (int64, error) {
	buffer := make([]byte, blockSize)
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return total, context.Cause(ctx)
		}
		n, err := r.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return total, WriteFault(err)
			}
			total += int64(n)
			if progress != nil {
				progress(int64(n))
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// WriteFault says what a failed write means: without the name of a temporary
// file, and with a remedy where the disk is full.
func WriteFault(err error) error {
	fault := fmt.Errorf("write: %w", manifest.Cause(err))
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return manifest.WithHint(fault, "free some space there, or choose a place on another disk")
	}
	return fault
}
