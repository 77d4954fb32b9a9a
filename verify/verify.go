// Package verify checks a submission against a task's rules without trusting
// it: every byte is read and hashed once, everything that can be recomputed is,
// and what only the submission asserts is labelled so. Static gates run
// nothing and dial nothing; each is a function of the listing, of the facts
// that reading left behind, and of the options, so that the report of two runs
// is the same, byte for byte.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// Options are Run's trusted inputs.
type Options struct {
	Profile  profiles.Profile
	Trust    []report.Trust          // what Profile and Contract were read from; the report repeats it
	Contract *manifest.Contract      // overrides the contracts of the profile's bases
	Base     *content.Tree           // the pinned base's own files, to compare ternary weights with; may be nil
	Expect   manifest.Digest         // the artifact's or the set's digest; zero: any
	Digests  bool                    // hash each stored tensor on its own too, for the report
	Workers  int                     // files read at a time; 0: one for each core
	Progress func(done, total int64) // bytes; may be nil; one call at a time

	// Runtimes lists those that the caller knows to be what their source builds,
	// as the lock says that it trusts. It is called where there is one to look up;
	// nil for none.
	Runtimes func() []Runtime

	// Rebuild builds the runtime from a bundle's source.tar and returns its
	// digest. It runs programs, so that only a caller can bring it; nil, or an
	// error that is ErrCannotRebuild, leaves gate rebuild undecided.
	Rebuild func(ctx context.Context, sourceTar io.Reader) (manifest.Digest, error)
}

// ErrCannotRebuild is what an error of Options.Rebuild is when the machine lacks
// what a build needs, and the source may be fine.
var ErrCannotRebuild = errors.New("cannot be built on this machine")

// Run verifies a tree. An error means that there is no verdict: ctx ended, or
// the options contradict themselves. A submission that is at fault is a Report
// whose Err is not nil.
func Run(ctx context.Context, tree *content.Tree, options Options) (*report.Report, error) {
	if options.Workers <= 0 {
		options.Workers = runtime.GOMAXPROCS(0)
	}
	contract, err := trustedContract(options)
	if err != nil {
		return nil, err
	}
	facts, sub, err := read(ctx, tree, options, contract)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", tree.Name, err)
	}
	e := newEvidence(tree, facts, sub, options, contract)
	e.rebuilt = rebuild(ctx, tree, options)
	r := e.report()
	for _, gate := range All() {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("verify %s: %w", tree.Name, err)
		}
		r.Gates = append(r.Gates, e.judge(gate))
	}
	if e.audit != nil {
		r.Counts, r.Tensors, r.Accounts = &e.audit.Counts, e.audit.Tensors, e.accounts()
	}
	r.SelfDeclared = e.claims()
	return r, nil
}

// trustedContract returns what the text model and, where the profile pins
// several bases, the others together must contain; nil where nobody says.
func trustedContract(options Options) (*manifest.Contract, error) {
	if options.Contract != nil {
		return options.Contract, nil
	}
	var merged *manifest.Contract
	for _, base := range options.Profile.Bases {
		switch {
		case base.Contract == nil:
		case merged == nil:
			merged = base.Contract
		default:
			both := *merged
			both.Tensors = map[string]manifest.ContractTensor{}
			for name, tensor := range merged.Tensors {
				both.Tensors[name] = tensor
			}
			for name, tensor := range base.Contract.Tensors {
				if _, twice := both.Tensors[name]; twice {
					return nil, fmt.Errorf("profile %s: two bases have a tensor %q", options.Profile.Name, name)
				}
				both.Tensors[name] = tensor
			}
			merged = &both
		}
	}
	return merged, nil
}

// judge runs one gate.
func (e *evidence) judge(gate Gate) report.GateResult {
	result := report.GateResult{ID: gate.ID}
	switch {
	case !slices.Contains(e.options.Profile.Gates, gate.ID):
		result.Status, result.Unasked = report.NotApplicable, true
		result.Notes = []string{fmt.Sprintf("profile %s does not ask for it", e.options.Profile.Name)}
		return result
	case gate.decide == nil:
		result.Status = report.Undecided
		result.Notes = []string{gate.Elsewhere}
		return result
	}
	o := gate.decide(e)
	return o.Result(gate.ID)
}

// report returns the report's frame: what was verified, and on whose word.
func (e *evidence) report() *report.Report {
	r := &report.Report{
		Schema: 1, Origin: e.tree.Origin, Profile: e.options.Profile.Name, Files: len(e.tree.Files),
		Sizes: report.SizesByKind(e.tree.Files), Limits: limitsOf(e.options.Profile),
		Name: e.tree.Name, MayUndecided: mayUndecided(e.options.Profile),
	}
	for _, f := range e.tree.Files {
		r.Bytes += f.Size
	}
	if e.tree.Artifact != nil {
		r.Artifact = e.tree.Artifact.Descriptor.Digest.String()
	}
	if digest, ok := e.setDigest(); ok {
		r.Set = digest.String()
	}
	r.Trust = append(r.Trust, e.options.Trust...)
	if !e.sub.baseDigest.IsZero() {
		r.Trust = append(r.Trust, report.Trust{Input: "files of the base in " + e.options.Base.Name, Digest: e.sub.baseDigest})
	}
	if !e.options.Expect.IsZero() {
		r.Trust = append(r.Trust, report.Trust{Input: "expected digest", Digest: e.options.Expect})
	}
	return r
}

// mayUndecided lists the gates that may stay undecided. Gate files is undecided
// only where gate rebuild is what would decide it.
func mayUndecided(p profiles.Profile) []string {
	if slices.Contains(p.MayUndecided, "rebuild") && !slices.Contains(p.MayUndecided, "files") {
		return append(slices.Clone(p.MayUndecided), "files")
	}
	return p.MayUndecided
}

// accounts completes what gate coverage listed with what the audit rests on.
func (e *evidence) accounts() *report.Accounts {
	a := e.lists
	a.Manifest = e.facts[e.sub.quantizationPath].Digest.String()
	if f := e.facts[manifest.InventoryPath]; f != nil && f.Err == nil {
		a.Inventory = f.Digest.String()
	}
	if e.contract != nil {
		if data, err := e.contract.Encode(); err == nil { // a contract that was read is sound
			a.Contract = manifest.DigestBytes(data).String()
		}
	}
	if e.base != nil {
		for name, tensor := range e.logical(&e.sub.models[0]) {
			if _, there := e.stored[tensor.at]; !there || tensor.kind != manifest.KindFloat {
				continue
			}
			if digest := e.stats(tensor.at).Digest; !digest.IsZero() && digest.Hex() == e.base.Tensors[name].SHA256 {
				a.Unchanged = append(a.Unchanged, name)
			}
		}
	}
	a.Sort()
	return &a
}

func limitsOf(p profiles.Profile) report.Limits {
	limits := report.Limits{Bytes: p.MaxBytes, StartSeconds: p.Load.StartSeconds, TotalSeconds: p.Load.TotalSeconds}
	if t := p.Ternary; t != nil {
		if t.FractionAbove.Denominator > 0 {
			limits.FractionAbove = ratio(t.FractionAbove)
		}
		if t.StoredAtMost.Denominator > 0 {
			limits.StoredAtMost = ratio(t.StoredAtMost)
		}
	}
	return limits
}

// ratio writes a rule's bound for people.
func ratio(r profiles.Ratio) string { return fmt.Sprintf("%d/%d", r.Numerator, r.Denominator) }
