// Package wheel reads a wheel, which is a ZIP archive, from its first byte to
// its last, once and in order: what it holds is what every reader finds in it,
// local headers and directory agree, and no byte belongs to nothing. Members
// are inflated and hashed and held against the wheel's own RECORD; what runs
// when Python starts, and what could be weights, is named. Nothing is written,
// and memory follows the number of members.
package wheel

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway/manifest"
)

// Severity says how bad a fault is.
type Severity int

// The severities.
const (
	Wrong    Severity = iota // no wheel may be so
	Runs                     // runs code whenever Python starts, as few upstream wheels do
	Doubtful                 // worth a look
)

// Fault is one thing that is wrong with a wheel.
type Fault struct {
	Severity Severity
	Member   string // "" for the whole wheel
	Problem  string
	Want     string
	Got      string
}

// Facts are what reading a wheel left.
type Facts struct {
	Err     error           // it could not be read to its end, or is no wheel; Faults then has what was seen before
	Digest  manifest.Digest // of the file; zero with Err
	Members int
	Bytes   int64   // of all members, inflated
	Faults  []Fault // by member, then by problem
}

// Options shape Read.
type Options struct {
	// Weights says why a member could be weights, by its path, size and first
	// bytes, at most HeadBytes; "" where it could not.
	Weights func(path string, size int64, head []byte) string
}

// HeadBytes is how many bytes of a member Options.Weights is shown.
const HeadBytes = 64

// Bounds of what one wheel may hold.
const (
	maxMembers     = 200_000
	maxRecordBytes = 64 << 20
	maxHookBytes   = 64 << 10
	maxNameBytes   = 4 << 10
	maxInflation   = 100      // times the file's size
	spareInflation = 64 << 20 // and so many bytes more
)

// Read reads a wheel of size bytes. Errors of r and the end of ctx are in
// Facts.Err, like the violations that make reading on meaningless.
func Read(ctx context.Context, r io.Reader, size int64, options Options) *Facts {
	w := newWalk(ctx, r, size, options)
	f := w.facts
	if f.Err = w.run(); f.Err == nil {
		w.holdAgainstRecord()
		f.Digest = manifest.FinishHash(w.hash)
	}
	f.Members = len(w.members)
	slices.SortFunc(f.Faults, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Member, b.Member), strings.Compare(a.Problem, b.Problem))
	})
	return f
}

func (w *walk) fault(s Severity, member, problem, want, got string) {
	w.facts.Faults = append(w.facts.Faults, Fault{s, member, problem, want, got})
}

// member is a file of the wheel.
type member struct {
	path   string
	size   int64
	digest manifest.Digest
	header header
	offset int64 // of its local header
}

// look names what a member is besides a file: something that Python runs when
// it starts, or weights. content is the whole of it for the kinds that keeps
// names.
func (w *walk) look(m *member, head, content []byte) {
	base := m.path[strings.LastIndexByte(m.path, '/')+1:]
	installed := installedPath(m.path)
	module, _, _ := strings.Cut(installed, "/")
	module, _, _ = strings.Cut(module, ".")
	switch {
	case module == "sitecustomize" || module == "usercustomize":
		w.fault(Wrong, m.path, "is imported by every Python that starts, before the server's own code", "", "")
	case strings.HasSuffix(installed, ".pth") && installed == base && isPathList(m, content):
		if line := importLine(content); line != "" {
			w.fault(Runs, m.path, "runs code in every Python that starts", "", manifest.Clip(line))
		} else {
			w.fault(Doubtful, m.path, "changes where every Python that starts looks for modules", "", "")
		}
	default:
		if why := w.options.Weights(m.path, m.size, head); why != "" {
			w.fault(Wrong, m.path, why, "", fmt.Sprintf("%d bytes", m.size))
		}
	}
}

// installedPath is where an installer puts a member, from site-packages: what
// stands in NAME.data/purelib and NAME.data/platlib goes there too (PyPA,
// "Binary distribution format").
func installedPath(p string) string {
	parts := strings.SplitN(p, "/", 3)
	if len(parts) == 3 && strings.HasSuffix(parts[0], ".data") && (parts[1] == "purelib" || parts[1] == "platlib") {
		return parts[2]
	}
	return p
}

// isPathList reports whether a .pth file is one of lines, as Python's site
// reads it, and not weights under the extension that both share.
func isPathList(m *member, content []byte) bool {
	return m.size <= maxHookBytes && !slices.Contains(content, 0)
}

// importLine returns the first line that Python's site module executes, or "".
func importLine(content []byte) string {
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\r", "\n")) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") {
			return line
		}
	}
	return ""
}
