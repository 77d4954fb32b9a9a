package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/verify"
	"slipway/verify/boot/ask"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// publicExamples are a person's own, in the place of the profile's.
type publicExamples struct {
	questions, continuations string // files
	floor, chance, tau       float64
}

func (p *publicExamples) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.questions, "questions", "", "file of public questions, in place of the profile's")
	flags.Float64Var(&p.floor, "floor", 0, "with --questions: least share of right answers")
	flags.Float64Var(&p.chance, "chance", 0, "with --questions: share that guessing answers")
	flags.StringVar(&p.continuations, "continuations", "", "file of a target model's continuations, in place of the profile's")
	flags.Float64Var(&p.tau, "tau", 0, "with --continuations: least mean acceptance length")
}

// check says what is wrong with the flags; NaN is no number between any two.
func (p *publicExamples) check() error {
	switch {
	case p.questions != "" && p.continuations != "":
		return errors.New("--questions and --continuations are for different tasks")
	case p.questions != "" && !(p.floor > 0 && p.floor <= 1):
		return fmt.Errorf("--questions needs --floor, the least share of right answers: %v is not above 0 and at most 1", p.floor)
	case p.questions == "" && p.floor != 0:
		return errors.New("--floor needs --questions")
	case p.questions == "" && p.chance != 0 || !(p.chance >= 0 && p.chance < 1):
		return errors.New("--chance needs --questions, and is at least 0 and below 1")
	case p.continuations != "" && !(p.tau >= 1 && p.tau < 1<<20):
		return fmt.Errorf("--continuations needs --tau, the least mean acceptance length: %v is not at least 1", p.tau)
	case p.continuations == "" && p.tau != 0:
		return errors.New("--tau needs --continuations")
	}
	return nil
}

// replace puts the examples in the place of the profile's, and their file among
// what the verdict rests on.
func (p *publicExamples) replace(options *verify.Options) error {
	file, kind := p.questions, "questions"
	if p.continuations != "" {
		file, kind = p.continuations, "continuations"
	}
	if file == "" {
		return nil
	}
	if drafts := options.Profile.Load.Endpoint == ask.DraftPath; drafts != (p.continuations != "") {
		return usageError{fmt.Errorf("--%s: profile %s asks %s", kind, options.Profile.Name, options.Profile.Load.Endpoint)}
	}
	data, err := readSmall(file)
	if err != nil {
		return err
	}
	if p.continuations == "" {
		err = some(ask.ReadQuestions(data))
		options.Profile.Quality = &profiles.Quality{Questions: data, Accuracy: p.floor, Chance: p.chance}
	} else {
		err = some(ask.ReadContinuations(data))
		options.Profile.Quality = &profiles.Quality{Continuations: data, Tau: p.tau}
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	options.Trust = append(options.Trust, report.Trust{Input: kind + " " + file, Digest: manifest.DigestBytes(data)})
	return nil
}

func some[T any](all []T, err error) error {
	if err == nil && len(all) == 0 {
		return errors.New("it has no line")
	}
	return err
}

// howToDecide says how quality is decided where the profile has no examples.
func howToDecide(profile profiles.Profile) string {
	switch {
	case profile.Quality != nil:
		return ""
	case profile.Load.Endpoint == ask.DraftPath:
		return "profile " + profile.Name + " has no public examples: --continuations FILE --tau X decides quality by your own"
	}
	return "profile " + profile.Name + " has no public examples: --questions FILE --floor X decides quality by your own"
}
