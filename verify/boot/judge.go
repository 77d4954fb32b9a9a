package boot

import (
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/sandbox"
	"slipway/verify/report"
	"slipway/verify/words"
)

// verdict is what a gate comes to.
type verdict struct{ report.Outcome }

// open leaves the gate undecided; the reason comes before other notes.
func (v *verdict) open(format string, args ...any) verdict {
	v.Status = report.Undecided
	v.Notes = append([]string{"could not be decided: " + fmt.Sprintf(format, args...)}, v.Notes...)
	return *v
}

func undecided(format string, args ...any) verdict {
	var v verdict
	return v.open(format, args...)
}

// decide decides the dynamic gates.
func (o *observed) decide() []report.GateResult {
	gates := []struct {
		id    string
		judge func() verdict
	}{
		{"install", o.judgeInstall}, {"startup", o.judgeStartup}, {"first-request", o.judgeFirst}, {"batch", o.judgeBatch},
		{"deadline", o.judgeDeadline}, {"still-healthy", o.judgeStillHealthy}, {"opened-files", o.judgeOpened}, {"quality", o.judgeQuality},
	}
	var results []report.GateResult
	for _, gate := range gates {
		v := gate.judge()
		if v.Failed() && v.Status == report.Undecided {
			v.Notes = v.Notes[1:] // what is missing could not have saved it
		}
		results = append(results, v.Result(gate.id))
	}
	return results
}

// blocked says why what needs a healthy server that answers was not observed.
func (o *observed) blocked() string {
	switch {
	case !o.first.healthy():
		return "the server did not become healthy: see gate startup"
	case !o.replied:
		return "the first requests failed: see gate first-request"
	}
	return ""
}

// needsGPU is a start that failed for want of an accelerator that it did not
// get.
func (o *observed) needsGPU() (cause, bool) {
	c, _, ok := findCause(o.first.log)
	return c, ok && c.noGPU && o.card == ""
}

// judgeStartup decides whether the server became healthy in time.
func (o *observed) judgeStartup() verdict {
	var v verdict
	limit := seconds(o.rehearsal.Profile.Load.StartSeconds)
	if c, ok := o.needsGPU(); ok && !o.first.healthy() {
		return undecided("%s; %s", c.means, c.remedy)
	}
	if o.first.machines {
		return undecided("%s", o.first.problem)
	}
	switch here := o.rehearsal.Foreign; {
	case !o.first.healthy() && here != "":
		return undecided("it did not start on this machine, which runs %s, and submissions are for linux/amd64: %s", here, o.first.problem)
	case !o.first.healthy():
		v.Fail(failedStart(o.first, fmt.Sprintf("GET /health answers 200 within %s", limit)))
	case o.first.loopback:
		v.Fail(report.Finding{Path: serveScript, Problem: "the server listens on 127.0.0.1 only, and the grader asks from another address",
			Want: "an answer at the machine's own address", Got: o.first.probe + " there, HTTP 200 at 127.0.0.1", Hint: "bind it to 0.0.0.0"})
	default:
		o.judgeTime(&v, limit)
	}
	o.judgePython(&v)
	o.judgeAgain(&v, startedAgain)
	o.judgeAgain(&v, startedElsewhere)
	if o.skipped != "" {
		v.Note("%s", o.skipped)
	}
	o.noteConditions(&v)
	if missing := o.missing(); len(missing) > 0 {
		return v.open("healthy after %s; not held here: %s%s", rounded(seconds(o.first.Healthy)), strings.Join(missing, ", "), o.withoutBare())
	}
	return v
}

// withoutBare is the remedy where no sandbox was asked for.
func (o *observed) withoutBare() string {
	if !o.rehearsal.Bare {
		return ""
	}
	return "; rehearse without --bare"
}

// startConditions are those of the grader's machine without which a start that
// went well says too little: each of them was seen to keep servers from starting.
var startConditions = []string{
	sandbox.OwnNetwork, sandbox.AnotherUser, sandbox.ReadOnlySubmission, sandbox.NoExecSubmission, sandbox.SmallShared, sandbox.SmallTemp,
	sandbox.MemoryLimit, sandbox.CPULimit, withoutAbsent,
}

// missing are the conditions of a start that were asked for and not held.
func (o *observed) missing() (names []string) {
	for _, c := range o.Conditions {
		if !c.Held && slices.Contains(startConditions, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// judgeAgain judges a later start. The same folder must do at once: what the
// first start left behind is in the way otherwise. Another folder should.
func (o *observed) judgeAgain(v *verdict, what string) {
	i := slices.IndexFunc(o.again, func(again startOutcome) bool { return again.What == what })
	if i < 0 || o.again[i].healthy() && o.again[i].reply == "" && !o.again[i].otherwise() {
		return
	}
	if o.again[i].machines {
		v.Note("not started %s: %s", what, o.again[i].problem)
		return
	}
	f := report.Finding{Path: serveScript, Problem: "started " + what + ": a request fails: " + o.again[i].reply}
	switch {
	case !o.again[i].healthy():
		f = failedStart(o.again[i], "what the first start did")
		f.Problem = "started " + what + ": " + f.Problem
	case o.again[i].reply == "":
		f.Problem, f.Want = "started "+what+": it answers otherwise when it is started again", "the answers of the first start"
		f.Got = fmt.Sprintf("none of the first %d requests is answered well, and on the first start some were", firstRequests)
		f.Hint = "the weights must be all that answers come from: nothing that a first start leaves, no folder's name"
		v.Fail(f)
		return
	}
	if what == startedElsewhere {
		f.Hint = strings.TrimPrefix(f.Hint+"; find the submission by $SUBMISSION_DIR or serve.sh's own folder, and quote it", "; ")
		v.Warn(f)
		return
	}
	f.Hint = strings.TrimPrefix(f.Hint+"; a start must not need that there was none before", "; ")
	v.Fail(f)
}

// failedStart describes a start that ended in no healthy server, with its cause
// where that is known.
func failedStart(o startOutcome, want string) report.Finding {
	f := report.Finding{Path: serveScript, Problem: o.problem, Want: want, Got: lastLines(o.log), Hint: o.remedy}
	if c, line, ok := findCause(o.log + "\n" + o.problem); ok {
		f.Problem, f.Hint = c.means+"; "+o.problem, c.remedy
		if !strings.Contains(f.Got, clip(line)) {
			f.Got += " | " + line
		}
	}
	return f
}

// noteConditions says which of the grader's conditions the start was not under.
func (o *observed) noteConditions(v *verdict) {
	byReason := map[string][]string{}
	var reasons []string
	for _, c := range o.Conditions {
		if c.Held {
			continue
		}
		if byReason[c.Detail] == nil {
			reasons = append(reasons, c.Detail)
		}
		byReason[c.Detail] = append(byReason[c.Detail], c.Name)
	}
	for _, reason := range reasons {
		v.Note("started without %s: %s", strings.Join(byReason[reason], ", "), reason)
	}
}

func (o *observed) judgeFirst() verdict {
	var v verdict
	if !o.first.healthy() {
		return undecided("%s", o.blocked())
	}
	for i, r := range o.First {
		if r.Problem == "" {
			continue
		}
		v.Fail(o.withEnd(report.Finding{Path: serveScript, Problem: fmt.Sprintf("request %d after the start fails (%s)", i+1, r.Request),
			Want: "HTTP 200 and the endpoint's JSON", Got: r.Problem, Hint: r.Remedy}))
		if r.Curl != "" {
			where := ""
			if q := o.rehearsal.Profile.Quality; q != nil && q.Images != nil {
				where = ", from the folder of the questions"
			}
			v.Note("to send it to a server that you started%s: %s", where, r.Curl)
		}
	}
	o.judgeColours(&v)
	if len(o.First) > 0 && len(v.Findings) == 0 {
		v.Note("the first of %d requests took %s", len(o.First), rounded(seconds(o.First[0].Took)))
	}
	return v
}

// withEnd adds how the server ended, if it did, and what it printed last.
func (o *observed) withEnd(f report.Finding) report.Finding {
	if o.ended != "" {
		f.Problem += "; the server ended: " + o.ended
	}
	if line := exception(o.loadLog); line != "" {
		f.Problem += "; the last exception in its log: " + manifest.Clip(line)
	}
	f.Got += "; " + lastLines(o.Log)
	if c, line, ok := findCause(o.loadLog); ok {
		f.Problem += "; " + c.means
		f.Hint = c.remedy
		if !strings.Contains(f.Got, clip(line)) {
			f.Got += " | " + line
		}
	}
	f.Got = strings.TrimPrefix(f.Got, "; ")
	return f
}

func (o *observed) judgeBatch() verdict {
	var v verdict
	if reason := o.blocked(); reason != "" {
		return undecided("%s", reason)
	}
	b := o.Batch
	if o.brokenOff() {
		return undecided("%d of %d requests were answered, at %d at a time, and the rest broken off, %s: see gate deadline", b.Requests-b.Failed, b.Requests, b.Concurrency, o.late)
	}
	if b.Failed > 0 || o.ended != "" || o.late != "" {
		f := report.Finding{Path: serveScript, Problem: fmt.Sprintf("%d of %d requests failed at %d at a time", b.Failed, b.Requests, b.Concurrency),
			Want: "an answer to each", Got: o.failure, Hint: "reserve at start what all requests at once need"}
		if o.late != "" {
			f.Problem += "; " + o.late
		}
		v.Fail(o.withEnd(f))
	}
	if b.Empty > 0 && o.Shrunk != "" {
		v.Note("%d of %d replies are empty, which says nothing of random weights", b.Empty, b.Requests)
	} else if b.Empty > 0 {
		v.Fail(report.Finding{Path: serveScript, Problem: fmt.Sprintf("%d of %d replies are empty", b.Empty, b.Requests), Want: "content in each",
			Hint: "an answer that is all thought has no content: end the thought in time, or turn it off"})
	}
	if tries := count(o.answers, func(a ask.Answer) bool { return a.Failed == nil && a.Tries > 1 }); tries > 0 {
		v.Warn(report.Finding{Path: serveScript, Problem: words.Plural(tries, "request") + " had to be sent more than once", Hint: "a failure now and then is one too many under load"})
	}
	if most := o.rehearsal.Profile.Load.MaxTokens; o.drafts == nil && most > 0 {
		if n := count(o.answers, func(a ask.Answer) bool { return a.Failed == nil && a.Tokens > most }); n > 0 {
			v.Warn(report.Finding{Path: serveScript, Problem: fmt.Sprintf("%d of %d answers have more tokens than max_tokens allows", n, b.Requests),
				Want: fmt.Sprintf("usage.completion_tokens of at most %d", most), Hint: "end an answer at max_tokens: graders cut it there, and the time goes on"})
		}
	}
	if b.Repeats > 0 {
		v.Note("public questions that repeat others and were left out: %d", b.Repeats)
	}
	if o.rehearsal.Profile.Quality == nil {
		v.Note("the profile has no public examples: the requests were made up")
	}
	return v
}

func count(answers []ask.Answer, is func(ask.Answer) bool) (n int) {
	for _, a := range answers {
		if is(a) {
			n++
		}
	}
	return n
}

func (o *observed) judgeStillHealthy() verdict {
	var v verdict
	if !o.first.healthy() {
		return undecided("%s", o.blocked())
	}
	if o.health != "" && o.replied && o.ended == "" { // else nothing was asked that it could have outlived, or all know that it did not
		v.Fail(o.withEnd(report.Finding{Path: serveScript, Problem: o.health, Want: "HTTP 200",
			Hint: "a request that cannot be answered must end as an error of that request"}))
	}
	if o.stop != nil && len(o.stop.left) > 0 {
		v.Fail(report.Finding{Path: serveScript, Problem: fmt.Sprintf("%.3g s after SIGTERM something still runs", o.stop.took.Seconds()),
			Want: "no process and no port", Got: strings.Join(o.stop.left, "; "), Hint: "start the server with exec as the last command of serve.sh, so that the signal reaches it"})
	} else if o.stop != nil && o.ended == "" {
		v.Note("gone %s after SIGTERM", rounded(o.stop.took))
	}
	o.judgeChild(&v)
	switch {
	case v.Failed():
	case !o.replied:
		return undecided("%s", o.blocked())
	case o.ended != "":
		return undecided("the server ended under load: see gate batch")
	}
	return v
}
