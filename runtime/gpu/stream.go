//go:build cuda

package gpu

/*
#include "driver.h"
#cgo noescape cuStreamQuery
#cgo nocallback cuStreamQuery
*/
import "C"

import (
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// Stream is a queue of work of a device. All its methods are called inside Do.
type Stream struct {
	device    *Device
	stream    cu.Stream
	capturing bool
}

// Stream returns a new stream, which does not wait for the default stream.
func (d *Device) Stream() (*Stream, error) {
	stream, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return nil, checkLibrary("cuStreamCreate", err)
	}
	return &Stream{device: d, stream: stream}, nil
}

func (s *Stream) library() cu.Stream { return s.stream }

// handle returns the driver's handle: cu.Stream has it as its only field.
func (s *Stream) handle() C.handle { return *(*C.handle)(unsafe.Pointer(&s.stream)) }

// Destroy gives the stream up; its work is still done.
func (s *Stream) Destroy() error {
	return checkLibrary("cuStreamDestroy", s.stream.Destroy())
}

// Synchronize waits until all work of the stream is done. An error of a kernel
// shows here, or in any later call.
func (s *Stream) Synchronize() error {
	return checkLibrary("cuStreamSynchronize", s.stream.Synchronize())
}

// Query reports whether all work of the stream is done.
func (s *Stream) Query() (done bool, err error) {
	// Not by cu, whose error for "not ready" is an allocation each time.
	result := C.cuStreamQuery(s.handle())
	if result == notReady {
		return false, nil
	}
	return result == 0, check("cuStreamQuery", result)
}

// Event is a point in a stream's work.
type Event struct {
	event cu.Event
}

// Event returns a new event that is recorded nowhere yet.
func (d *Device) Event() (*Event, error) {
	const withTime = 0 // CU_EVENT_DEFAULT
	event, err := cu.MakeEvent(withTime)
	if err != nil {
		return nil, checkLibrary("cuEventCreate", err)
	}
	return &Event{event}, nil
}

// Record returns a new event after the stream's work so far.
func (s *Stream) Record() (*Event, error) {
	e, err := s.device.Event()
	if err != nil {
		return nil, err
	}
	if err := s.RecordIn(e); err != nil {
		_ = e.Destroy()
		return nil, err
	}
	return e, nil
}

// RecordIn moves an event behind the stream's work so far.
func (s *Stream) RecordIn(e *Event) error {
	return checkLibrary("cuEventRecord", e.event.Record(s.stream))
}

// Wait lets the stream's further work begin after the event.
func (s *Stream) Wait(e *Event) error {
	return checkLibrary("cuStreamWaitEvent", s.stream.Wait(e.event, 0))
}

// Synchronize waits until the event has passed.
func (e *Event) Synchronize() error {
	return checkLibrary("cuEventSynchronize", e.event.Synchronize())
}

// Since returns the time between two events that have passed, to about half a
// microsecond.
func (e *Event) Since(earlier *Event) (time.Duration, error) {
	milliseconds, err := earlier.event.Elapsed(e.event)
	return time.Duration(milliseconds * float64(time.Millisecond)), checkLibrary("cuEventElapsedTime", err)
}

// Destroy gives the event up.
func (e *Event) Destroy() error {
	return checkLibrary("cuEventDestroy", cu.DestroyEvent(&e.event))
}
