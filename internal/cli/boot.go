package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/bundle"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/boot"
	"slipway/verify/profiles"
)

// measurement is what a running submission showed. Its numbers depend on the
// machine, unlike a report's.
type measurement struct {
	Sandboxed bool     `json:"sandboxed"`
	Started   bool     `json:"started"`
	Fault     string   `json:"fault,omitempty"`           // why it did not start, or measuring stopped
	Startup   float64  `json:"startup_seconds,omitempty"` // to the first 200 of /health
	Questions int      `json:"questions,omitempty"`
	Right     int      `json:"right,omitempty"`
	Failed    int      `json:"failed,omitempty"` // requests without an answer or draft
	CutOff    int      `json:"cut_off,omitempty"`
	Tokens    int      `json:"tokens,omitempty"`
	Seconds   float64  `json:"seconds,omitempty"` // of all requests together
	Accuracy  *float64 `json:"accuracy,omitempty"`
	Tau       *float64 `json:"tau,omitempty"`

	quality profiles.Quality
}

// shortfall says why, or by how much, the submission misses what the profile
// asks for. A nil measurement, of a submission without serve.sh, misses nothing.
func (m *measurement) shortfall() error {
	switch {
	case m == nil:
	case !m.Started:
		return errors.New("startup: " + m.Fault)
	case m.Fault != "":
		return errors.New("quality: " + m.Fault)
	case m.Accuracy != nil && *m.Accuracy < m.quality.Accuracy:
		return fmt.Errorf("quality: accuracy %.4f is below the floor of %.4f", *m.Accuracy, m.quality.Accuracy)
	case m.Tau != nil && *m.Tau < m.quality.Tau:
		return fmt.Errorf("quality: tau %.4f is below the floor of %.4f", *m.Tau, m.quality.Tau)
	}
	return nil
}

// boot unpacks and starts the submission and measures it. A submission without
// serve.sh cannot be started, and that is said.
func (r *rehearsal) boot(ctx context.Context, tree *content.Tree) (*measurement, error) {
	if _, ok := tree.Lookup("serve.sh"); !ok {
		r.step("not started: there is no serve.sh")
		return nil, nil
	}
	folder := filepath.Join(r.work, "submission")
	if _, err := r.unpack(ctx, tree, folder); err != nil {
		return nil, err
	}
	server, err := r.start(r.work, boot.Options{Folder: folder})
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	load := r.options.Profile.Load
	measured := &measurement{}
	took, err := server.WaitHealthy(ctx, seconds(load.StartSeconds))
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		measured.Fault = err.Error()
		r.step("did not start: %v", err)
		fmt.Fprintf(r.Stderr, "%s\n", printableLines(manifest.Hint(err)))
		return measured, nil
	}
	r.step("started serve.sh (unsandboxed): healthy after %s of %s", rounded(took), seconds(load.StartSeconds))
	measured.Started, measured.Startup = true, took.Seconds()
	if quality := r.options.Profile.Quality; quality != nil {
		measured.quality = *quality
		if err := r.measureWithin(ctx, server, measured); err != nil {
			return nil, err
		}
	}
	return measured, nil
}

// measureWithin measures until the profile's limit passes or the server ends;
// both are faults of the submission.
func (r *rehearsal) measureWithin(ctx context.Context, server *boot.Server, m *measurement) error {
	limit := seconds(r.options.Profile.Load.TotalSeconds)
	measuring, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within the %s that the profile gives", limit))
	defer stop()
	measuring, end := context.WithCancelCause(measuring)
	defer end(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-server.Exited():
			end(fmt.Errorf("the server ended while it was questioned: %w", server.Err()))
		case <-done:
		}
	}()
	err := r.measure(measuring, server, m)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case measuring.Err() != nil:
		m.Fault = context.Cause(measuring).Error()
		r.step("stopped measuring: %s", m.Fault)
		fmt.Fprintf(r.Stderr, "the end of its log:\n%s\n", printableLines(server.Log()))
		return nil
	}
	return err
}

// printableLines is Printable that keeps line ends.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = manifest.Printable(line)
	}
	return strings.Join(lines, "\n")
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

func (r *rehearsal) measure(ctx context.Context, server *boot.Server, m *measurement) error {
	l := r.options.Profile.Load
	load := boot.Load{Concurrency: l.Concurrency, MaxTokens: l.MaxTokens, Temperature: l.Temperature, Request: seconds(l.RequestSeconds)}
	if m.quality.Continuations != nil {
		return r.measureDrafts(ctx, server, m, load)
	}
	questions, err := boot.ReadQuestions(m.quality.Questions)
	if err != nil {
		return fmt.Errorf("read the profile's questions: %w", err)
	}
	began := time.Now()
	answers, err := boot.Ask(ctx, server.URL, questions, load)
	if err != nil {
		return err
	}
	took := time.Since(began)
	m.Questions, m.Seconds = len(answers), took.Seconds()
	for _, a := range answers {
		m.Tokens += a.Tokens
		switch {
		case a.Failed != nil:
			m.Failed++
		case a.Right():
			m.Right++
		case a.Finish == "length":
			m.CutOff++
		}
	}
	accuracy := float64(m.Right) / float64(max(1, len(answers)))
	m.Accuracy = &accuracy
	r.step("asked %d public questions, %d at a time: %d right (%.1f%%), %d failed, %d cut off; %d tokens in %s",
		len(answers), load.Concurrency, m.Right, 100*accuracy, m.Failed, m.CutOff, m.Tokens, rounded(took))
	if i := slices.IndexFunc(answers, func(a boot.Answer) bool { return a.Failed != nil }); i >= 0 {
		fmt.Fprintf(r.Stderr, "   the first failure: %s: %v\n", answers[i].Question.ID, answers[i].Failed)
	}
	return nil
}

func (r *rehearsal) measureDrafts(ctx context.Context, server *boot.Server, m *measurement, load boot.Load) error {
	continuations, err := boot.ReadContinuations(m.quality.Continuations)
	if err != nil {
		return fmt.Errorf("read the profile's continuations: %w", err)
	}
	began := time.Now()
	acceptance, err := boot.MeasureDrafts(ctx, server.URL, continuations, load)
	if err != nil {
		return err
	}
	tau := acceptance.Tau()
	m.Tau, m.Failed, m.Tokens, m.Seconds = &tau, acceptance.Failed, acceptance.Tokens, time.Since(began).Seconds()
	r.step("drafted along %d continuations, %d at a time: tau %.4f (%d tokens in %d steps), %.4f averaged over prompts, %d empty drafts; %s",
		len(continuations), load.Concurrency, tau, acceptance.Tokens, acceptance.Steps, acceptance.PerPrompt, acceptance.Failed, rounded(time.Since(began)))
	return nil
}

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [BUNDLE]",
		Short: "Start a bundle's server, as its grader would",
		Long: `Unpacks or builds BUNDLE where it is no folder, and runs its serve.sh,
unsandboxed, until Ctrl-C. What the server prints goes to standard error.`,
		Args: between(0, 1),
	}
	port := cmd.Flags().Int("port", 8000, "where it listens")
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *port < 1 || *port > 65535 {
			return usageError{fmt.Errorf("--port %d is not between 1 and 65535", *port)}
		}
		work, err := os.MkdirTemp(a.TempDir, "slipway-serve-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		folder, err := a.materialise(cmd.Context(), bundleFile(args), filepath.Join(work, "submission"))
		if err != nil {
			return err
		}
		return a.serve(cmd.Context(), folder, work, *port)
	}
	return cmd
}

// materialise returns a folder with the submission's files: itself, or target.
func (a *app) materialise(ctx context.Context, text, target string) (string, error) {
	path, _, kind := classify(text)
	switch {
	case kind == content.OriginFolder && !holdsBundle(path):
		return filepath.Abs(path)
	case kind == content.OriginFolder || kind == originPlan:
		p, err := a.plan(ctx, path, false)
		if err != nil {
			return "", err
		}
		sealed, err := bundle.WriteFolder(ctx, p.plan, target, bundle.Options{Cache: a.cache()})
		if err != nil {
			return "", err
		}
		return target, sealed.Close()
	}
	tree, err := a.openTree(ctx, text)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	_, err = a.unpack(ctx, tree, target)
	return target, err
}

const (
	serveGrace    = 35 * time.Second // more than the runtime gives requests that are running
	servePatience = time.Hour        // a large model on a CPU loads for a while
)

// start starts a submission whose own files go into a new folder of work.
func (a *app) start(work string, options boot.Options) (*boot.Server, error) {
	options.TempDir, options.Path = filepath.Join(work, "home"), a.Path
	if err := os.Mkdir(options.TempDir, 0o700); err != nil {
		return nil, err
	}
	return boot.Start(options)
}

func (a *app) serve(ctx context.Context, folder, work string, port int) error {
	server, err := a.start(work, boot.Options{Folder: folder, Port: port, Log: a.Stderr, Grace: serveGrace})
	if err != nil {
		return err
	}
	defer server.Stop()
	if _, err := server.WaitHealthy(ctx, servePatience); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "serving on %s (unsandboxed)\n", strings.Replace(server.URL, "127.0.0.1", "0.0.0.0", 1))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-server.Exited():
		return fmt.Errorf("the server ended: %w", server.Err())
	}
}
