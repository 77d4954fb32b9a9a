package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
	"slipway/verify/picture"
)

// golden are the flags of weights golden: what is asked, and for how much.
type golden struct {
	serving
	questions, continuations string // files, one of them
	out                      string
	top, tokens              int
}

func (a *app) goldenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "golden [BUNDLE] --questions FILE",
		Short: "Write a checkpoint's reference answers or drafts",
		Long: `Starts BUNDLE's server (unsandboxed), asks every question of FILE (one JSON
object a line with id, question and answer) greedily, and writes one JSON object a
line: prompt and answer token ids, the answer's log-probabilities, and the likeliest
tokens of every step. With --continuations FILE (one JSON object a line with id and
prompt; a continuation takes no part) it asks for a draft after every prompt, and
writes its token ids. Later runs of the same weights can be compared with either:
slipway rehearse --golden.`,
		Args: between(0, 1),
	}
	var g golden
	flags := cmd.Flags()
	flags.StringVar(&g.questions, "questions", "", "file of questions")
	flags.StringVar(&g.continuations, "continuations", "", "file of prompts to draft after, in the place of --questions")
	flags.StringVar(&g.out, "out", "", "file to write; default: standard output")
	flags.IntVar(&g.top, "top", 5, "likeliest tokens to write of every step of an answer, at most 20")
	flags.IntVar(&g.tokens, "max-tokens", 0, fmt.Sprintf("longest answer, or ids of a draft; default: %d, or %d", answerTokens, draftTokens))
	g.serving.flags(cmd, 0, "handed to serve.sh, and asked; default: a free one")
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := g.serving.check(0); err != nil {
			return err
		}
		switch {
		case g.questions == "" && g.continuations == "":
			return usageError{errors.New("--questions is missing, or --continuations of a drafter")}
		case g.questions != "" && g.continuations != "":
			return usageError{errors.New("--questions and --continuations are for different tasks")}
		case g.top < 0 || g.top > 20:
			return usageError{fmt.Errorf("--top %d is not between 0 and 20", g.top)}
		case g.tokens < 0 || g.tokens == 0 && flags.Changed("max-tokens"):
			return usageError{fmt.Errorf("--max-tokens %d is not positive", g.tokens)}
		}
		if g.continuations != "" {
			return a.goldenDrafts(cmd.Context(), bundleFile(args), g)
		}
		return a.goldenAnswers(cmd.Context(), bundleFile(args), g)
	}
	return cmd
}

// What is asked for where no flag says it.
const (
	answerTokens = 64
	draftTokens  = 16
)

// Reference answers may take a CPU a long time; nobody waits for their latency.
const (
	goldenConcurrency = 16
	goldenPatience    = 24 * time.Hour
)

func (a *app) goldenAnswers(ctx context.Context, text string, g golden) error {
	data, err := readSmall(g.questions)
	if err != nil {
		return err
	}
	images, err := picture.LoadBeside(data, g.questions)
	if err != nil {
		return fmt.Errorf("read %s: %w", g.questions, err)
	}
	questions, err := ask.ReadQuestions(data, images)
	if err = some(questions, err); err != nil {
		return fmt.Errorf("read %s: %w", g.questions, err)
	}
	load := ask.Load{Concurrency: goldenConcurrency, MaxTokens: cmp.Or(g.tokens, answerTokens), Request: goldenPatience}
	var references []ask.Reference
	err = a.started(ctx, text, g.serving, count(len(questions), "question"), func(url string) (err error) {
		references, err = ask.References(ctx, url, questions, load, g.top)
		return err
	})
	if err != nil {
		return err
	}
	return writeReferences(a, references, "reference answer", g.out)
}

func (a *app) goldenDrafts(ctx context.Context, text string, g golden) error {
	data, err := readSmall(g.continuations)
	if err != nil {
		return err
	}
	prompts, err := ask.ReadPrompts(data)
	if err = some(prompts, err); err != nil {
		return fmt.Errorf("read %s: %w", g.continuations, err)
	}
	load := ask.Load{Concurrency: goldenConcurrency, MaxTokens: cmp.Or(g.tokens, draftTokens), Request: goldenPatience}
	var references []ask.DraftReference
	err = a.started(ctx, text, g.serving, "for "+count(len(prompts), "draft"), func(url string) (err error) {
		references, err = ask.DraftReferences(ctx, url, prompts, load)
		return err
	})
	if err != nil {
		return err
	}
	return writeReferences(a, references, "reference draft", g.out)
}

// started starts a bundle's server and lets use ask it, for as long as that
// takes.
func (a *app) started(ctx context.Context, text string, s serving, what string, use func(url string) error) error {
	work, done, err := a.workFolder("slipway-golden-*")
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	server, err := a.start(ctx, text, work, s, local.Options{})
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Fprintf(a.Stderr, "asking %s at %s\n", what, server.URL)
	return use(server.URL)
}

func writeReferences[T any](a *app, references []T, what, out string) error {
	var lines bytes.Buffer
	for _, r := range references {
		data, err := manifest.EncodeCanonical(r)
		if err != nil {
			return err
		}
		lines.Write(data)
		lines.WriteByte('\n')
	}
	if out == "" {
		_, err := a.Stdout.Write(lines.Bytes())
		return err
	}
	if err := content.ReplaceFile(out, lines.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", out, manifest.Cause(err))
	}
	fmt.Fprintf(a.Stdout, "wrote %s to %s\n", count(len(references), what), out)
	return nil
}
