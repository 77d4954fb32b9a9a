package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/verify"
	"slipway/verify/boot/ask"
	"slipway/verify/picture"
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
	flags.Float64Var(&p.floor, "floor", 0, "least share of right answers: with --questions, or where the profile has questions and no floor; default: the profile's")
	flags.Float64Var(&p.chance, "chance", 0, "with --questions: share that guessing answers")
	flags.StringVar(&p.continuations, "continuations", "", "file of a target model's continuations, in place of the profile's")
	flags.Float64Var(&p.tau, "tau", 0, "least mean acceptance length: with --continuations, or where the profile has continuations and no floor; default: the profile's")
}

// check says what is wrong with the flags; NaN is no number between any two.
func (p *publicExamples) check() error {
	switch {
	case p.questions != "" && p.continuations != "":
		return errors.New("--questions and --continuations are for different tasks")
	case !(p.floor >= 0 && p.floor <= 1):
		return fmt.Errorf("--floor %v is no share: write one above 0 and at most 1", p.floor)
	case p.questions == "" && p.chance != 0 || !(p.chance >= 0 && p.chance < 1):
		return errors.New("--chance needs --questions, and is at least 0 and below 1")
	case p.tau != 0 && !(p.tau >= 1 && p.tau < 1<<20):
		return fmt.Errorf("--tau %v is no mean acceptance length: write one of at least 1", p.tau)
	case p.continuations != "" && p.floor != 0 || p.questions != "" && p.tau != 0 || p.floor != 0 && p.tau != 0:
		return errors.New("--floor is of --questions, and --tau of --continuations")
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
		trustOwn(options)
		return p.giveFloor(&options.Profile)
	}
	if drafts := options.Profile.Load.Endpoint == ask.DraftPath; drafts != (p.continuations != "") {
		return usageError{fmt.Errorf("--%s: profile %s asks %s", kind, options.Profile.Name, options.Profile.Load.Endpoint)}
	}
	data, err := readSmall(file)
	if err != nil {
		return err
	}
	if p.continuations == "" {
		quality := &profiles.Quality{Questions: data, Accuracy: cmp.Or(p.floor, options.Profile.Floor), Chance: p.chance}
		if quality.Accuracy == 0 {
			return usageError{errors.New("--questions needs --floor, the least share of right answers: above 0 and at most 1")}
		}
		if quality.Images, err = picture.LoadBeside(data, file); err == nil {
			err = some(ask.ReadQuestions(data, quality.Images))
		}
		options.Profile.Quality = quality
	} else {
		err = some(ask.ReadContinuations(data, 0)) // the vocabulary is the submission's
		quality := &profiles.Quality{Continuations: data, Tau: cmp.Or(p.tau, options.Profile.Floor)}
		if quality.Tau == 0 {
			return usageError{errors.New("--continuations needs --tau, the least mean acceptance length: at least 1")}
		}
		options.Profile.Quality = quality
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	options.Trust = append(options.Trust, report.Trust{Input: kind + " " + file, Digest: manifest.DigestBytes(data)})
	return nil
}

// giveFloor gives the profile's own examples the floor that they lack.
func (p *publicExamples) giveFloor(profile *profiles.Profile) error {
	q := profile.Quality
	switch {
	case p.floor == 0 && p.tau == 0:
		return nil
	case p.floor != 0 && (q == nil || q.Questions == nil || q.Accuracy != 0):
		return usageError{fmt.Errorf("--floor needs --questions: profile %s has no questions, or a floor for them", profile.Name)}
	case p.tau != 0 && (q == nil || q.Continuations == nil || q.Tau != 0):
		return usageError{fmt.Errorf("--tau needs --continuations: profile %s has no continuations, or a floor for them", profile.Name)}
	}
	own := *q
	own.Accuracy, own.Tau = p.floor, p.tau
	profile.Quality = &own
	return nil
}

// trustOwn puts the examples that a profile has among what the verdict rests on.
func trustOwn(options *verify.Options) {
	q := options.Profile.Quality
	switch {
	case q == nil:
	case q.Questions != nil:
		options.Trust = append(options.Trust, report.Trust{Input: "questions of profile " + options.Profile.Name, Digest: manifest.DigestBytes(q.Questions)})
	default:
		options.Trust = append(options.Trust, report.Trust{Input: "continuations of profile " + options.Profile.Name, Digest: manifest.DigestBytes(q.Continuations)})
	}
}

// trustImages puts the images that are shown among what the verdict rests on.
func trustImages(options *verify.Options) {
	if q := options.Profile.Quality; q != nil && len(q.Images) > 0 {
		options.Trust = append(options.Trust, report.Trust{Input: count(len(q.Images), "image") + " that the questions show", Digest: picture.SetDigest(q.Images)})
	}
}

func some[T any](all []T, err error) error {
	if err == nil && len(all) == 0 {
		return errors.New("it has no line")
	}
	return err
}
