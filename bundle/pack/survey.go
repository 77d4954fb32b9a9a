package pack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"slipway/manifest"
)

// Options are the wishes of whoever packs. The zero value keeps everything.
type Options struct {
	Ternary      bool     // pack what is exactly ternary
	Tensors      []string // patterns of names (path.Match): what must be packed
	DropTiedHead bool     // leave out a head that repeats the tied embedding
	MaxShard     int64    // bytes of a file; 0: no limit

	Workers  int                            // tensors at a time; 0: one a core
	Phase    func(what string, bytes int64) // called before bytes are read for a purpose; may be nil
	Progress func(bytes int64)              // called with bytes handled since the last call; may be nil
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (o Options) report(bytes int64) {
	if o.Progress != nil {
		o.Progress(bytes)
	}
}

func (o Options) phase(what string, bytes int64) {
	if o.Phase != nil {
		o.Phase(what, bytes)
	}
}

// Survey is what reading the weights told.
type Survey struct {
	Ternary map[string]Ternary // stored tensors to pack, by name
	Kept    map[string]string  // the others, and why each stays as it is
	Dropped map[string]string  // head to leave out, to the embedding that it repeats
	Notes   []string
}

// Ternary is what is known of an exactly ternary tensor.
type Ternary struct {
	Unit          Unit
	NegativeZeros int64 // values that are -0
}

// Look reads what the wishes concern: tensors that may be ternary, and a head
// beside a tied embedding. A tensor that is declared literal in the quantization
// manifest, that Options.Tensors names, or that is nearly ternary, and is not
// exactly so, is an error that names the first row and input at fault.
func Look(ctx context.Context, root *os.Root, c *Checkpoint, options Options) (*Survey, error) {
	l := &look{files: newSources(root), checkpoint: c, options: options,
		Survey: Survey{Ternary: map[string]Ternary{}, Kept: map[string]string{}, Dropped: map[string]string{}}}
	defer l.files.close()
	if options.DropTiedHead {
		if err := l.head(ctx); err != nil {
			return nil, err
		}
	}
	if options.Ternary {
		if err := l.ternary(ctx); err != nil {
			return nil, err
		}
	}
	return &l.Survey, nil
}

type look struct {
	Survey
	files      *sources
	checkpoint *Checkpoint
	options    Options

	mu       sync.Mutex
	refusals []refusal
	others   []refusal // nothing said that these should be ternary
}

// refusal is a tensor that should be ternary and is not.
type refusal struct {
	tensor held
	why    string
}

// request is a tensor to look at, and by which units.
type request struct {
	held
	floats
	matrix
	units    []Unit
	required bool
}

func (l *look) ternary(ctx context.Context) error {
	if err := l.checkpoint.packable(); err != nil {
		return err
	}
	requests, err := l.requests()
	if err != nil {
		return err
	}
	var total int64
	for _, r := range requests {
		total += r.Bytes()
	}
	l.options.phase("look at weights", total)
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(l.options.workers())
	for _, r := range requests {
		group.Go(func() error { return l.one(inner, r) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := l.refuse(); err != nil {
		return err
	}
	if len(l.Ternary) == 0 {
		of := ""
		if l.checkpoint.Folder != "." {
			of = " of " + l.checkpoint.Folder
		}
		return manifest.WithHint(fmt.Errorf("no tensor%s is exactly ternary%s%s", of, l.reasons(), l.firstOther()),
			"ternary tensors have values -a, 0 and +a in each row or group of 32 to 256 inputs")
	}
	return nil
}

// reasons says why tensors stay as they are: ": 3 not ternary, 2 of type F64".
func (l *look) reasons() string {
	counts := map[string]int{}
	for _, why := range l.Kept {
		counts[why]++
	}
	if len(counts) == 0 {
		return ""
	}
	var parts []string
	for why, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, why))
	}
	slices.Sort(parts)
	if more := len(parts) - mostReasons; more > 0 {
		parts = append(parts[:mostReasons], fmt.Sprintf("and %d more reasons", more))
	}
	return ": " + strings.Join(parts, ", ")
}

// firstOther says where the first tensor, by name, is not ternary that was looked at.
func (l *look) firstOther() string {
	if len(l.others) == 0 {
		return ""
	}
	first := slices.MinFunc(l.others, byName)
	return fmt.Sprintf("; tensor %q of %s, %s", manifest.Clip(first.tensor.Name), first.tensor.source.Path, first.why)
}

func byName(a, b refusal) int { return strings.Compare(a.tensor.Name, b.tensor.Name) }

// mostReasons bounds what one line says.
const mostReasons = 8

// one looks at a tensor.
func (l *look) one(ctx context.Context, r request) error {
	f := newFinder(r.floats, r.matrix, r.units)
	enough := errors.New("enough is known")
	err := l.files.eachBlock(ctx, r.place(), f.rowBytes(), func(block []byte) error {
		f.add(block)
		l.options.report(int64(len(block)))
		if f.hopeless() || r.required && f.offence != nil {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return fmt.Errorf("tensor %q: %w", manifest.Clip(r.Name), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(f.candidates) > 0:
		l.Ternary[r.Name] = Ternary{f.candidates[0], f.zeros}
	case r.required || !f.hopeless() && f.near():
		l.refusals = append(l.refusals, refusal{r.held, f.offence.describe(r.floats)})
	default:
		l.Kept[r.Name] = "not ternary"
		l.others = append(l.others, refusal{r.held, f.offence.describe(r.floats)})
	}
	return nil
}

// refuse names the first refused tensor, by name.
func (l *look) refuse() error {
	if len(l.refusals) == 0 {
		return nil
	}
	first := slices.MinFunc(l.refusals, byName)
	more := ""
	if n := len(l.refusals) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return manifest.WithHint(fmt.Errorf("tensor %q of %s is not exactly ternary: %s%s", manifest.Clip(first.tensor.Name), first.tensor.source.Path, first.why, more),
		"packing would change it; quantize it again, or declare it of kind float in "+manifest.QuantizationPath)
}

// requests lists the tensors to look at, and says why the others stay.
func (l *look) requests() ([]request, error) {
	declared, err := l.checkpoint.declarations()
	if err != nil {
		return nil, err
	}
	matched := make([]bool, len(l.options.Tensors))
	var requests []request
	for _, h := range l.checkpoint.tensors() {
		if _, dropped := l.Dropped[h.Name]; dropped {
			continue
		}
		entry := declared[h.Name].entry
		named := false
		for i, pattern := range l.options.Tensors {
			ok, err := path.Match(pattern, h.Name)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
			matched[i], named = matched[i] || ok, named || ok
		}
		r := request{held: h, required: named || entry.Kind == manifest.KindLiteral}
		why := r.fit(entry)
		switch {
		case why == "" && entry.Kind == manifest.KindFloat && !named:
			l.Kept[h.Name] = "declared float"
		case why == "":
			requests = append(requests, r)
		case r.required && manifest.RoleOf(h.Name) == manifest.RoleBackbone, named:
			return nil, fmt.Errorf("tensor %q of %s cannot be packed: it is %s", manifest.Clip(h.Name), h.source.Path, why)
		default:
			l.Kept[h.Name] = why
		}
	}
	if i := slices.Index(matched, false); i >= 0 {
		return nil, fmt.Errorf("no tensor matches %q", l.options.Tensors[i])
	}
	return requests, nil
}

// fit completes a request, or says why its tensor is not one to pack.
func (r *request) fit(entry manifest.Quantity) string {
	if role := manifest.RoleOf(r.Name); role != manifest.RoleBackbone {
		return fmt.Sprintf("a tensor of the %s", role)
	}
	var ok bool
	if r.floats, ok = floatsOf(r.DType); !ok {
		return "of type " + r.DType.String()
	}
	if len(r.Shape) < 2 || r.Elements() == 0 {
		return fmt.Sprintf("of shape %v", r.Shape)
	}
	r.matrix = matrixOf(r.Tensor)
	switch {
	case r.inputs%4 != 0:
		return fmt.Sprintf("of %d inputs, no multiple of the 4 codes of a byte", r.inputs)
	case r.inputs > mostInputs:
		return fmt.Sprintf("of %d inputs, more than %d", r.inputs, mostInputs)
	case r.inputs < smallestGroup && !r.required:
		return fmt.Sprintf("of %d inputs, fewer than %d", r.inputs, smallestGroup)
	}
	r.units = unitsOf(r.matrix)
	if unit := entry.ScaleUnit(); entry.Kind == manifest.KindLiteral && unit != "" {
		r.units = []Unit{{unit, entry.GroupSize}}
		if unit == manifest.UnitGroup && (r.inputs%entry.GroupSize != 0 || entry.GroupSize%4 != 0) {
			return fmt.Sprintf("of %d inputs in groups of %d, no whole number of groups of whole bytes", r.inputs, entry.GroupSize)
		}
	}
	return ""
}

// declaration is what the quantization manifest says of a stored tensor.
type declaration struct {
	logical string
	entry   manifest.Quantity
}

// declarations returns the entries of the quantization manifest by the names of
// the tensors that they are stored in; an entry of codes is under all of its
// names.
func (c *Checkpoint) declarations() (map[string]declaration, error) {
	found := map[string]declaration{}
	if c.Quantization == nil {
		return found, nil
	}
	holders := map[string]held{}
	for _, h := range c.tensors() {
		holders[h.Name] = h
	}
	for _, logical := range c.Quantization.Names() {
		entry := c.Quantization.Tensors[logical]
		for _, stored := range entry.Stored() {
			h, present := holders[stored.Tensor]
			if !present || h.source.Name() != path.Base(stored.File) {
				return nil, fmt.Errorf("%s: tensor %q needs %q of %s, which is not there", manifest.QuantizationPath, manifest.Clip(logical), manifest.Clip(stored.Tensor), stored.File)
			}
			if _, twice := found[stored.Tensor]; twice {
				return nil, fmt.Errorf("%s: tensor %q: %q is stored for another, too", manifest.QuantizationPath, manifest.Clip(logical), manifest.Clip(stored.Tensor))
			}
			found[stored.Tensor] = declaration{logical, entry}
		}
	}
	return found, nil
}

// packable refuses a checkpoint that is packed already.
func (c *Checkpoint) packable() error {
	if c.Quantization == nil {
		return nil
	}
	for _, name := range c.Quantization.Names() {
		if c.Quantization.Tensors[name].Kind == manifest.KindPacked2Bit {
			return manifest.WithHint(fmt.Errorf("%s: tensor %q is packed already", manifest.QuantizationPath, manifest.Clip(name)),
				`keep the weights as they are (pack = "keep", or --keep)`)
		}
	}
	return nil
}
