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
func BenchmarkTracedOpen(b *testing.B) { benchmarkPart(b, "opens", "ns/seen", "ns/new") }

// BenchmarkTracedSend tells what a message to a connected socket and its arrival
// cost: by write, which is not traced, and by sendmsg.
func BenchmarkTracedSend(b *testing.B) { benchmarkPart(b, "messages", "ns/write", "ns/sendmsg") }

// benchmarkPart runs a part of this program that prints a number for each unit.
func benchmarkPart(b *testing.B, part string, units ...string) {
	s, err := sandbox.Open(context.Background(), sandbox.Options{Submission: filepath.Dir(testProgram(b))})
	if err != nil {
		b.Skip(err)
	}
	defer s.Close()
	for b.Loop() {
		var output strings.Builder
		p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}, Env: []string{partVariable + "=" + part}, Output: &output})
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
			b.ReportMetric(float64(nanoseconds), units[i])
		}
	}
}
