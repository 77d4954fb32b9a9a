// Package profiles describes the tasks that submissions are made for: every
// number and file name that a gate compares with is a field here, so that a
// new task is data and no code. The shipped profiles are files of this folder;
// a profile that came with a bundle is never evidence about that bundle.
package profiles

import (
	"slipway/manifest"
	"slipway/verify/image"
)

// Profile is one task's rules.
type Profile struct {
	Name        string
	Description string

	Bases    []Base     // pinned starting points; none: nothing is compared with a base
	Required []Required // files that a submission must have
	Ternary  *Ternary   // nil: the task has no ternary rule
	MaxBytes int64      // limit on the sum of all file sizes; 0: none

	VisionMTP Presence // what becomes of the base's vision and MTP tensors

	Gates        []string // the gates that apply, in no particular order
	MayUndecided []string // gates of Gates that may stay undecided without failing `--require static`

	Image   *image.Image    // what is known of the machine that the grader uses; nil: nothing
	Source  manifest.Digest // of the image's file
	Device  *Device         // the grader's accelerator; nil: what was measured counts as it is
	Load    Load            // what a grader sends; used by dynamic gates
	Quality *Quality        // public examples to measure a running submission with; nil: none
	Floor   float64         // as Quality's Accuracy or, for drafts, Tau, for examples that somebody brings, where the task has no public ones; 0: unknown
}

// Base pins a starting model. Contract holds its tensors' names, shapes and
// roles and comes with the profile, never from the submission.
type Base struct {
	Label      string // "language", "vision"
	Repository string
	Revision   string // 40 hex digits
	Contract   *manifest.Contract
	Source     manifest.Digest // of the contract's file
}

// Required is a file that a submission must have. Path may be a path.Match
// pattern per segment ("provenance/*.log"). Generated marks the files that
// slipway writes where they are absent.
type Required struct {
	Path      string
	Generated bool
	Why       string
}

// Ternary bounds the ternary fraction and the stored parameters. Ratios are
// compared in integers: FractionAbove 95/100 means 100*T > 95*(T+s+f).
type Ternary struct {
	FractionAbove   Ratio               // strictly above
	StoredAtMost    Ratio               // at most this times P0
	Counting        string              // "observed" or "strict": submission-format counting rules
	GroupMinimum    int64               // smallest scale unit, in weights
	Formats         []string            // kinds and formats of ternary entries that the task takes; none: all
	Names           manifest.FieldNames // how the task spells the quantization manifest's fields
	Unreferenced    Unreferenced        // what becomes of stored tensors that no entry refers to
	AllowAsymmetric bool                // literal units may be {-b, 0, +a}; each then has two scales
	WhenDeclared    bool                // a submission without a quantization manifest claims nothing ternary, and that is fine
}

// Ratio is Numerator/Denominator, both positive.
type Ratio struct{ Numerator, Denominator int64 }

// Presence says what may become of tensors that the task does not use.
type Presence string

// The presences.
const (
	MayOmit   Presence = "may_omit"
	Needed    Presence = "required"
	Forbidden Presence = "forbidden"
	Added     Presence = "added" // the submission brings a vision encoder of its own, to a base that stays as it is
)

// Unreferenced says what becomes of stored tensors that no entry of the
// quantization manifest refers to. They count as stored either way.
type Unreferenced string

// What may become of them; "" is as counting has it: strict rules forbid them,
// observed ones only count them.
const (
	CountUnreferenced  Unreferenced = "count"
	ForbidUnreferenced Unreferenced = "forbid"
)

// ForbidsUnreferenced reports whether such a tensor is an error.
func (t Ternary) ForbidsUnreferenced() bool {
	return t.Unreferenced == ForbidUnreferenced || t.Unreferenced == "" && t.Counting == "strict"
}

// Quality is how good a running submission has to be on the task's public
// examples. One of the two is given.
type Quality struct {
	Questions     []byte            // JSON lines of id, question, answer, choices, image, images
	Images        map[string][]byte // that the questions show, by the names that they have there; nil: none
	Chance        float64           // share of questions that guessing answers; 0: unknown
	Accuracy      float64           // least share of questions that are answered exactly
	Continuations []byte            // JSON lines of id, prompt, continuation: a target model's token ids
	Tau           float64           // least mean acceptance length of drafts of Load.MaxTokens ids
}

// Load is what a grader asks of a running submission. Durations in seconds,
// fractions allowed.
type Load struct {
	Endpoint       string // "/v1/chat/completions" or "/draft"
	Concurrency    int
	MaxTokens      int
	Temperature    float64
	StartSeconds   float64
	RequestSeconds float64
	TotalSeconds   float64

	Port           int   // where the grader looks for the server; 8000 where the profile does not say
	Attempts       int   // how often a request is tried; 1 where the profile does not say
	GradedRequests int   // the whole graded load; 0: unknown
	GradedTokens   int64 // of drafting: the held-out continuations' tokens; 0: unknown
	BodyBytes      int   // of the largest requests, which send images; 0: none does
}

// Device is an accelerator, by what limits decoding: memory and its bandwidth.
type Device struct {
	Name           string
	MemoryBytes    int64
	BytesPerSecond int64
}
