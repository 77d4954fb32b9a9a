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

// Open returns the ids of the gates that are undecided and that the profile
// does not allow to stay so, in order.
func (r *Report) Open() []string {
	return r.ids(func(g GateResult) bool {
		return g.Status == Undecided && !slices.Contains(r.MayUndecided, g.ID)
	})
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
// undecided.
func (r *Report) Err() error {
	var parts []string
	if failed := r.Failed(); len(failed) > 0 {
		parts = append(parts, "failed: "+strings.Join(failed, " "))
	}
	if open := r.Open(); len(open) > 0 {
		parts = append(parts, "undecided: "+strings.Join(open, " "))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("gates %s", strings.Join(parts, "; "))
}

// JSON writes the report in the one form it has, with a final newline.
func (r *Report) JSON() ([]byte, error) {
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
