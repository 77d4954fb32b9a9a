package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/bundle/config"
	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// trust is what a verdict rests on beside the submission: flags, never files
// of the submission itself.
type trust struct {
	profile  string
	named    string // what named the profile, if no flag did
	contract string
	expect   string
	image    string
	base     string
	opened   *content.Tree // of base
}

func (t *trust) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.profile, "profile", "", "the task: a shipped profile ("+namesOfProfiles()+") or a profile file")
	cmd.Flags().StringVar(&t.contract, "contract", "", "contract of the base model, in place of the profile's: a file, or one of "+strings.Join(profiles.Contracts(), ", "))
	cmd.Flags().StringVar(&t.base, "base", "", "folder of the base model's own weights, to compare ternary tensors with")
	cmd.Flags().StringVar(&t.expect, "expect", "", "digest that the artifact or the set of files must have")
	cmd.Flags().StringVar(&t.image, "image", "", "description of the grader's machine, in place of the profile's (see slipway image)")
}

func namesOfProfiles() string {
	var text string
	for i, name := range profiles.Names() {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}

// ofBundle takes the profile that a bundle.hcl names, where no flag names one.
func (t *trust) ofBundle(text string) error {
	if _, _, kind := classify(text); kind != originPlan || t.profile != "" {
		return nil
	}
	wanted, err := config.LoadBundle(text)
	if err == nil {
		t.profile, t.named = wanted.ProfileSource(), text
	}
	return err
}

// options reads what the flags name. The caller closes t.
func (t *trust) options(ctx context.Context) (verify.Options, error) {
	var options verify.Options
	if t.profile == "" {
		return options, usageError{manifest.WithHint(fmt.Errorf("nothing says which task the submission is for"), "add --profile NAME ("+namesOfProfiles()+"), or a profile file")}
	}
	profile, source, err := config.LoadProfile(t.profile)
	if err != nil {
		return options, err
	}
	options.Profile = profile
	name := "profile " + profile.Name
	if t.named != "" {
		name += ", which " + t.named + " names"
	}
	options.Trust = []report.Trust{{Input: name, Digest: source}}
	if err := t.describeImage(&options); err != nil {
		return options, err
	}
	if t.expect != "" {
		if options.Expect, err = manifest.ParseDigest(t.expect); err != nil {
			return options, usageError{fmt.Errorf("--expect: %w", err)}
		}
	}
	if t.base != "" {
		if t.opened, err = content.OpenFolder(ctx, t.base); err != nil {
			return options, err
		}
		options.Base = t.opened
	}
	if t.contract != "" {
		data, shipped := profiles.Contract(t.contract)
		if !shipped {
			if data, err = readSmall(t.contract); err != nil {
				return options, err
			}
		}
		contract, err := manifest.DecodeContract(data)
		if err != nil {
			return options, fmt.Errorf("read contract %s: %w", t.contract, err)
		}
		options.Contract = &contract
		options.Trust = append(options.Trust, report.Trust{Input: "contract " + t.contract, Digest: manifest.DigestBytes(data)})
		return options, nil
	}
	for _, base := range profile.Bases {
		if base.Contract != nil {
			options.Trust = append(options.Trust, report.Trust{Input: "contract of " + base.Repository, Digest: base.Source})
		}
	}
	return options, nil
}

func (t *trust) close() {
	if t.opened != nil {
		_ = t.opened.Close() // it was only read
	}
}

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify --profile NAME BUNDLE",
		Short: "Check a submission offline against a task's rules",
		Long: `Reads and hashes every byte once and decides the static gates. BUNDLE may be a
folder that slipway did not make. For a bundle.hcl the profile that it names is
the default; a bundle's own claims are never evidence. Exit code 3 if a gate
fails or stays undecided where the profile does not allow that.`,
		Args: exactly(1),
	}
	var t trust
	t.flags(cmd)
	a.httpFlag(cmd)
	asJSON := jsonFlag(cmd)
	into := reportFlag(cmd)
	again := cmd.Flags().Bool("rebuild", false, "decide gate rebuild: build the shipped source with the go command")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := t.ofBundle(args[0]); err != nil {
			return err
		}
		defer t.close()
		options, err := t.options(cmd.Context())
		if err != nil {
			return err
		}
		if *again {
			if a.GoCommand == "" {
				return manifest.WithHint(errors.New("--rebuild: there is no go command"), "install Go, or leave --rebuild out")
			}
			options.Rebuild = a.rebuild
		}
		tree, err := a.openTree(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer tree.Close()
		r, err := a.verifyInto(cmd, *into, args[0], tree, options)
		if err != nil {
			return err
		}
		return a.printReport(r, *asJSON)
	}
	return cmd
}

func (a *app) verify(ctx context.Context, tree *content.Tree, options verify.Options) (*report.Report, error) {
	m := a.meter("verify "+filepath.Base(tree.Name), treeBytes(tree))
	defer m.end()
	options.Progress = func(done, _ int64) { m.set(done) }
	options.Runtimes = a.knownRuntimes
	// Of tens of thousands of tensors much is held and little is made anew: half as
	// much again is room enough.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	return verify.Run(ctx, tree, options)
}

func (a *app) printReport(r *report.Report, asJSON bool) error {
	if asJSON {
		data, err := r.JSON()
		if err != nil {
			return err
		}
		if _, err := a.Stdout.Write(data); err != nil {
			return err
		}
	} else if err := a.writeReport(r, true); err != nil {
		return err
	}
	if r.Err() != nil {
		return errFindings
	}
	return nil
}

// writeReport prints a report for people.
func (a *app) writeReport(r *report.Report, details bool) error {
	if details {
		return a.writeVerdicts(r.WriteText)
	}
	return a.writeVerdicts(r.WriteSummary)
}

// writeVerdicts prints what write does, its verdicts coloured on a terminal.
func (a *app) writeVerdicts(write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	out := text.String()
	if a.Colour {
		out = colourVerdicts(out)
	}
	_, err := io.WriteString(a.Stdout, out)
	return err
}

// verdictColours are those of the words that lines of a report begin with.
var verdictColours = map[string]string{
	"PASS": "\x1b[32m", "pass": "\x1b[32m", "FAIL": "\x1b[31m", "fail": "\x1b[31m", "UNDECIDED": "\x1b[33m", "undecided": "\x1b[33m",
}

// colourVerdicts colours a report's verdicts: whole words at the start of lines.
func colourVerdicts(report string) string {
	lines := strings.SplitAfter(report, "\n")
	for i, line := range lines {
		word := line
		if end := strings.IndexAny(line, " :;\n"); end >= 0 {
			word = line[:end]
		}
		if colour := verdictColours[word]; colour != "" {
			lines[i] = colour + word + "\x1b[0m" + line[len(word):]
		}
	}
	return strings.Join(lines, "")
}

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [GATE]",
		Short: "Say what a gate promises, where its rule comes from, and show a failure",
		Long: `Says what a gate promises, where its rule comes from, what a failure of it looks
like, and where it is decided. Without GATE: all of them, a line each.`,
		Args: between(0, 1),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		for _, id := range args {
			text, err := verify.Explain(id)
			if err != nil {
				return usageError{noGate(id)}
			}
			if !*asJSON {
				_, err = fmt.Fprint(a.Stdout, text)
				return err
			}
		}
		if *asJSON {
			return a.printJSON(describeGates(args))
		}
		rows := [][]string{{"GATE", "PROMISE"}}
		for _, gate := range verify.All() {
			rows = append(rows, []string{gate.ID, gate.Promise})
		}
		table(a.Stdout, rows)
		return nil
	}
	return cmd
}

// noGate is the error of a name that no gate has.
func noGate(id string) error {
	var names []string
	for _, gate := range verify.All() {
		names = append(names, gate.ID)
	}
	return manifest.WithHint(fmt.Errorf("there is no gate %q", manifest.Clip(id)), config.Suggest(id, names))
}

// describedGate is what explain --json prints of a gate.
type describedGate struct {
	ID        string `json:"id"`
	Promise   string `json:"promise"`
	Source    string `json:"source"`
	Example   string `json:"example,omitempty"`
	Elsewhere string `json:"not_decided_here,omitempty"`
}

// describeGates describes the named gates, or all.
func describeGates(ids []string) []describedGate {
	described := []describedGate{}
	for _, gate := range verify.All() {
		if len(ids) == 0 || slices.Contains(ids, gate.ID) {
			described = append(described, describedGate{gate.ID, gate.Promise, gate.Source, gate.Example, gate.Elsewhere})
		}
	}
	return described
}
