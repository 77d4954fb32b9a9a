package sandbox_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"slipway/verify/boot/sandbox"
)

// BenchmarkSandbox opens a sandbox with limits, runs true in it and closes it.
func BenchmarkSandbox(b *testing.B) {
	folder := filepath.Dir(testProgram(b))
	for b.Loop() {
		s, err := sandbox.Open(context.Background(), sandbox.Options{Submission: folder, User: 12345, Memory: 1 << 30, CPUs: 2})
		if err != nil {
			b.Skip(err)
		}
		p, err := s.Start(sandbox.Command{Argv: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Err(); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTracedOpen tells what a traced system call costs, in nanoseconds: of
// a file that has been seen, and of one that has not.
func BenchmarkTracedOpen(b *testing.B) {
	s, err := sandbox.Open(context.Background(), sandbox.Options{Submission: filepath.Dir(testProgram(b))})
	if err != nil {
		b.Skip(err)
	}
	defer s.Close()
	for b.Loop() {
		var output strings.Builder
		p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}, Env: []string{partVariable + "=opens"}, Output: &output})
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Err(); err != nil {
			b.Fatal(err, output.String())
		}
		for i, field := range strings.Fields(output.String()) {
			nanoseconds, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(nanoseconds), []string{"ns/seen", "ns/new"}[i])
		}
	}
}
