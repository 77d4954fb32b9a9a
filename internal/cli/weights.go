package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/local"
)

func (a *app) weightsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "weights",
		Short:                      "Work on weights",
		SuggestionsMinimumDistance: suggestionDistance,
		Args:                       noArgs,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.packCommand(), a.auditCommand(), a.contractCommand(), a.goldenCommand())
	return cmd
}

func (a *app) goldenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "golden [BUNDLE] --questions FILE",
		Short: "Write a checkpoint's reference answers",
		Long: `Starts BUNDLE's server (unsandboxed), asks every question of FILE (one JSON
object a line with id, question and answer) greedily, and writes one JSON object a
line: prompt and answer token ids, the answer's log-probabilities, and the likeliest
tokens of every step. Later runs of the same weights can be compared with it.`,
		Args: between(0, 1),
	}
	questions := cmd.Flags().String("questions", "", "file of questions")
	out := cmd.Flags().String("out", "", "file to write; default: standard output")
	top := cmd.Flags().Int("top", 5, "likeliest tokens to write of every step, at most 20")
	tokens := cmd.Flags().Int("max-tokens", 64, "longest answer")
	var s serving
	s.flags(cmd, 0, "handed to serve.sh, and asked; default: a free one")
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.check(0); err != nil {
			return err
		}
		switch {
		case *questions == "":
			return usageError{fmt.Errorf("--questions is missing")}
		case *top < 0 || *top > 20:
			return usageError{fmt.Errorf("--top %d is not between 0 and 20", *top)}
		case *tokens < 1:
			return usageError{fmt.Errorf("--max-tokens %d is not positive", *tokens)}
		}
		data, err := readSmall(*questions)
		if err != nil {
			return err
		}
		asked, err := ask.ReadQuestions(data)
		if err != nil {
			return fmt.Errorf("read %s: %w", *questions, err)
		}
		load := ask.Load{Concurrency: goldenConcurrency, MaxTokens: *tokens, Request: goldenPatience}
		references, err := a.references(cmd.Context(), bundleFile(args), s, asked, load, *top)
		if err != nil {
			return err
		}
		return a.writeReferences(references, *out)
	}
	return cmd
}

// Reference answers may take a CPU a long time; nobody waits for their latency.
const (
	goldenConcurrency = 16
	goldenPatience    = 24 * time.Hour
)

// references starts a bundle's server and asks it, for as long as the answers
// take.
func (a *app) references(ctx context.Context, text string, s serving, questions []ask.Question, load ask.Load, top int) ([]ask.Reference, error) {
	work, done, err := a.workFolder("slipway-golden-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = done() }()
	server, err := a.start(ctx, text, work, s, local.Options{})
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	fmt.Fprintf(a.Stderr, "asking %s at %s\n", count(len(questions), "question"), server.URL)
	return ask.References(ctx, server.URL, questions, load, top)
}

func (a *app) writeReferences(references []ask.Reference, out string) error {
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
	fmt.Fprintf(a.Stdout, "wrote %d reference answers to %s\n", len(references), out)
	return nil
}
