package verify

import (
	"context"
	"errors"
	"fmt"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/report"
	"slipway/verify/scan"
)

// rebuilt is what building the shipped source gave.
type rebuilt struct {
	digest manifest.Digest
	err    error
}

// rebuild hands the shipped source to the caller's builder; nil where there is
// nothing to build, or nobody to build it.
func rebuild(ctx context.Context, tree *content.Tree, options Options) *rebuilt {
	archive, ok := tree.Lookup(runtimeSource)
	if _, program := tree.Lookup(runtimeProgram); !ok || !program || options.Rebuild == nil {
		return nil
	}
	source, err := tree.Open(ctx, archive)
	if err != nil {
		return &rebuilt{err: err}
	}
	defer source.Close()
	digest, err := options.Rebuild(ctx, source)
	return &rebuilt{digest, err}
}

// proves reports whether building the source gave the program that is there.
func (r *rebuilt) proves(program *scan.File) bool {
	return r != nil && r.err == nil && program.Err == nil && r.digest == program.Digest
}

func decideRebuild(e *evidence) outcome {
	var o outcome
	program, ok := e.facts[runtimeProgram]
	switch {
	case !ok:
		return outcome{report.Outcome{Status: report.NotApplicable, Notes: []string{"there is no " + runtimeProgram}}}
	case e.facts[runtimeSource] == nil:
		o.Fail(report.Finding{Path: runtimeProgram, Problem: "comes without its source, so nobody can tell what it is", Want: runtimeSource,
			Hint: "build the bundle with slipway build"})
	case e.sub.runtime != nil && e.sub.runtime.known && (e.rebuilt == nil || errors.Is(e.rebuilt.err, ErrCannotRebuild)):
		o.Note("%s and %s are those that this slipway's own lock names, byte for byte; they were not built again here", runtimeProgram, runtimeSource)
	case e.options.Rebuild == nil:
		return undecided("not decided here: it needs the go command; run slipway verify --rebuild, or slipway rehearse")
	case program.Err != nil:
		return undecided(runtimeProgram + " could not be read: see gate digests")
	case errors.Is(e.rebuilt.err, ErrCannotRebuild):
		return undecided(fmt.Sprintf("not decided here: %v", e.rebuilt.err))
	case e.rebuilt.err != nil:
		o.Fail(report.Finding{Path: runtimeSource, Problem: fmt.Sprintf("does not build: %v", e.rebuilt.err), Hint: manifest.Hint(e.rebuilt.err)})
	case e.rebuilt.digest != program.Digest:
		o.Fail(report.Finding{Path: runtimeProgram, Problem: "is not what " + runtimeSource + " builds", Want: e.rebuilt.digest.String(), Got: program.Digest.String(),
			Hint: "build the bundle again"})
	default:
		o.Note("%s is what %s builds, byte for byte", runtimeProgram, runtimeSource)
	}
	return o
}
