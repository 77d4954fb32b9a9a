package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify"
	"slipway/verify/image"
	"slipway/verify/image/probe"
	"slipway/verify/report"
)

func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "image",
		Short:                      "Describe the machine that a grader starts submissions on",
		SuggestionsMinimumDistance: suggestionDistance,
		Args:                       noArgs,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.probeCommand(), a.learnCommand())
	return cmd
}

func (a *app) probeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Describe the machine that this runs on",
		Long: `Run inside the image that a grader starts submissions in, it prints what checks
need to know of it: Python and what is installed, mounts, limits, user, programs,
accelerator. Without --full that is one line, short enough for what a report keeps
of a log, which "slipway image learn" finds there again.`,
		Args: noArgs,
	}
	full := cmd.Flags().Bool("full", false, "print everything, indented: an image.json")
	limit := cmd.Flags().Int("bytes", image.LineLimit, "longest line to print, without --full")
	submission := cmd.Flags().String("submission", "", "folder of the submission; default: SUBMISSION_DIR of the environment")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if runtime.GOOS != "linux" {
			return manifest.WithHint(errors.New("describe this machine: it does not run Linux"), "run it inside the grader's image; docs/image.md shows how")
		}
		described, unknown := probe.Read(cmd.Context(), probe.Environment{Variables: a.Variables, Submission: a.submissionFolder(*submission)})
		if cmd.Context().Err() != nil {
			return context.Cause(cmd.Context())
		}
		if *full {
			for _, what := range unknown {
				fmt.Fprintf(a.Stderr, "unknown: %s\n", manifest.Printable(what))
			}
			return a.printJSON(described)
		}
		line, err := described.Line(*limit)
		if err != nil {
			return manifest.WithHint(err, "give --bytes more, or --full")
		}
		_, err = fmt.Fprintln(a.Stdout, line)
		return err
	}
	return cmd
}

// submissionFolder is the one given, or what the environment names.
func (a *app) submissionFolder(given string) string {
	if given != "" {
		return given
	}
	for _, variable := range a.Variables {
		if folder, ok := strings.CutPrefix(variable, "SUBMISSION_DIR="); ok {
			return folder
		}
	}
	return ""
}

func (a *app) learnCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "learn LOG... [--into FILE]",
		Short: "Read what a self-check's log reveals of the grader's machine",
		Long: `Reads logs, or reports that quote the end of one, clipped anywhere; "-" is
standard input. Lines of "slipway image probe" say most; tracebacks and messages
say the rest. Prints an image.json, and the evidence on standard error. With
--into it is joined to what FILE knows, which is kept where the two disagree:
then the exit code is 3.`,
		Args: between(1, 1000),
	}
	into := cmd.Flags().String("into", "", "description to add to; made where it is absent")
	cmd.RunE = func(_ *cobra.Command, logs []string) error {
		known, err := readImageFile(*into)
		if err != nil {
			return err
		}
		var disagreements []string
		for _, name := range logs {
			text, err := a.readLog(name)
			if err != nil {
				return err
			}
			learned := image.Learn(text)
			merged, disagree := image.Merge(known, &learned.Image)
			known, disagreements = &merged, append(disagreements, disagree...)
			a.printEvidence(name, learned.Evidence)
		}
		for _, line := range disagreements {
			fmt.Fprintf(a.Stderr, "disagrees: %s\n", manifest.Printable(line))
		}
		if err := a.writeImage(known, *into); err != nil {
			return err
		}
		if len(disagreements) > 0 {
			return errFindings
		}
		return nil
	}
	return cmd
}

func (a *app) readLog(name string) (string, error) {
	if name != "-" {
		data, err := readSmall(name)
		return string(data), err
	}
	const limit = 64 << 20
	data, err := io.ReadAll(io.LimitReader(a.Stdin, limit+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("read standard input: larger than %d bytes", limit)
	}
	return string(data), err
}

func (a *app) printEvidence(log string, evidence []image.Evidence) {
	if len(evidence) == 0 {
		fmt.Fprintf(a.Stderr, "%s: nothing about the machine\n", manifest.Printable(log))
	}
	for _, e := range evidence {
		what := "learned"
		if e.Noted {
			what = "noted"
		}
		fmt.Fprintf(a.Stderr, "%s: %s\n    %s\n", what, manifest.Printable(e.Fact), e.Quote)
	}
}

func (a *app) writeImage(described *image.Image, into string) error {
	if into == "" {
		return a.printJSON(described)
	}
	data, err := manifest.EncodeLines(described)
	if err != nil {
		return err
	}
	if err := content.ReplaceFile(into, data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", into, manifest.Cause(err))
	}
	fmt.Fprintf(a.Stdout, "wrote %s\n", into)
	return nil
}

// readImageFile reads a description; an empty one where no file is named or the
// named one is not there.
func readImageFile(name string) (*image.Image, error) {
	if name == "" {
		return &image.Image{Schema: image.Schema}, nil
	}
	described, _, err := readImage(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &image.Image{Schema: image.Schema}, nil
	}
	return described, err
}

// readImage reads a description and the digest of its bytes.
func readImage(name string) (*image.Image, manifest.Digest, error) {
	data, err := readSmall(name)
	if err != nil {
		return nil, manifest.Digest{}, err
	}
	described, err := image.Decode(data)
	if err != nil {
		return nil, manifest.Digest{}, fmt.Errorf("read image %s: %w", name, err)
	}
	return described, manifest.DigestBytes(data), nil
}

// describeImage puts the description that --image names in the place of the
// profile's, and lists the one that counts among the trusted inputs.
func (t *trust) describeImage(options *verify.Options) error {
	name := "image of profile " + options.Profile.Name
	if t.image != "" {
		described, digest, err := readImage(t.image)
		if err != nil {
			return err
		}
		options.Profile.Image, options.Profile.Source = described, digest
		name = "image " + filepath.Clean(t.image)
	}
	if options.Profile.Image != nil {
		options.Trust = append(options.Trust, report.Trust{Input: name, Digest: options.Profile.Source})
	}
	return nil
}
