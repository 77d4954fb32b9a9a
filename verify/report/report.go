// Package report holds what verifying a submission ends in: each gate's result
// with its findings, the numbers that were counted, what the verdict rests on,
// and what a rehearsal measured. It has one form as JSON, the same byte for byte
// for the same report, and one as text for people. It decides nothing but which
// of several failures one fault explains.
package report

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Trust is an input that the verdict rests on and that did not come from the
// submission.
type Trust struct {
	Input  string          `json:"input"`
	Digest manifest.Digest `json:"digest"`
}

// Claim is a fact that only the submission itself asserts.
type Claim struct {
	Source string `json:"source"` // the file that says so
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// Report is the outcome of verify.Run: a pure function of the submission and the
// options, so that two runs give the same JSON, byte for byte. It names
// neither the time, the host nor the tool.
type Report struct {
	Schema       int            `json:"schema"`
	Origin       content.Origin `json:"origin"`
	Artifact     string         `json:"artifact_digest,omitempty"` // "" for a folder
	Set          string         `json:"set_digest,omitempty"`      // "" when a file could not be read
	Profile      string         `json:"profile"`
	Ended        Status         `json:"verdict"` // Status, once the report is written
	Files        int            `json:"files"`
	Bytes        int64          `json:"bytes"`
	Sizes        []KindSize     `json:"sizes"`
	Limits       Limits         `json:"limits"`
	Trust        []Trust        `json:"trust"`
	Counts       *Counts        `json:"counts,omitempty"`   // nil without a quantization manifest
	Tensors      []Tensor       `json:"tensors,omitempty"`  // of all entries of the quantization manifest
	Accounts     *Accounts      `json:"accounts,omitempty"` // nil without Counts
	Gates        []GateResult   `json:"gates"`
	SelfDeclared []Claim        `json:"self_declared,omitempty"`
	Measured     *Measured      `json:"measured,omitempty"` // nil: the submission was not started

	Name         string   `json:"-"` // what the user called the submission; for people only
	MayUndecided []string `json:"-"` // gates that may stay undecided
}

// Gate returns the result of a gate.
func (r *Report) Gate(id string) (GateResult, bool) {
	for _, g := range r.Gates {
		if g.ID == id {
			return g, true
		}
	}
	return GateResult{}, false
}

// Failed returns the ids of the gates that failed, in order.
func (r *Report) Failed() []string {
	return r.ids(func(g GateResult) bool { return g.Status == Fail })
}

// Open returns the ids of the gates that are undecided and may not stay so, in
// order.
func (r *Report) Open() []string {
	return r.ids(func(g GateResult) bool {
		return g.Status == Undecided && !slices.Contains(r.MayUndecided, g.ID)
	})
}

// Require wants gates decided that the profile lets stay undecided.
func (r *Report) Require(wanted func(id string) bool) {
	r.MayUndecided = slices.DeleteFunc(slices.Clone(r.MayUndecided), wanted)
}

func (r *Report) ids(keep func(GateResult) bool) []string {
	var ids []string
	for _, g := range r.Gates {
		if keep(g) {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// Err is nil when every gate of the profile passed, did not apply, or may stay
// undecided. Where gates failed it names no others: they may wait for those.
func (r *Report) Err() error {
	if failed := r.Failed(); len(failed) > 0 {
		return fmt.Errorf("gates failed: %s", strings.Join(failed, " "))
	}
	if open := r.Open(); len(open) > 0 {
		return fmt.Errorf("gates undecided: %s", strings.Join(open, " "))
	}
	return nil
}

// Status is the verdict in one word: pass, fail or undecided.
func (r *Report) Status() Status {
	switch {
	case len(r.Failed()) > 0:
		return Fail
	case len(r.Open()) > 0:
		return Undecided
	}
	return Pass
}

// JSON writes the report in the one form it has, with a final newline.
func (r *Report) JSON() ([]byte, error) {
	r.Ended = r.Status()
	data, err := manifest.EncodeCanonical(r)
	return append(data, '\n'), err
}

// Decide puts the results of dynamic gates, as Outcome.Result makes them, in the
// place of the undecided ones that verify.Run left; results of gates that the
// profile does not ask for are dropped. What a failed gate explains of them stays
// undecided.
func (r *Report) Decide(results []GateResult, measured *Measured) {
	for _, result := range results {
		i := slices.IndexFunc(r.Gates, func(g GateResult) bool { return g.ID == result.ID })
		if i < 0 || r.Gates[i].Unasked {
			continue
		}
		r.Gates[i] = result
	}
	r.explain()
	r.Measured = measured
}
