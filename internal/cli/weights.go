package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify/boot"
	"slipway/verify/boot/ask"
)

func (a *app) weightsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "weights",
		Short: "Work on weights",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
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
	a.httpFlag(cmd)
	a.cacheFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
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
		references, err := a.references(cmd.Context(), bundleFile(args), asked, load, *top)
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
	goldenPatience    = 24 * 60 * 60 * 1e9 // a day, in nanoseconds
)

// references starts a bundle's server for as long as it takes.
func (a *app) references(ctx context.Context, text string, questions []ask.Question, load ask.Load, top int) ([]ask.Reference, error) {
	work, done, err := a.workFolder("slipway-golden-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = done() }()
	folder, err := a.materialise(ctx, text, filepath.Join(work, "submission"))
	if err != nil {
		return nil, err
	}
	server, err := a.start(work, boot.Options{Folder: folder})
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	if _, err := server.WaitHealthy(ctx, goldenPatience); err != nil {
		return nil, err
	}
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
