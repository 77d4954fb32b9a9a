package boot

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway/verify/boot/ask"
	"slipway/verify/picture"
	"slipway/verify/profiles"
	"slipway/verify/report"
	"slipway/verify/words"
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
		if i == 0 && reply.Problem == "" && s.Profile.Load.BodyBytes > 0 {
			s.showImages(ctx, o)
		}
		if last := o.First[len(o.First)-1]; last.Problem != "" {
			o.replied = false
			s.step("request %d after the start failed: %s", len(o.First), last.Problem)
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
	return s.answered(&answer), well
}

// answered reports a question that was asked alone. What random weights say is no
// fault.
func (s *session) answered(answer *ask.Answer) report.Reply {
	if answer.Empty() && s.Shrunk == "" {
		answer.Failed = emptyAnswer(*answer)
	}
	r := s.reply(ask.ChatPath, answer.Question.ID+shownText(answer.Question), *answer)
	if answer.Failed != nil && answer.Tries > 1 {
		r.Problem = fmt.Sprintf("%d tries failed; the last: %s", answer.Tries, r.Problem)
	}
	return r
}

// emptyAnswer says why an empty answer may be one.
func emptyAnswer(a ask.Answer) error {
	if a.Thought {
		return errors.New("choices[0].message.content is empty: what the model said is in a field for thoughts")
	}
	if a.Finish == "length" {
		return fmt.Errorf("choices[0].message.content is empty and finish_reason is length: %s went elsewhere, as a thought that never ends does", words.Plural(a.Tokens, "token"))
	}
	return errors.New("choices[0].message.content is empty")
}

// reply reports a request for the example id.
func (s *session) reply(path, id string, a ask.Answer) report.Reply {
	x := a.Exchange
	r := report.Reply{Request: "POST " + path + " " + id, Status: x.Status, Took: x.Took.Seconds(), Excerpt: x.Excerpt}
	if a.Failed != nil {
		r.Problem, r.Remedy = a.Failed.Error(), requestRemedy(path, x, a.Failed, a.Thought || a.Finish == "length")
		if remedy := imageRemedy(a); remedy != "" {
			r.Remedy = remedy
		}
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
	told := s.tellLoad(began, load.Done, fmt.Sprintf("of %s asked", words.Plural(len(examples.questions), "question")))
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
		s.step("sent %s, %d at a time: %d failed, %d empty; %s in %s",
			words.Plural(o.Batch.Requests, "made-up request"), o.Batch.Concurrency, o.Batch.Failed, o.Batch.Empty, words.Plural(o.Batch.Tokens, "token"), took)
		return
	}
	q := answerQuality(o.answers, *s.Profile.Quality)
	s.step("asked %s, %d at a time: %d right (%.1f%%), %d failed, %d cut off; %s in %s",
		words.Plural(q.Questions, "public question"), o.Batch.Concurrency, q.Right, 100*q.Accuracy, q.Failed, q.Truncated, words.Plural(o.Batch.Tokens, "token"), took)
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
func madeUp(load profiles.Load, vocabulary int64) (e examples) {
	e.madeUp = true
	for i := range 2 * max(1, load.Concurrency) {
		if load.Endpoint == ask.DraftPath {
			e.continuations = append(e.continuations, madeUpContinuation(i, vocabulary))
			continue
		}
		q := ask.Question{
			ID:       fmt.Sprintf("made-up-%d", i),
			Question: fmt.Sprintf("What is %d + %d?%s", 10+i, 100-i, strings.Repeat(" Explain each step.", i%4)),
		}
		if load.BodyBytes > 0 {
			q.Question += " What colour is the image?"
			q.Pictures = []picture.Picture{picture.Small([]color.RGBA{picture.Red, picture.Blue}[i%2])}
		}
		e.questions = append(e.questions, q)
	}
	return e
}
