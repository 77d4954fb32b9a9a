//go:build cuda

package gpu

/*
#include "driver.h"
#cgo noescape cuGraphLaunch
#cgo nocallback cuGraphLaunch
*/
import "C"

import (
	"errors"
	"fmt"
)

// Graph is work that was captured instead of done.
type Graph struct {
	graph C.handle
}

// Capture runs f and makes a graph of what it adds to the stream, none of which
// is done. Other streams join by waiting for an event of this one and must be
// joined again by an event of theirs. Other threads are not held up. An error of
// f ends the capture and is returned.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	const threadLocal = 1 // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
	if s.capturing {
		return nil, errors.New("capture a graph: the stream is being captured already")
	}
	if err := check("cuStreamBeginCapture", C.cuStreamBeginCapture_v2(s.handle(), threadLocal)); err != nil {
		return nil, fmt.Errorf("capture a graph: %w", err)
	}
	s.capturing = true
	returned := false
	defer func() {
		if !returned { // f has panicked, and the stream must be usable again
			_, _ = s.endCapture(errors.New("panicked"))
		}
	}()
	err := f()
	returned = true
	return s.endCapture(err)
}

// endCapture ends the capture and returns its graph, or none and the error when
// there is one.
func (s *Stream) endCapture(err error) (*Graph, error) {
	s.capturing = false
	g := &Graph{}
	ended := check("cuStreamEndCapture", C.cuStreamEndCapture(s.handle(), &g.graph))
	switch {
	case err != nil:
		if g.graph != 0 {
			_ = g.Destroy()
		}
		return nil, err
	case ended != nil:
		return nil, fmt.Errorf("capture a graph: %w", ended)
	}
	return g, nil
}

// Nodes returns the number of the graph's nodes.
func (g *Graph) Nodes() (int, error) {
	var count C.size_t
	err := check("cuGraphGetNodes", C.cuGraphGetNodes(g.graph, nil, &count))
	return int(count), err
}

// Destroy gives the graph up; what was instantiated of it stays.
func (g *Graph) Destroy() error {
	err := check("cuGraphDestroy", C.cuGraphDestroy(g.graph))
	g.graph = 0
	return err
}

// Executable is a graph made ready for launches.
type Executable struct {
	executable C.handle
}

// Instantiate makes the graph ready for launches.
func (g *Graph) Instantiate() (*Executable, error) {
	x := &Executable{}
	if err := check("cuGraphInstantiateWithFlags", C.cuGraphInstantiateWithFlags(&x.executable, g.graph, 0)); err != nil {
		return nil, err
	}
	return x, nil
}

// Launch adds the graph's work to the stream. It allocates nothing.
func (x *Executable) Launch(s *Stream) error {
	return check("cuGraphLaunch", C.cuGraphLaunch(x.executable, s.handle()))
}

// Destroy gives the executable graph up; a launch that is under way is finished.
func (x *Executable) Destroy() error {
	err := check("cuGraphExecDestroy", C.cuGraphExecDestroy(x.executable))
	x.executable = 0
	return err
}
