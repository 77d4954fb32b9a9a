package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/content"
)

// Status is how a gate ended.
type Status string

// The statuses. Undecided says that the gate was not, or could not be, decided
// here; its notes say why and where it is.
const (
	Pass          Status = "pass"
	Fail          Status = "fail"
	Undecided     Status = "undecided"
	NotApplicable Status = "not applicable"
)

// Level tells findings that fail a gate from those that only deserve a look.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// Finding is one thing that a gate found: which file or tensor, what is wrong,
// what was wanted and what is there, and what to do about it.
type Finding struct {
	Level   Level  `json:"level"`
	Path    string `json:"path,omitempty"`
	Tensor  string `json:"tensor,omitempty"`
	Problem string `json:"problem"`
	Want    string `json:"want,omitempty"`
	Got     string `json:"got,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// GateResult is one gate's end.
type GateResult struct {
	ID       string    `json:"id"`
	Status   Status    `json:"status"`
	Findings []Finding `json:"findings,omitempty"` // by path, tensor, problem; layers as people count
	Notes    []string  `json:"notes,omitempty"`    // the first of a gate that is undecided or does not apply says why

	unasked bool // the profile does not ask for it
}

// Trust is an input that the verdict rests on and that did not come from the
// submission.
type Trust struct {
	Input  string          `json:"input"`
	Digest manifest.Digest `json:"digest"`
}

// Claim is a fact that only the submission itself asserts.
type Claim struct {
	Source string `json:"source"` // the file that says so
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// Report is the outcome of Run: a pure function of the submission and the
// options, so that two runs give the same JSON, byte for byte. It names
// neither the time, the host nor the tool.
type Report struct {
	Schema       int            `json:"schema"`
	Origin       content.Origin `json:"origin"`
	Artifact     string         `json:"artifact_digest,omitempty"` // "" for a folder
	Set          string         `json:"set_digest,omitempty"`      // "" when a file could not be read
	Profile      string         `json:"profile"`
	Files        int            `json:"files"`
	Bytes        int64          `json:"bytes"`
	Sizes        []KindSize     `json:"sizes"`
	Limits       Limits         `json:"limits"`
	Trust        []Trust        `json:"trust"`
	Counts       *Counts        `json:"counts,omitempty"` // nil without a quantization manifest
	Tensors      []TensorReport `json:"tensors,omitempty"`
	Gates        []GateResult   `json:"gates"`
	SelfDeclared []Claim        `json:"self_declared,omitempty"`
	Measured     *Measured      `json:"measured,omitempty"` // nil: the submission was not started

	name         string   // what the user called the submission; for text only
	mayUndecided []string // gates that may stay undecided
}

// TensorReport is what is known of one ternary tensor of the quantization
// manifest.
type TensorReport struct {
	Name       string       `json:"name"`
	Kind       string       `json:"kind"`
	Format     string       `json:"format,omitempty"` // of a packed tensor
	Shape      []int64      `json:"shape"`
	Unit       int64        `json:"unit"`                  // weights that share a scale; of a literal tensor that is not ternary, the fewest that were looked at
	SharedBy   string       `json:"shared_by,omitempty"`   // what such a unit is: tensor, row or group
	ScaleDType string       `json:"scale_dtype,omitempty"` // of the stored scales
	Histogram  *[4]int64    `json:"histogram,omitempty"`   // how often codes 0, 1, 2, 3 stand; of a literal tensor, negative, zero and positive weights
	ScaleMin   string       `json:"scale_min,omitempty"`   // smallest and largest finite scale, or magnitude of a literal tensor
	ScaleMax   string       `json:"scale_max,omitempty"`   //
	ZeroScale  int64        `json:"zero_scale,omitempty"`  // units with scale zero
	Negative   int64        `json:"negative,omitempty"`    // negative scales
	NonFinite  int64        `json:"non_finite,omitempty"`  // NaN or infinite scales, or weights of a literal tensor
	Stored     []StoredPart `json:"stored"`                // the stored tensors that hold it
}

// StoredPart is a stored tensor and what it serves as: codes, scales, biases or
// values. Digest is of its bytes, where it was taken.
type StoredPart struct {
	As     string `json:"as"`
	File   string `json:"file"`
	Tensor string `json:"tensor"`
	DType  string `json:"dtype,omitempty"` // "" where it is not there
	Digest string `json:"digest,omitempty"`
}

// Name returns what the user called the submission. It is not part of the JSON.
func (r *Report) Name() string { return r.name }

// Gate returns the result of a gate.
func (r *Report) Gate(id string) (GateResult, bool) {
	for _, g := range r.Gates {
		if g.ID == id {
			return g, true
		}
	}
	return GateResult{}, false
}

// Failed returns the ids of the gates that failed, in order.
func (r *Report) Failed() []string {
	return r.ids(func(g GateResult) bool { return g.Status == Fail })
}

// Open returns the ids of the gates that are undecided and that the profile
// does not allow to stay so, in order.
func (r *Report) Open() []string {
	return r.ids(func(g GateResult) bool {
		return g.Status == Undecided && !slices.Contains(r.mayUndecided, g.ID)
	})
}

func (r *Report) ids(keep func(GateResult) bool) []string {
	var ids []string
	for _, g := range r.Gates {
		if keep(g) {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// Err is nil when every gate of the profile passed, did not apply, or may stay
// undecided.
func (r *Report) Err() error {
	var parts []string
	if failed := r.Failed(); len(failed) > 0 {
		parts = append(parts, "failed: "+strings.Join(failed, " "))
	}
	if open := r.Open(); len(open) > 0 {
		parts = append(parts, "undecided: "+strings.Join(open, " "))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("gates %s", strings.Join(parts, "; "))
}

// JSON writes the report in the one form it has, with a final newline.
func (r *Report) JSON() ([]byte, error) {
	data, err := manifest.EncodeCanonical(r)
	return append(data, '\n'), err
}

func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			compareNatural(a.Path, b.Path), compareNatural(a.Tensor, b.Tensor),
			cmp.Compare(a.Level, b.Level), cmp.Compare(a.Problem, b.Problem),
			cmp.Compare(a.Want, b.Want), cmp.Compare(a.Got, b.Got),
		)
	})
}

// compareNatural orders names as people count: layers.9 before layers.10.
// Equal only for equal names.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n == 0 || m == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
		if order := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); order != 0 {
			return order
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits returns how many digits text begins with.
func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}
