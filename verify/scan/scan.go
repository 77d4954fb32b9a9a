// Package scan reads every file of a submission once, from start to end, and
// keeps what gates need of it: digests, the headers of shards, and statistics
// of their tensors. Memory follows the headers and the scale units that stand
// out, never the size of a file.
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// Options shape a Scanner.
type Options struct {
	Workers  int                         // files read at a time, at least 1
	Progress func(done, total int64)     // bytes; may be nil; one call at a time
	Dense    func(content.TreeFile) bool // whether to count the values of a file's bytes, and what is encoded in it
}

// Scanner reads the files of one tree.
type Scanner struct {
	tree    *content.Tree
	options Options
	total   int64

	mutex sync.Mutex
	done  int64
}

// New returns a scanner of a tree, which stays open until it is done.
func New(tree *content.Tree, options Options) *Scanner {
	s := &Scanner{tree: tree, options: options}
	for _, file := range tree.Files {
		s.total += file.Size
	}
	return s
}

// Suffix is how the names of shards end.
const Suffix = ".safetensors"

// IsShard reports whether a path is that of a safetensors file.
func IsShard(p string) bool { return strings.HasSuffix(p, Suffix) }

// Questions say what to look for in one tensor. Prefix and finiteness are
// looked at in all of them.
type Questions struct {
	Digest     bool            // of all its bytes
	Codes      *ternary.Layout // two-bit codes that lie so; nil: it holds none
	Scales     bool            // one scale an element
	Pair       Pairing         // whether it is to be the negative of another tensor
	Literal    []int64         // sizes of units in elements, each a multiple of the next one; none: it holds no literal weights
	Asymmetric bool            // whether literal weights are {-b, 0, +a}
	Keep       []Range         // bytes to keep, in order and apart
	Halves     bool            // whether two numbers could be in one
	Signs      []Rows          // rows whose first signs to keep
}

// Range is the bytes of a tensor from Begin to before End.
type Range struct{ Begin, End int64 }

// Ask returns what to look for in the tensors of a shard. It is called from
// several goroutines, once a shard.
type Ask func(shard string, header *safetensors.Header) func(safetensors.Tensor) Questions

// Whole reads a small file into memory.
func (s *Scanner) Whole(ctx context.Context, file content.TreeFile) *File {
	source, err := s.tree.Open(ctx, file)
	if err != nil {
		return &File{Err: err}
	}
	defer source.Close()
	data := make([]byte, 0, file.Size+1)
	for {
		n, err := source.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(data) == cap(data) {
			err = fmt.Errorf("is longer than its %d bytes", file.Size)
		}
		if err != nil {
			return &File{Err: err}
		}
	}
	if int64(len(data)) != file.Size {
		return &File{Err: endsEarly(int64(len(data)), file.Size)}
	}
	s.progress(file.Size)
	f := &File{Digest: manifest.DigestBytes(data), Size: file.Size, Head: slices.Clone(data[:min(HeadBytes, len(data))]), Small: data}
	if s.options.Dense(file) {
		var text encodedText
		countBytes(&f.Ranges, data)
		text.write(data)
		f.Encoded = text.size()
	}
	return f
}

func endsEarly(got, want int64) error { return fmt.Errorf("ends after %d of %d bytes", got, want) }

// Read reads files on the workers, the largest first. A file that cannot be
// read has an Err; only the end of ctx is an error here.
func (s *Scanner) Read(ctx context.Context, files []content.TreeFile, ask Ask) (map[string]*File, error) {
	queue := slices.Clone(files)
	slices.SortStableFunc(queue, func(a, b content.TreeFile) int { return cmp.Compare(b.Size, a.Size) })
	found := make([]*File, len(queue))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, min(s.options.Workers, len(queue))) {
		workers.Go(func() {
			block := make([]byte, blockBytes)
			for i := range next {
				found[i] = s.read(ctx, queue[i], ask, block)
			}
		})
	}
	for i := range queue {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	facts := make(map[string]*File, len(queue))
	for i, file := range queue {
		facts[file.Path] = found[i]
	}
	return facts, ctx.Err()
}

func (s *Scanner) progress(n int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.done += n
	if s.options.Progress != nil {
		s.options.Progress(s.done, s.total)
	}
}

// read reads one file, through block. Reading, hashing and looking into the
// bytes take turns: on several goroutines they would be faster for one file,
// and slower for as many as there are cores, since every block would go from
// one core's cache to the other's.
func (s *Scanner) read(ctx context.Context, file content.TreeFile, ask Ask, block []byte) *File {
	source, err := s.tree.Open(ctx, file)
	if err != nil {
		return &File{Err: err}
	}
	defer source.Close()
	f := &File{}
	reader := &hashingReader{source: source}
	if !s.proven(file) {
		reader.hash = manifest.NewHash()
	}
	var shard *walker
	if IsShard(file.Path) {
		if shard, err = s.readHeader(file, reader, ask, f); err != nil {
			return &File{Err: err}
		}
	}
	dense := s.options.Dense(file)
	var text encodedText
	err = reader.blocks(ctx, block, func(p []byte) {
		if shard != nil {
			shard.write(p)
		}
		if dense {
			countBytes(&f.Ranges, p)
			text.write(p)
		}
		s.progress(int64(len(p)))
	})
	switch {
	case err != nil:
		return &File{Err: err}
	case reader.size != file.Size:
		return &File{Err: endsEarly(reader.size, file.Size)}
	}
	f.Size, f.Head, f.Encoded = reader.size, reader.head, text.size()
	if f.Digest = file.Digest; reader.hash != nil {
		f.Digest = manifest.FinishHash(reader.hash)
	}
	if shard != nil {
		f.Tensors = shard.facts
	}
	return f
}

// proven reports whether the tree itself proves a file's digest: it reads the
// raw layers of artifacts only through a reader that ends well only after size
// and digest agreed. Hashing them again would cost a second hash of each byte.
func (s *Scanner) proven(file content.TreeFile) bool {
	if s.tree.Artifact == nil || file.Layer < 0 || file.Layer >= len(s.tree.Artifact.Manifest.Layers) {
		return false
	}
	layer := s.tree.Artifact.Manifest.Layers[file.Layer]
	_, encoding, err := manifest.ParseLayerMediaType(layer.MediaType)
	return err == nil && encoding == manifest.EncodingRaw && layer.Digest == file.Digest
}

// readHeader reads a shard's header. An error is one of reading; a violation
// of the format is a fact, and the rest of the file is then only hashed.
func (s *Scanner) readHeader(file content.TreeFile, reader *hashingReader, ask Ask, f *File) (*walker, error) {
	header, raw, err := safetensors.ReadHeaderRaw(reader, file.Size)
	if err != nil && !errors.As(err, &f.HeaderErr) {
		return nil, err
	}
	if len(raw) > 0 {
		f.Opinion, f.OpinionErr = safetensors.SecondOpinion(raw, file.Size)
	}
	s.progress(reader.size)
	if f.HeaderErr != nil {
		return nil, nil
	}
	if f.Header = header; f.Opinion == safetensors.CannotRead {
		f.Unknown = unknownTypes(header)
	}
	return newWalker(header, ask(file.Path, header)), nil
}

// unknownTypes asks the second reader about each of a header's types alone,
// which needs no list of what it knows.
func unknownTypes(header *safetensors.Header) []safetensors.DType {
	asked := map[safetensors.DType]bool{}
	var unknown []safetensors.DType
	for _, t := range header.Tensors {
		if asked[t.DType] {
			continue
		}
		asked[t.DType] = true
		raw, err := safetensors.EncodeHeader([]safetensors.Tensor{{Name: "x", DType: t.DType, Shape: []int64{8}}}, nil)
		if err != nil {
			continue
		}
		if verdict, _ := safetensors.SecondOpinion(raw, int64(len(raw)+t.DType.Bits())); verdict == safetensors.CannotRead {
			unknown = append(unknown, t.DType)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// countBytes adds the byte values of p to counts.
func countBytes(counts *[256]int64, p []byte) {
	for _, b := range p {
		counts[b]++
	}
}
