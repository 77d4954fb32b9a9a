package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/safetensors"
)

// Bounds of what is held at once.
const (
	blockBytes      = 4 << 20
	blocksInFlight  = 3
	maxSmallBytes   = 16 << 20 // one small JSON file
	maxLargeJSON    = 64 << 20 // quantization manifest, inventory, tokenizer
	maxKeptBytes    = 96 << 20 // all of them together
	entropyMinBytes = 1 << 20  // text up to here is not looked at
)

// collector reads every file of a tree once.
type collector struct {
	tree     *content.Tree
	options  Options
	contract *manifest.Contract
	total    int64

	mutex sync.Mutex
	done  int64
	facts map[string]*fileFacts
}

// collect reads the tree: first the small files, whole, since they say what to
// look for in the others; then every other file in one sequential pass each. A
// file that cannot be read leaves an err in its facts; only the end of ctx is
// an error here.
func collect(ctx context.Context, tree *content.Tree, options Options, contract *manifest.Contract) (map[string]*fileFacts, *submission, error) {
	c := &collector{tree: tree, options: options, contract: contract, facts: map[string]*fileFacts{}}
	_, folders := listShards(tree.Files)
	var rest []content.TreeFile
	kept := int64(0)
	for _, file := range tree.Files {
		c.total += file.Size
		limit := smallLimit(file.Path, folders)
		if limit > 0 && file.Size <= limit && kept+file.Size <= maxKeptBytes {
			kept += file.Size
			c.facts[file.Path] = c.readWhole(ctx, file)
			continue
		}
		rest = append(rest, file)
		if limit > 0 {
			c.facts[file.Path] = &fileFacts{overlong: fmt.Sprintf("its %d bytes are more than is read of such a file", file.Size)}
		}
	}
	sub := readSubmission(tree.Files, c.facts)
	if err := c.readAll(ctx, rest, sub); err != nil {
		return nil, nil, err
	}
	return c.facts, sub, ctx.Err()
}

// smallLimit returns up to how many bytes a file is read whole; 0: never.
// Only files at the root and beside shards are.
func smallLimit(p string, shardFolders []string) int64 {
	if folder := path.Dir(p); folder != "." && !slices.Contains(shardFolders, folder) {
		return 0
	}
	switch base := path.Base(p); base {
	case manifest.QuantizationPath, manifest.InventoryPath, "tokenizer.json":
		return maxLargeJSON
	case "config.json", "generation_config.json", "architecture.json", "STARTING_ARTIFACT.json", "backbone_contract.json":
		return maxSmallBytes
	default:
		if strings.HasSuffix(base, ".safetensors.index.json") {
			return maxSmallBytes
		}
	}
	return 0
}

func (c *collector) readWhole(ctx context.Context, file content.TreeFile) *fileFacts {
	source, err := c.tree.Open(ctx, file)
	if err != nil {
		return &fileFacts{err: err}
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
			return &fileFacts{err: err}
		}
	}
	if int64(len(data)) != file.Size {
		return &fileFacts{err: fmt.Errorf("ends after %d of %d bytes", len(data), file.Size)}
	}
	c.progress(file.Size)
	f := &fileFacts{digest: manifest.DigestBytes(data), size: file.Size, head: slices.Clone(data[:min(headBytes, len(data))])}
	if path.Base(file.Path) == "tokenizer.json" {
		f.vocabulary = readVocabulary(data) // the largest of them, and needed no more
	} else {
		f.small = data
	}
	if file.Size > entropyMinBytes {
		countBytes(&f.ranges, data)
	}
	return f
}

// readAll reads files on the workers, the largest first.
func (c *collector) readAll(ctx context.Context, files []content.TreeFile, sub *submission) error {
	queue := slices.Clone(files)
	slices.SortStableFunc(queue, func(a, b content.TreeFile) int { return cmp.Compare(b.Size, a.Size) })
	next := make(chan content.TreeFile)
	var workers sync.WaitGroup
	for range max(1, min(c.options.Workers, len(queue))) {
		workers.Go(func() {
			blocks := make(chan []byte, blocksInFlight)
			for range blocksInFlight {
				blocks <- nil // made when first needed
			}
			for file := range next {
				f := c.readFile(ctx, file, sub, blocks)
				c.mutex.Lock()
				if before := c.facts[file.Path]; before != nil {
					f.overlong = before.overlong
				}
				c.facts[file.Path] = f
				c.mutex.Unlock()
			}
		})
	}
	for _, file := range queue {
		if ctx.Err() != nil {
			break
		}
		next <- file
	}
	close(next)
	workers.Wait()
	return ctx.Err()
}

func (c *collector) progress(n int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.done += n
	if c.options.Progress != nil {
		c.options.Progress(c.done, c.total)
	}
}

// readFile reads one file: one goroutine reads and hashes blocks ahead, this
// one looks into them.
func (c *collector) readFile(ctx context.Context, file content.TreeFile, sub *submission, free chan []byte) *fileFacts {
	source, err := c.tree.Open(ctx, file)
	if err != nil {
		return &fileFacts{err: err}
	}
	defer source.Close()
	f := &fileFacts{}
	reader := &hashingReader{source: source}
	if !c.proven(file) {
		reader.hash = manifest.NewHash()
	}
	var shard *walker
	if isShard(file.Path) {
		if shard, err = c.readHeader(file, reader, sub, f); err != nil {
			return &fileFacts{err: err}
		}
	}
	full := make(chan []byte, blocksInFlight)
	var readErr error
	go func() {
		defer close(full)
		readErr = reader.blocks(ctx, free, full)
	}()
	entropy := wantsEntropy(file)
	for block := range full {
		if shard != nil {
			shard.write(block)
		}
		if entropy {
			countBytes(&f.ranges, block)
		}
		c.progress(int64(len(block)))
		free <- block[:cap(block)]
	}
	switch {
	case readErr != nil:
		return &fileFacts{err: readErr}
	case reader.size != file.Size:
		return &fileFacts{err: fmt.Errorf("ends after %d of %d bytes", reader.size, file.Size)}
	}
	f.size, f.head = reader.size, reader.head
	if f.digest = file.Digest; reader.hash != nil {
		f.digest = manifest.FinishHash(reader.hash)
	}
	if shard != nil {
		f.tensors = shard.facts
	}
	return f
}

// proven reports whether the tree itself proves a file's digest: it reads the
// raw layers of artifacts only through a reader that ends well only after size
// and digest agreed. Hashing them again would cost a second hash of each byte.
func (c *collector) proven(file content.TreeFile) bool {
	if c.tree.Artifact == nil || file.Layer < 0 || file.Layer >= len(c.tree.Artifact.Manifest.Layers) {
		return false
	}
	layer := c.tree.Artifact.Manifest.Layers[file.Layer]
	_, encoding, err := manifest.ParseLayerMediaType(layer.MediaType)
	return err == nil && encoding == manifest.EncodingRaw && layer.Digest == file.Digest
}

// readHeader reads a shard's header. An error is one of reading; a violation
// of the format is a fact, and the rest of the file is then only hashed.
func (c *collector) readHeader(file content.TreeFile, reader *hashingReader, sub *submission, f *fileFacts) (*walker, error) {
	header, raw, err := safetensors.ReadHeaderRaw(reader, file.Size)
	var violation *safetensors.Error
	switch {
	case errors.As(err, &violation):
		f.headerErr = violation
	case err != nil:
		return nil, err
	}
	if len(raw) > 0 {
		f.opinion, f.opinionErr = safetensors.SecondOpinion(raw, file.Size)
	}
	c.progress(reader.size)
	if f.headerErr != nil {
		return nil, nil
	}
	f.header = header
	headStored := sub.storesHead()
	for _, t := range header.Tensors {
		headStored = headStored || roleByName(t.Name) == manifest.RoleHead
	}
	return newWalker(header, func(t safetensors.Tensor) []observer {
		names := []string{t.Name} // what it may be called: in the shard and in the quantization manifest
		for _, use := range sub.uses[manifest.StoredTensor{File: file.Path, Tensor: t.Name}] {
			names = append(names, use.entry)
		}
		whole := slices.ContainsFunc(names, func(name string) bool { return c.wantsDigest(name, headStored) })
		return sub.observersFor(file.Path, t, whole)
	}), nil
}

// wantsDigest says which tensors are hashed on their own: those whose digest
// the contract knows, and embedding and head where both are stored.
func (c *collector) wantsDigest(name string, headStored bool) bool {
	if c.contract != nil {
		long := longPrefix + strings.TrimPrefix(name, shortPrefix)
		if c.contract.Tensors[name].SHA256 != "" || c.contract.Tensors[long].SHA256 != "" {
			return true
		}
	}
	role := roleByName(name)
	return role == manifest.RoleHead || role == manifest.RoleEmbedding && headStored
}

// hashingReader reads a file once, from start to end.
type hashingReader struct {
	source io.Reader
	hash   hash.Hash // nil where the source proves the digest
	head   []byte
	size   int64
}

func (r *hashingReader) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if r.hash != nil {
		_, _ = r.hash.Write(p[:n]) // a hash never returns a write error
	}
	if missing := headBytes - len(r.head); missing > 0 {
		r.head = append(r.head, p[:min(missing, n)]...)
	}
	r.size += int64(n)
	return n, err
}

// blocks reads to the end of the source. It takes buffers from free, which
// always gets them all back, and sends them filled.
func (r *hashingReader) blocks(ctx context.Context, free, full chan []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := <-free
		if block == nil {
			block = make([]byte, blockBytes)
		}
		n, err := r.fill(block)
		full <- block[:n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// fill reads until block is full or the source ends. Unlike io.ReadFull it
// hands on the source's own error, of which only io.EOF is a good end.
func (r *hashingReader) fill(block []byte) (int, error) {
	n := 0
	for n < len(block) {
		read, err := r.Read(block[n:])
		n += read
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// countBytes adds the byte values of p to counts.
func countBytes(counts *[256]int64, p []byte) {
	for _, b := range p {
		counts[b]++
	}
}
