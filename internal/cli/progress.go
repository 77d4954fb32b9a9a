package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// plainInterval is how often progress is told where no terminal shows a bar.
const plainInterval = 30 * time.Second

// smallWork is the size in bytes below which a bar would only flicker.
const smallWork = 64 << 20

func (a *app) checkProgressMode() error {
	switch a.progressMode {
	case "auto", "plain", "none":
		return nil
	}
	return usageError{fmt.Errorf("--progress %q is not auto, plain or none", a.progressMode)}
}

// meter shows how far one phase is. Its add may be called from many
// goroutines.
type meter struct {
	label string
	total int64
	done  atomic.Int64
	bars  *mpb.Progress
	bar   *mpb.Bar
	stop  chan struct{}
	ended sync.WaitGroup
}

// meter starts a phase of total bytes. end must be called.
func (a *app) meter(label string, total int64) *meter {
	m := &meter{label: label, total: total, stop: make(chan struct{})}
	switch {
	case a.progressMode == "none" || total < smallWork && a.progressMode == "auto":
	case a.Terminal && a.progressMode == "auto":
		m.bars = mpb.New(mpb.WithOutput(a.Stderr), mpb.WithWidth(40))
		m.bar = m.bars.AddBar(total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(label+" ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f"), decor.AverageSpeed(decor.SizeB1024(0), "  % .1f")))
	default:
		m.ended.Go(func() { m.tell(a.Stderr) })
	}
	return m
}

func (m *meter) tell(w io.Writer) {
	ticker := time.NewTicker(plainInterval)
	defer ticker.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-ticker.C:
			fmt.Fprintf(w, "%s: %s of %s\n", m.label, size(m.done.Load()), size(m.total))
		}
	}
}

func (m *meter) add(bytes int64) {
	m.done.Add(bytes)
	if m.bar != nil {
		m.bar.IncrInt64(bytes)
	}
}

// set is add for callers that know the total done so far.
func (m *meter) set(done int64) {
	m.done.Store(done)
	if m.bar != nil {
		m.bar.SetCurrent(done)
	}
}

func (m *meter) end() {
	close(m.stop)
	m.ended.Wait()
	if m.bar != nil {
		m.bar.Abort(true)
		m.bars.Wait()
	}
}

// phases shows phases that follow each other, of work that says itself when one
// begins. Its methods may be called from many goroutines.
type phases struct {
	app     *app
	mu      sync.Mutex
	current *meter
}

func (a *app) phases() *phases { return &phases{app: a} }

func (p *phases) begin(label string, total int64) {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = p.app.meter(label, total)
}

func (p *phases) add(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.add(bytes)
	}
}

func (p *phases) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.end()
		p.current = nil
	}
}

// size writes a byte count for people: "1.3 MiB".
func size(bytes int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
