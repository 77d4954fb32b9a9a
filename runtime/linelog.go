package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of the log: how many lines wait for a reader of standard error, and how
// long the end of the program waits for it.
const (
	logLines = 256
	logFlush = time.Second
)

// lineLog writes one line an event, whatever goroutine it comes from. Nobody
// waits for it: standard error may be a pipe that nobody reads, and lines beyond
// those that are waiting are dropped and counted.
type lineLog struct {
	lines   chan string
	dropped atomic.Int64
	closing chan struct{}
	written chan struct{} // closed when the writer has ended
}

func newLineLog(writer io.Writer) *lineLog {
	l := &lineLog{lines: make(chan string, logLines), closing: make(chan struct{}), written: make(chan struct{})}
	go l.write(writer)
	return l
}

func (l *lineLog) print(line string) {
	select {
	case l.lines <- "runtime: " + strings.TrimRight(strings.ReplaceAll(line, "\n", " "), " "):
	default:
		l.dropped.Add(1)
	}
}

// Write lets net/http report through the log.
func (l *lineLog) Write(line []byte) (int, error) {
	l.print(string(line))
	return len(line), nil
}

// write is the one that writes, until close.
func (l *lineLog) write(writer io.Writer) {
	defer close(l.written)
	for {
		select {
		case line := <-l.lines:
			fmt.Fprintln(writer, line)
		case <-l.closing:
			for len(l.lines) > 0 { // no other goroutine receives
				fmt.Fprintln(writer, <-l.lines)
			}
			l.count(writer)
			return
		}
		l.count(writer)
	}
}

// count says once how many lines were dropped before.
func (l *lineLog) count(writer io.Writer) {
	if n := l.dropped.Swap(0); n > 0 {
		fmt.Fprintf(writer, "runtime: %d lines were left out here: standard error was full\n", n)
	}
}

// close writes what is waiting, for a second at most.
func (l *lineLog) close() {
	close(l.closing)
	select {
	case <-l.written:
	case <-time.After(logFlush):
	}
}
