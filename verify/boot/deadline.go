package boot

import (
	"fmt"
	"math"
	"time"

	"slipway/verify/report"
)

// project scales the sample that was measured to the graded load, in seconds on
// this machine:
//
//	chat       first + batch * graded/sampled
//	drafting   sample * all_tokens/sample_tokens + first
//
// The first request counts once and is never scaled. ok is false where the
// profile does not say how much is graded.
func (o *observed) project() (p report.Projection, ok bool) {
	load := o.rehearsal.Profile.Load
	first := o.First[0].Took
	p.Limit = load.TotalSeconds
	switch {
	case o.drafts != nil && load.GradedTokens > 0 && o.Batch.Tokens > 0:
		p.Seconds = o.Batch.Seconds*float64(load.GradedTokens)/float64(o.Batch.Tokens) + first
		p.Formula = fmt.Sprintf("%.4g s * %d/%d tokens + %.3g s of the first request", o.Batch.Seconds, load.GradedTokens, o.Batch.Tokens, first)
	case o.drafts == nil && load.GradedRequests > 0 && o.Batch.Requests > 0:
		p.Seconds = first + o.Batch.Seconds*float64(load.GradedRequests)/float64(o.Batch.Requests)
		p.Formula = fmt.Sprintf("%.3g s of the first request + %.4g s * %d/%d requests", first, o.Batch.Seconds, load.GradedRequests, o.Batch.Requests)
	default:
		return p, false
	}
	return p, true
}

// leastMargin is the share of the limit that should be left.
const leastMargin = 0.2

// judgeDeadline decides whether the graded load ends in time.
func (o *observed) judgeDeadline() verdict {
	var v verdict
	reason := o.blocked()
	switch {
	case reason != "":
		return undecided("%s", reason)
	case o.Shrunk != "":
		return undecided("%s", o.Shrunk)
	case o.ended != "":
		return undecided("the server ended under load: see gate batch")
	case o.Batch.Failed == o.Batch.Requests:
		return undecided("no request was answered: see gate batch")
	}
	scaled := o.scaleTo(o.rehearsal.Profile.Device)
	p, known := o.project()
	if !known {
		return o.unknownLoad(scaled)
	}
	if o.late != "" {
		p.Seconds = math.Max(p.Seconds, p.Limit)
	}
	p.Seconds *= scaled.factor
	p.Device = scaled.text
	o.Projection = &p
	margin := (p.Limit - p.Seconds) / p.Limit
	v.note("%s = %.0f s of %.0f s, a margin of %.0f%%", p.Formula, p.Seconds, p.Limit, 100*margin)
	if scaled.text != "" {
		v.note("%s", scaled.text)
	}
	if o.drafts != nil {
		budget := p.Limit * float64(o.Batch.Tokens) / float64(o.rehearsal.Profile.Load.GradedTokens)
		v.note("the sample of %d tokens took %.4g s of a budget of %.0f s", o.Batch.Tokens, o.Batch.Seconds*scaled.factor, budget)
	}
	finding := report.Finding{Path: serveScript, Want: fmt.Sprintf("at most %.0f s", p.Limit), Got: fmt.Sprintf("%s = %.0f s", p.Formula, p.Seconds),
		Hint: fmt.Sprintf("measure tokens a second at %d at a time: batch what is asked together", o.Batch.Concurrency)}
	switch {
	case scaled.blind:
		return v.open("%s", scaled.text)
	case p.Seconds > p.Limit && scaled.slower:
		return v.open("%.0f s of %.0f s without the accelerator that the profile has: run it there", p.Seconds, p.Limit)
	case p.Seconds > p.Limit:
		finding.Problem = "the graded load takes longer than it may"
		v.fail(finding)
	case margin < leastMargin && !scaled.slower:
		finding.Problem = fmt.Sprintf("the margin is %.0f%% of the time there is", 100*margin)
		v.warn(finding)
	}
	return v
}

// unknownLoad says how fast it is, which is all that can be said.
func (o *observed) unknownLoad(scaled scaling) verdict {
	var v verdict
	b, total := o.Batch, o.rehearsal.Profile.Load.TotalSeconds
	each := b.Seconds * scaled.factor / float64(b.Requests)
	v.note("%.3g requests and %.3g tokens a second at %d at a time: %.0f such requests fit in the %.0f s that the profile gives",
		1/each, float64(b.Tokens)/(b.Seconds*scaled.factor), b.Concurrency, math.Floor(total/each), total)
	if scaled.text != "" {
		v.note("%s", scaled.text)
	}
	if o.late != "" && !scaled.slower && !scaled.blind {
		v.fail(report.Finding{Path: serveScript, Problem: "the public examples alone take longer than the whole load may", Want: fmt.Sprintf("at most %s", time.Duration(total*1e9)), Got: o.late})
		return v
	}
	return v.open("the profile does not say how large the graded load is")
}
