// Package boot starts a submission the way its grader does, through serve.sh,
// asks it what the grader asks, and decides the gates that need it to run. It
// promises that whatever it started is gone when it is done, that what it
// reports was observed (a condition of the grader's machine that could not be
// had here is named, and a gate that rests on one stays undecided), and that
// each failure carries the numbers and the end of the server's log.
package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
	"slipway/verify/boot/sandbox"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// Rehearsal is one dress rehearsal: a submission and what it is held against.
type Rehearsal struct {
	Folder  string          // the submission, a copy of one's own: a start without a sandbox moves it and lets the server write there
	Files   []manifest.File // what the submission consists of
	Unused  map[string]bool // weight files that text inference does not need: those of vision and MTP tensors alone
	Profile profiles.Profile
	Work    string // an empty folder for what a start without a sandbox writes; the owner removes it

	Bare   bool     // no sandbox
	NoExec bool     // the submission lies on a mount without exec
	Hide   []string // folders of this machine that the submission must not find
	Path   string   // PATH of this machine, from which the submission's is made
	Memory int64    // bytes; 0: no limit
	CPUs   float64  // 0: no limit
	GPU    bool     // the accelerator is there in the sandbox too

	Golden       []ask.Reference      // answers that the submission should give too; nil: none
	GoldenDrafts []ask.DraftReference // the same of a drafter
	GoldenShare  float64              // least share of them that the submission gives too; 0: nine in ten
	Vocabulary   int64                // the token ids of every model of the submission are below it; 0: unknown
	Largest      int64                // those of some model are: ids from it on are of another vocabulary; 0: unknown
	Examples     string               // what the profile's examples are called in errors; "": by the profile
	Foreign      string               // what this machine runs, where that is not what submissions are for; "": it is
	Shrunk       string               // says what was put in the place of the model; "": nothing

	Step    func(format string, args ...any) // told what was done; may be nil
	Waiting func(format string, args ...any) // told, many times a second, what is waited for and how far that is; may be nil
	Log     io.Writer                        // gets what the server prints; may be nil

	patience time.Duration // of SIGTERM; 0: defaultPatience

	absent *absent // nil until somebody asks: the folders of packages are large
}

// observed is what the gates are decided by, beside what is reported as
// measured.
type observed struct {
	*report.Measured
	rehearsal               *Rehearsal
	first                   startOutcome
	again                   []startOutcome // later starts
	bare                    bool           // all starts are without a sandbox
	skipped                 string         // a later start that there was none of, and why
	cold                    *startOutcome  // without shipped caches; nil: it reads none
	zero                    *zeroOutcome   // nil: not tried
	child                   *childOutcome  // nil: the server has no processes beside itself, or not tried
	golden                  []goldenPair   // references and the answers to the same questions
	goldenDrafts            []goldenDraft
	madeUp                  bool          // what was asked is nobody's example
	replied                 bool          // all first requests were answered
	colours                 [2]ask.Answer // to the same question about a blue and a red image; only of tasks with images
	answers                 []ask.Answer
	alone                   []aloneAnswer
	drafts                  *ask.Acceptance
	aloneDrafts             [][2]ask.DraftStep // in the batch, alone
	failure                 string             // the first failed request of the batch
	silent                  bool               // a request had no HTTP reply
	ended                   string             // how the server ended while it was questioned
	late                    string             // the load was broken off, and why
	health                  string             // what is wrong with /health after the load; "": nothing
	stop                    *stopOutcome
	python                  tried  // what was tried again of the first start
	loadLog                 string // what it printed since it was healthy
	trace                   *sandbox.Trace
	at, homeFolder, address string // of the place
	accelerator                    // that the server could use
}

// Run starts the submission, questions it, ends it and starts it again, and
// decides the dynamic gates. An error means that nothing was decided: ctx
// ended, or this machine could not do its part.
func (r *Rehearsal) Run(ctx context.Context) (*report.Measured, []report.GateResult, error) {
	if r.GoldenShare == 0 {
		r.GoldenShare = 0.9
	}
	if r.patience == 0 {
		r.patience = defaultPatience
	}
	if r.Profile.Load.Port == 0 {
		r.Profile.Load.Port = 8000
	}
	examples, err := r.readExamples()
	if err != nil {
		return nil, nil, err
	}
	if examples.golden, err = r.goldenQuestions(examples); err != nil {
		return nil, nil, err
	}
	machine := describeMachine("/")
	o := &observed{rehearsal: r, Measured: &report.Measured{Machine: machine.text, Shrunk: r.Shrunk}, accelerator: machine.accelerator, madeUp: examples.madeUp}
	if err := r.firstStart(ctx, o, examples); err != nil {
		return nil, nil, err
	}
	if o.stop != nil && o.replied {
		if err := r.elsewhere(ctx, o, examples); err != nil {
			return nil, nil, err
		}
		if err := r.tryWithoutCaches(ctx, o); err != nil {
			return nil, nil, err
		}
		if err := r.tryZeroWeights(ctx, o, examples); err != nil {
			return nil, nil, err
		}
	}
	return o.Measured, o.decide(), nil
}

// firstStart is the start that everything is asked of, and the one right after
// it.
func (r *Rehearsal) firstStart(ctx context.Context, o *observed, examples examples) error {
	place, err := r.open(ctx, r.lies())
	if err != nil {
		return err
	}
	s := &session{Rehearsal: r, place: place, log: local.NewTail()}
	defer s.close()
	o.Conditions, o.at, o.homeFolder, o.address = place.conditions(), place.submission(), place.home(), place.outside()
	if _, o.bare = place.(*barePlace); !o.bare && !r.GPU {
		o.accelerator = accelerator{}
	}
	o.first, err = s.begin(ctx, "first")
	if err != nil {
		return err
	}
	if !o.first.healthy() {
		s.step("did not start: %s; %s", o.first.problem, lastLines(o.first.log))
	} else {
		started := s.log.Written()
		if err := s.question(ctx, o, examples); err != nil {
			return err
		}
		o.loadLog = sanitised(s.log.Since(started))
		o.python.alive = pids(place)
		if main, inside := s.process.(interface{ PID() int }); inside {
			o.python.main = main.PID()
		}
		if o.stop, err = s.end(ctx); err != nil {
			return err
		}
		if o.first.Left = o.stop.left; len(o.stop.left) == 0 {
			o.first.Stopped = o.stop.took.Seconds()
		}
	}
	o.Log, o.trace = sanitised(s.log.String()), place.trace()
	o.first.note(o.trace)
	o.Starts = append(o.Starts, o.first.Start)
	if o.stop != nil && o.replied {
		if err := s.again(ctx, o, startedAgain, examples); err != nil {
			return err
		}
	}
	return s.tryPython(ctx, o) // last: what is imported may write where a start would find it
}

// elsewhere starts the submission from a folder with another name, with a space
// in it, and then kills a part of it.
func (r *Rehearsal) elsewhere(ctx context.Context, o *observed, examples examples) error {
	place, err := r.openLike(ctx, o, "/srv/other name")
	if errors.Is(err, sandbox.ErrUnsupported) {
		o.skipped = fmt.Sprintf("not started %s: %v", startedElsewhere, err)
		return nil
	}
	if err != nil {
		return err
	}
	s := &session{Rehearsal: r, place: place, log: local.NewTail()}
	defer s.close()
	if err := s.again(ctx, o, startedElsewhere, examples); err != nil {
		return err
	}
	if last := o.again[len(o.again)-1]; !last.healthy() || last.reply != "" {
		return nil
	}
	return s.killChild(ctx, o, examples)
}

// What the later starts are called.
const (
	startedAgain     = "again, at once"
	startedElsewhere = "again, from another folder"
)

func (r *Rehearsal) step(format string, args ...any) {
	if r.Step != nil {
		r.Step(format, args...)
	}
}

func (r *Rehearsal) waiting(format string, args ...any) {
	if r.Waiting != nil {
		r.Waiting(format, args...)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// rounded keeps three digits of a duration, for people.
func rounded(d time.Duration) time.Duration {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// examples are the profile's public questions or continuations, or made-up ones
// where it has none.
type examples struct {
	questions     []ask.Question
	repeats       int
	continuations []ask.Continuation
	madeUp        bool // nobody knows what is right
	golden        []goldenPair
}

func (r *Rehearsal) readExamples() (e examples, err error) {
	quality := r.Profile.Quality
	switch {
	case quality == nil:
		return madeUp(r.Profile.Load, r.Vocabulary), nil
	case quality.Continuations != nil:
		if e.continuations, err = ask.ReadContinuations(quality.Continuations, r.Largest); err != nil {
			return e, manifest.WithHint(fmt.Errorf("read %s: %w", cmp.Or(r.Examples, "the profile's continuations"), err),
				"continuations are those of this submission's target model, in token ids of its vocabulary")
		}
		e.continuations = ask.Windows(e.continuations, r.Profile.Load.Concurrency)
	default:
		if e.questions, err = ask.ReadQuestions(quality.Questions, quality.Images); err != nil {
			return e, fmt.Errorf("read %s: %w", cmp.Or(r.Examples, "the profile's questions"), err)
		}
		e.questions, e.repeats = ask.WithoutRepeats(e.questions)
	}
	if len(e.questions)+len(e.continuations) == 0 {
		return e, fmt.Errorf("read the profile's examples: there are none")
	}
	return e, nil
}
