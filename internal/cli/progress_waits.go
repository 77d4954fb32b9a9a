package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"slipway/manifest"
)

// lineInterval is how often the line of a terminal is written again.
const lineInterval = 200 * time.Millisecond

// waits tells what is being waited for: on a terminal in one line that is
// written over, elsewhere a line now and then. Its methods may be called from many
// goroutines; nil tells nothing.
type waits struct {
	out      io.Writer
	inPlace  bool
	interval time.Duration
	now      func() time.Time

	mu    sync.Mutex
	last  time.Time // when something was told, or a wait began; zero between waits
	shown bool      // a line stands on the terminal
}

func (a *app) waits() *waits {
	switch {
	case a.progressMode == "none":
		return nil
	case a.Terminal && a.progressMode == "auto":
		return &waits{out: a.Stderr, inPlace: true, interval: lineInterval, now: time.Now}
	}
	return &waits{out: a.Stderr, interval: plainInterval, now: time.Now}
}

// tell says how far a wait is, which is told when it is time.
func (w *waits) tell(format string, args ...any) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if w.last.IsZero() {
		w.last = now
	}
	if now.Sub(w.last) < w.interval {
		return
	}
	w.last = now
	text := manifest.Printable(fmt.Sprintf(format, args...))
	if !w.inPlace {
		fmt.Fprintln(w.out, text)
		return
	}
	if short := []rune(text); len(short) > lineColumns {
		text = string(short[:lineColumns-3]) + "..."
	}
	fmt.Fprint(w.out, "\r\x1b[K", text)
	w.shown = true
}

// lineColumns is what fits into a terminal's line: one that wraps cannot be
// written over.
const lineColumns = 79

// end is the end of a wait: what stands on the terminal goes, and the next wait's
// time begins anew.
func (w *waits) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shown {
		fmt.Fprint(w.out, "\r\x1b[K")
	}
	w.last, w.shown = time.Time{}, false
}
