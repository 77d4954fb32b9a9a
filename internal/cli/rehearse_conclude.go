package cli

import (
	"fmt"
	"slices"
	"strings"

	"slipway/verify"
	"slipway/verify/report"
)

// requirements are the gates that --require wants decided, though the profile
// lets them stay undecided.
var requirements = map[string]func(gate string) bool{
	"static":  func(string) bool { return false },
	"quality": func(gate string) bool { return gate == report.QualityGate },
	"boot":    verify.Dynamic,
	"all":     func(string) bool { return true },
}

// levels are the requirements from the least to the most.
var levels = []string{"static", "quality", "boot", "all"}

// rehearsed is what rehearse --json prints.
type rehearsed struct {
	Digest    string         `json:"digest"` // of the artifact, or of a folder's set of files
	Verdict   report.Status  `json:"verdict"`
	Require   string         `json:"require"` // of requirements
	Undecided []string       `json:"undecided"`
	Report    *report.Report `json:"report"`
}

// conclude prints the report, what is left to decide and, last, the digest.
func (r *rehearsal) conclude(outcome *report.Report, digest string) error {
	outcome.Ended = outcome.Status()
	result := rehearsed{digest, outcome.Ended, r.require, []string{}, outcome}
	for _, gate := range outcome.Gates {
		if gate.Status == report.Undecided {
			result.Undecided = append(result.Undecided, gate.ID)
		}
	}
	if r.asJSON {
		if err := r.printJSON(result); err != nil {
			return err
		}
	} else if err := r.printResult(result); err != nil {
		return err
	}
	err := outcome.Err()
	if err == nil {
		return nil
	}
	fmt.Fprintf(r.Stderr, "slipway rehearse: %v\n", err)
	if level := r.accepts(outcome); level != "" {
		fmt.Fprintf(r.Stderr, "  the report says what decides them; --require %s takes them as they are\n", level)
	}
	return errFindings
}

// accepts is the most that can be required of an outcome for which too much was;
// "" where gates failed, or the profile itself wants one decided.
func (r *rehearsal) accepts(outcome *report.Report) (level string) {
	if len(outcome.Failed()) > 0 {
		return ""
	}
	for _, less := range levels[:slices.Index(levels, r.require)] {
		needed := func(gate string) bool {
			return requirements[less](gate) || !slices.Contains(r.options.Profile.MayUndecided, gate)
		}
		if !slices.ContainsFunc(outcome.Open(), needed) {
			level = less
		}
	}
	return level
}

func (r *rehearsal) printResult(result rehearsed) error {
	fmt.Fprintln(r.Stdout)
	if err := r.writeReport(result.Report, r.details); err != nil {
		return err
	}
	if !r.details {
		fmt.Fprintln(r.Stdout, "\nnotes, counts and measurements: --details, or --report DIR for a page")
	}
	if len(result.Undecided) > 0 {
		fmt.Fprintf(r.Stdout, "\nnot decided here: %s\n", strings.Join(result.Undecided, " "))
	}
	_, err := fmt.Fprintln(r.Stdout, result.Digest)
	return err
}
