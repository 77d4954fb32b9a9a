package benchmarks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"slipway/bundle"
	"slipway/bundle/config"
	"slipway/internal/generate"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/manifest/layout"
	"slipway/verify"
)

// subject is one thing to measure: what a command does, without its start and
// its output. Each runs in a process of its own.
type subject struct {
	name string
	kind kind
	run  func(context.Context, place) error
}

// kind groups subjects that are treated alike.
type kind int

const (
	nothing kind = iota // of slipway: what it is compared with
	build               // reads every byte
	check               // likewise
	again               // a build in which nothing changed: reads no weights
)

// place says where a subject finds and leaves things.
type place struct {
	Weights string           // checkpoint folder, flat
	Work    string           // folder on the same file system; subjects share it
	Options generate.Options // what the checkpoint is
}

func (p place) in(name string) string { return filepath.Join(p.Work, name) }

// Names of what subjects leave in the work folder for later ones.
const (
	linkedLayout = "layout-linked"
	folderOut    = "folder"
	layoutOut    = "layout-copied"
	cacheFile    = "digests.json"
	bareCopy     = "bare-copy"
)

var bare = subject{"bare", nothing, bareByFile}

// measured are compared with bare, in this order: later ones use what earlier
// ones left.
var measured = append(slices.Clone(reading), writing...)

// reading writes none of the weights. seal plans and hashes and writes nothing.
var reading = []subject{
	{"bare-even", nothing, bareEven},
	{"seal", build, seal},
	{"layout-link", build, func(ctx context.Context, p place) error {
		return writeLayout(ctx, p, p.in(linkedLayout), true, nil)
	}},
	{"verify-folder", check, func(ctx context.Context, p place) error {
		tree, err := content.OpenFolder(ctx, p.Weights)
		return p.verify(ctx, tree, err)
	}},
	{"verify-layout", check, func(ctx context.Context, p place) error {
		tree, err := layout.OpenTree(ctx, p.in(linkedLayout), "latest", p.in(linkedLayout))
		return p.verify(ctx, tree, err)
	}},
}

var writing = []subject{
	{bareCopy, nothing, bareCopyByFile},
	{"layout-copy", build, func(ctx context.Context, p place) error {
		return writeLayout(ctx, p, p.in(layoutOut), false, nil)
	}},
	{"folder", build, func(ctx context.Context, p place) error {
		return writeFolder(ctx, p, nil)
	}},
	{"rebuild-layout", again, func(ctx context.Context, p place) error {
		return writeLayout(ctx, p, p.in(linkedLayout), true, content.OpenDigestCache(p.in(cacheFile)))
	}},
	{"rebuild-folder", again, func(ctx context.Context, p place) error {
		return writeFolder(ctx, p, content.OpenDigestCache(p.in(cacheFile)))
	}},
}

// remember fills the digest cache that the rebuild subjects read.
var remember = subject{"remember", nothing, func(ctx context.Context, p place) error {
	cache := content.OpenDigestCache(p.in(cacheFile))
	if err := writeLayout(ctx, p, p.in(linkedLayout), true, cache); err != nil {
		return err
	}
	if err := writeFolder(ctx, p, cache); err != nil {
		return err
	}
	return cache.Save()
}}

// planning opens a folder, reads all headers and plans; it reads no weights.
var planning = subject{"plan", build, func(ctx context.Context, p place) error {
	plan, err := p.plan(ctx)
	if err == nil && len(plan.Layers) == 0 {
		err = errors.New("a plan without layers")
	}
	return err
}}

// hold reads a shard whole: the control of the memory test.
var hold = subject{"hold", nothing, func(_ context.Context, p place) error {
	shards, err := p.shards()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(shards[0])
	runtime.KeepAlive(data)
	return err
}}

func (p place) shards() ([]string, error) {
	shards, err := filepath.Glob(filepath.Join(p.Weights, "*.safetensors"))
	if err == nil && len(shards) == 0 {
		err = fmt.Errorf("no shard in %s", p.Weights)
	}
	return shards, err
}

// bareByFile is the minimal program: workers take the next file and hash it.
func bareByFile(_ context.Context, p place) error {
	return p.eachShard(func(shard string) error { return hashPart(shard, 0, -1) })
}

// bareCopyByFile is the minimal program that copies the files too.
func bareCopyByFile(_ context.Context, p place) error {
	if err := os.Mkdir(p.in(bareCopy), 0o700); err != nil {
		return err
	}
	return p.eachShard(func(shard string) error {
		source, err := os.Open(shard)
		if err != nil {
			return err
		}
		defer source.Close()
		target, err := os.Create(filepath.Join(p.in(bareCopy), filepath.Base(shard)))
		if err != nil {
			return err
		}
		h := sha256.New()
		both := io.MultiWriter(target, h)
		_, err = io.CopyBuffer(struct{ io.Writer }{both}, struct{ io.Reader }{source}, make([]byte, 1<<20))
		h.Sum(nil)
		return errors.Join(err, target.Close())
	})
}

// eachShard calls do for every shard, on as many workers as there are cores.
func (p place) eachShard(do func(shard string) error) error {
	shards, err := p.shards()
	if err != nil {
		return err
	}
	var workers sync.WaitGroup
	faults := make([]error, len(shards))
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(shards)) {
		workers.Go(func() {
			for i := range next {
				faults[i] = do(shards[i])
			}
		})
	}
	for i := range shards {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(faults...)
}

// hashPart hashes length bytes of a file from offset, or all for -1.
func hashPart(name string, offset, length int64) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	h, buffer := sha256.New(), make([]byte, 1<<20)
	for length != 0 {
		part := buffer
		if length > 0 {
			part = buffer[:min(length, int64(len(buffer)))]
		}
		n, err := file.ReadAt(part, offset)
		h.Write(part[:n])
		offset += int64(n)
		if length > 0 {
			length -= int64(n)
		}
		if err == io.EOF && length <= 0 {
			break
		}
		if err != nil {
			return err
		}
	}
	h.Sum(nil)
	return nil
}

// bareEven cuts the bytes of all shards into as many equal parts as there are
// cores. The results are not digests of files; the work is the same, and no
// program that hashes every byte can share it out better.
func bareEven(_ context.Context, p place) error {
	shards, err := p.shards()
	if err != nil {
		return err
	}
	type part struct {
		name           string
		offset, length int64
	}
	total := int64(0)
	sizes := make([]int64, len(shards))
	for i, shard := range shards {
		info, err := os.Stat(shard)
		if err != nil {
			return err
		}
		sizes[i] = info.Size()
		total += sizes[i]
	}
	cores := int64(runtime.GOMAXPROCS(0))
	share := (total + cores - 1) / cores
	lists := make([][]part, cores)
	position := int64(0)
	for i, shard := range shards {
		for offset := int64(0); offset < sizes[i]; {
			core := position / share
			length := min(sizes[i]-offset, (core+1)*share-position)
			lists[core] = append(lists[core], part{shard, offset, length})
			offset += length
			position += length
		}
	}
	var workers sync.WaitGroup
	faults := make([]error, cores)
	for i, list := range lists {
		workers.Go(func() {
			for _, part := range list {
				if err := hashPart(part.name, part.offset, part.length); err != nil {
					faults[i] = err
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(faults...)
}

// plan is what every build begins with.
func (p place) plan(ctx context.Context) (*bundle.Plan, error) {
	const source = `slipway = 1
bundle "benchmark" { profile = "practice" }
weights "language" {
  from     = "."
  manifest = "quantization_manifest.json"
}
`
	wanted, err := config.ParseBundle([]byte(source), filepath.Join(p.Weights, "bundle.hcl"))
	if err != nil {
		return nil, err
	}
	profile, _, err := config.LoadProfile("practice")
	if err != nil {
		return nil, err
	}
	found, err := bundle.Inspect(ctx, wanted, bundle.Options{})
	if err != nil {
		return nil, err
	}
	return bundle.MakePlan(wanted, profile, found)
}

func seal(ctx context.Context, p place) error {
	plan, err := p.plan(ctx)
	if err != nil {
		return err
	}
	sealed, err := bundle.Seal(ctx, plan, bundle.Options{})
	if err != nil {
		return err
	}
	return sealed.Close()
}

func writeLayout(ctx context.Context, p place, folder string, link bool, cache *content.DigestCache) error {
	plan, err := p.plan(ctx)
	if err != nil {
		return err
	}
	target, err := layout.Create(folder, cache)
	if err != nil {
		return err
	}
	defer target.Close()
	sealed, err := bundle.WriteLayout(ctx, plan, target, bundle.LayoutOptions{Tag: "latest", Link: link}, bundle.Options{Cache: cache})
	if err != nil {
		return err
	}
	return sealed.Close()
}

func writeFolder(ctx context.Context, p place, cache *content.DigestCache) error {
	plan, err := p.plan(ctx)
	if err != nil {
		return err
	}
	sealed, err := bundle.WriteFolder(ctx, plan, p.in(folderOut), bundle.Options{Cache: cache})
	if err != nil {
		return err
	}
	return sealed.Close()
}

// verify runs the gates of profile practice, which here takes the published
// packing of Maple too, held against the published model's contract where every
// tensor of it is one of the checkpoint's. A finding is an error: then not
// everything was measured.
func (p place) verify(ctx context.Context, tree *content.Tree, err error) error {
	if err != nil {
		return err
	}
	defer tree.Close()
	profile, _, err := config.LoadProfile("practice")
	if err != nil {
		return err
	}
	profile.Ternary.Formats = append(profile.Ternary.Formats, manifest.FormatMLXRowAlpha)
	options := verify.Options{Profile: profile}
	contract, ok, err := p.Options.Contract()
	if err != nil {
		return err
	}
	if ok {
		options.Contract = &contract
	}
	report, err := verify.Run(ctx, tree, options)
	if err != nil {
		return err
	}
	return report.Err()
}
