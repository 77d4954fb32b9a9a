package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway/verify/boot/ask"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// firstRequests is how many requests are sent one at a time straight after the
// first 200 of /health.
const firstRequests = 4

// question asks the running server all that a grader asks, and whether it is
// well after that.
func (s *session) question(ctx context.Context, o *observed, examples examples) error {
	where := "in a sandbox"
	if _, bare := s.place.(*barePlace); bare {
		where = "unsandboxed"
	}
	s.step("started serve.sh (%s): healthy after %s of %s", where, rounded(seconds(o.first.Healthy)), seconds(s.Profile.Load.StartSeconds))
	asking, done := s.watched(ctx)
	defer done()
	s.firstReplies(asking, o, examples)
	if o.replied {
		if err := s.load(asking, o, examples); err != nil && asking.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.expectEnd(asking, o)
	var ended endedError
	switch cause := context.Cause(asking); {
	case errors.As(cause, &ended):
		o.ended, o.first.Exit = ended.exit, ended.exit
		s.step("the server ended while it was questioned: %s", ended.exit)
	case cause != nil:
		o.late = cause.Error()
		s.step("stopped measuring: %s", o.late)
	}
	o.health = s.healthAfter(ctx)
	return ctx.Err()
}

// expectEnd gives a server that left a request without a reply the time to be
// seen to have ended.
func (s *session) expectEnd(asking context.Context, o *observed) {
	silent := o.silent
	for _, r := range o.First {
		silent = silent || r.Problem != "" && r.Status == 0
	}
	if !silent {
		return
	}
	select {
	case <-asking.Done():
	case <-time.After(endPatience):
	}
}

// endPatience is how long the end of a process may come after that of its
// connections.
const endPatience = time.Second

// endedError is a server that ended while it was questioned.
type endedError struct{ exit string }

func (e endedError) Error() string { return "the server ended while it was questioned: " + e.exit }

// lateLoad is a load that was broken off when its time was over.
type lateLoad struct{ limit time.Duration }

func (l lateLoad) Error() string {
	return fmt.Sprintf("not done within the %s that the profile gives", l.limit)
}

// brokenOff reports whether all requests that failed did so since the load was
// broken off: that is gate deadline's. Of drafts, those that were under way then
// cannot be told from others, and there are no more than were asked at a time.
func (o *observed) brokenOff() bool {
	b := o.Batch
	switch {
	case o.late == "" || b.Failed >= b.Requests:
		return false
	case o.drafts != nil:
		return b.Failed <= b.Concurrency
	}
	return count(o.answers, func(a ask.Answer) bool { return a.Failed != nil && !errors.As(a.Failed, new(lateLoad)) }) == 0
}

// watched is ctx until the server ends or the profile's time for the whole load
// is over; its cause says which.
func (s *session) watched(ctx context.Context) (context.Context, func()) {
	limit := seconds(s.Profile.Load.TotalSeconds)
	inTime, stop := context.WithTimeoutCause(ctx, limit, lateLoad{limit})
	alive, end := context.WithCancelCause(inTime)
	over := make(chan struct{})
	process := s.process
	go func() {
		select {
		case <-process.Exited():
			end(endedError{exitText(process.Err())})
		case <-over:
		}
	}()
	return alive, func() { close(over); end(nil); stop() }
}

// firstReplies sends the first requests.
func (s *session) firstReplies(ctx context.Context, o *observed, examples examples) {
	o.replied = true
	for i := range firstRequests {
		reply, _ := s.request(ctx, examples, i)
		o.First = append(o.First, reply)
		if reply.Problem != "" {
			o.replied = false
			s.step("request %d of the first %d failed: %s", i+1, firstRequests, reply.Problem)
			return
		}
	}
}

// request sends one of the examples as the grader does, and says how well it was
// answered: 1 for a right answer, the accepted ids of a draft.
func (s *session) request(ctx context.Context, examples examples, i int) (r report.Reply, well int) {
	load := s.requestLoad()
	if len(examples.continuations) > 0 {
		c := examples.continuations[i%len(examples.continuations)]
		step := ask.DraftStep{Context: c.Prompt, Target: c.Continuation}
		x := s.server.Draft(ctx, &step, load)
		return s.reply(ask.DraftPath, c.ID, ask.Answer{Exchange: x, Failed: x.Failed}), step.Accepted
	}
	answer := ask.One(ctx, s.server, examples.questions[i%len(examples.questions)], load)
	if answer.Right() {
		well = 1
	}
	if answer.Empty() && s.Shrunk == "" { // what random weights say is no fault
		answer.Failed = emptyAnswer(answer)
	}
	r = s.reply(ask.ChatPath, answer.Question.ID, answer)
	if answer.Failed != nil && answer.Tries > 1 {
		r.Problem = fmt.Sprintf("%d tries failed; the last: %s", answer.Tries, r.Problem)
	}
	return r, well
}

// emptyAnswer says why an empty answer may be one.
func emptyAnswer(a ask.Answer) error {
	if a.Thought {
		return errors.New("choices[0].message.content is empty: what the model said is in a field for thoughts")
	}
	if a.Finish == "length" {
		return fmt.Errorf("choices[0].message.content is empty and finish_reason is length: all %d tokens went elsewhere, as a thought that never ends does", a.Tokens)
	}
	return errors.New("choices[0].message.content is empty")
}

// reply reports a request for the example id.
func (s *session) reply(path, id string, a ask.Answer) report.Reply {
	x := a.Exchange
	r := report.Reply{Request: "POST " + path + " " + id, Status: x.Status, Took: x.Took.Seconds(), Excerpt: x.Excerpt}
	if a.Failed != nil {
		r.Problem, r.Remedy = a.Failed.Error(), requestRemedy(path, x, a.Failed, a.Thought || a.Finish == "length")
		r.Curl = x.Curl(s.Profile.Load.Port, path)
	}
	return r
}

func (s *session) requestLoad() ask.Load {
	l := s.Profile.Load
	return ask.Load{Concurrency: l.Concurrency, MaxTokens: l.MaxTokens, Temperature: l.Temperature, Request: seconds(l.RequestSeconds), Attempts: l.Attempts}
}

// load sends all the examples at the graded concurrency, and then some of them
// alone.
func (s *session) load(ctx context.Context, o *observed, examples examples) error {
	if len(examples.continuations) > 0 {
		return s.loadDrafts(ctx, o, examples)
	}
	load := s.requestLoad()
	began := time.Now()
	var err error
	load.Done = new(atomic.Int64)
	told := s.tellLoad(began, load.Done, fmt.Sprintf("of %d questions asked", len(examples.questions)))
	o.answers, err = ask.All(ctx, s.server, examples.questions, load)
	told()
	o.Batch = chatBatch(o.answers, load, time.Since(began))
	o.Batch.Repeats = examples.repeats
	for _, a := range o.answers {
		if a.Failed != nil && o.failure == "" {
			o.failure = fmt.Sprintf("question %s: %v", a.Question.ID, a.Failed)
		}
		o.silent = o.silent || a.Failed != nil && a.Status == 0
	}
	s.stepAnswers(o, examples)
	if err != nil {
		return err
	}
	if err := s.askAlone(ctx, o, load); err != nil {
		return err
	}
	return s.askGolden(ctx, o, examples.golden)
}

// tellLoad tells how far a load is until the function that it returns is called.
func (s *session) tellLoad(began time.Time, done *atomic.Int64, what string) (end func()) {
	var told sync.WaitGroup
	over := make(chan struct{})
	told.Go(func() {
		ticker := time.NewTicker(tellInterval)
		defer ticker.Stop()
		for {
			s.waiting("%d %s, %d at a time: %.0f s of %.0f s", done.Load(), what, s.Profile.Load.Concurrency, time.Since(began).Seconds(), s.Profile.Load.TotalSeconds)
			select {
			case <-over:
				return
			case <-ticker.C:
			}
		}
	})
	return func() { close(over); told.Wait() }
}

// tellInterval is how often a load says how far it is.
const tellInterval = 200 * time.Millisecond

func chatBatch(answers []ask.Answer, load ask.Load, took time.Duration) *report.Batch {
	b := &report.Batch{Requests: len(answers), Concurrency: load.Concurrency, Seconds: took.Seconds(), Latencies: []float64{}}
	for _, a := range answers {
		b.Tokens += a.Tokens
		switch {
		case a.Failed != nil:
			b.Failed++
			continue
		case a.Empty():
			b.Empty++
		}
		b.Latencies = append(b.Latencies, a.Took.Seconds())
	}
	slices.Sort(b.Latencies)
	return b
}

func (s *session) stepAnswers(o *observed, examples examples) {
	took := rounded(seconds(o.Batch.Seconds))
	if examples.madeUp {
		s.step("sent %d made-up requests, %d at a time: %d failed, %d empty; %d tokens in %s",
			o.Batch.Requests, o.Batch.Concurrency, o.Batch.Failed, o.Batch.Empty, o.Batch.Tokens, took)
		return
	}
	q := answerQuality(o.answers, *s.Profile.Quality)
	s.step("asked %d public questions, %d at a time: %d right (%.1f%%), %d failed, %d cut off; %d tokens in %s",
		q.Questions, o.Batch.Concurrency, q.Right, 100*q.Accuracy, q.Failed, q.Truncated, o.Batch.Tokens, took)
}

// aloneAnswer is one question asked in the batch and alone.
type aloneAnswer struct{ batch, alone ask.Answer }

// aloneRequests is how many requests of the batch are repeated alone.
const aloneRequests = 16

// spread returns the indices of up to aloneRequests of n things that are sorted
// by length, from the shortest to the longest: padding harms the shortest most.
func spread(n int, length func(i int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(length(a), length(b)) })
	if n <= aloneRequests {
		return order
	}
	var chosen []int
	for i := range aloneRequests {
		chosen = append(chosen, order[i*(n-1)/(aloneRequests-1)])
	}
	return chosen
}

// askAlone asks some of the questions again, one at a time, for no longer than
// the batch took.
func (s *session) askAlone(ctx context.Context, o *observed, load ask.Load) error {
	if load.Concurrency < 2 || o.Batch.Failed == len(o.answers) {
		return nil
	}
	until := time.Now().Add(max(aloneTime, seconds(o.Batch.Seconds)))
	for _, i := range spread(len(o.answers), func(i int) int { return len(o.answers[i].Question.Question) }) {
		if time.Now().After(until) || ctx.Err() != nil {
			break
		}
		if batch := o.answers[i]; batch.Failed == nil {
			if alone := ask.One(ctx, s.server, batch.Question, load); alone.Failed == nil {
				o.alone = append(o.alone, aloneAnswer{batch, alone})
			}
		}
	}
	return ctx.Err()
}

// aloneTime is the least time given to questions that are asked alone.
const aloneTime = 10 * time.Second

// loadDrafts walks the continuations, and then asks for some of the first
// drafts alone.
func (s *session) loadDrafts(ctx context.Context, o *observed, examples examples) error {
	load := s.requestLoad()
	began := time.Now()
	load.Done = new(atomic.Int64)
	told := s.tellLoad(began, load.Done, fmt.Sprintf("drafts asked for along %d continuations", len(examples.continuations)))
	a, err := ask.MeasureDrafts(ctx, s.server, examples.continuations, load)
	told()
	took := time.Since(began)
	o.drafts = &a
	o.Batch = &report.Batch{
		Requests: a.Steps, Concurrency: load.Concurrency, Failed: a.Failed, Tokens: a.Tokens, Seconds: took.Seconds(), Latencies: []float64{},
	}
	for _, d := range a.Took {
		o.Batch.Latencies = append(o.Batch.Latencies, d.Seconds())
	}
	slices.Sort(o.Batch.Latencies)
	if a.Failure != nil {
		o.failure, o.silent = a.Failure.Error(), a.Unanswered > 0
	}
	if !examples.madeUp {
		s.step("drafted along %d continuations, %d at a time: tau %.4f (%d tokens in %d steps), %.4f averaged over prompts, %d empty drafts; %s",
			len(examples.continuations), load.Concurrency, a.Tau(), a.Tokens, a.Steps, a.PerPrompt, a.Failed, rounded(took))
	}
	if err != nil || load.Concurrency < 2 {
		return err
	}
	for _, i := range spread(len(a.First), func(i int) int { return len(a.First[i].Context) }) {
		alone := a.First[i]
		if alone.Draft == nil || ctx.Err() != nil {
			continue
		}
		alone.Draft, alone.Accepted = nil, 0
		if x := s.server.Draft(ctx, &alone, load); x.Failed == nil {
			o.aloneDrafts = append(o.aloneDrafts, [2]ask.DraftStep{a.First[i], alone})
		}
	}
	return ctx.Err()
}

// healthAfter asks /health after the load and returns what is wrong.
func (s *session) healthAfter(ctx context.Context) string {
	status, err := s.server.Health(ctx)
	if err == nil && status == http.StatusOK {
		return ""
	}
	return "GET /health after the load: " + ask.HealthText(status, err)
}

// madeUp are requests for a profile without public examples: they show whether
// the server answers, and nothing of how well.
func madeUp(load profiles.Load) (e examples) {
	e.madeUp = true
	for i := range 2 * max(1, load.Concurrency) {
		if load.Endpoint == ask.DraftPath {
			c := ask.Continuation{ID: fmt.Sprintf("made-up-%d", i), Continuation: make([]int32, 4)}
			for j := range 16 + i {
				c.Prompt = append(c.Prompt, int32(1+(7*i+j)%100))
			}
			e.continuations = append(e.continuations, c)
			continue
		}
		e.questions = append(e.questions, ask.Question{
			ID:       fmt.Sprintf("made-up-%d", i),
			Question: fmt.Sprintf("What is %d + %d?%s", 10+i, 100-i, strings.Repeat(" Explain each step.", i%4)),
		})
	}
	return e
}
