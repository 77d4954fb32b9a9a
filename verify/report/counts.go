package report

import (
	"slipway/manifest"
)

// The counting rules. "observed" counts elements; "strict" charges what a
// stored type could carry: integers half a weight a bit's pair, F32 two.
const (
	CountObserved = "observed"
	CountStrict   = "strict"
)

// Counts is what the ternary and stored rules compare, in elements:
//
//	A  = text tensors but input embedding and output head
//	T  = elements of A stored as ternary codes or ternary literals
//	s  = scale and bias elements      f = elements of A's float entries
//	     of those
//	u  = weighted elements that no entry of the quantization manifest refers to
//	P0 = elements of A in the pinned base
//	fraction = T/(T+s+f)              stored = T+s+f+u
type Counts struct {
	Counting         string `json:"counting"`
	Ternary          int64  `json:"ternary"`
	Scales           int64  `json:"scales"`
	Floats           int64  `json:"floats"`
	Unreferenced     int64  `json:"unreferenced"`
	Base             int64  `json:"base"`
	BaseSelfDeclared bool   `json:"base_self_declared"` // P0 is the manifest's own sum: no contract was given

	Entries int `json:"entries"`
	Packed  int `json:"packed"`
	Literal int `json:"literal"`
	Float   int `json:"float"`

	// The margins that decide, in parts of an element: fraction > n/d exactly when
	// d*T - n*(T+s+f) > 0, and stored <= (n/d)*P0 exactly when n*P0 - d*stored >= 0;
	// d parts are an element. Zero where the profile has no such rule.
	FractionMargin int64 `json:"-"`
	StoredMargin   int64 `json:"-"`

	// The same in elements, as exact decimal numbers; "" where the profile has no
	// such rule. T - (n/d)*(T+s+f) must be more than 0: so many more elements are
	// ternary than must be, were T+s+f to stay as it is. (n/d)*P0 - stored must be 0
	// or more: so many more could be stored.
	FractionMarginElements string `json:"fraction_margin_elements,omitempty"`
	StoredMarginElements   string `json:"stored_margin_elements,omitempty"`

	// T/(T+s+f) and stored/P0: rounded to six digits for people, and exact.
	Fraction         string `json:"fraction"`
	FractionExact    string `json:"fraction_exact"`
	StoredRatio      string `json:"stored_ratio"`
	StoredRatioExact string `json:"stored_ratio_exact"`
	StoredLimit      int64  `json:"stored_limit,omitempty"` // the most elements that may be stored; 0 where the profile has no such rule

	Excluded []Excluded `json:"excluded,omitempty"` // entries outside A, by name
}

// Excluded is an entry that is not counted, and why.
type Excluded struct {
	Name     string        `json:"name"`
	Role     manifest.Role `json:"role"`
	Kind     string        `json:"kind"`
	Elements int64         `json:"elements"`
}

// Counted returns T+s+f.
func (c Counts) Counted() int64 { return c.Ternary + c.Scales + c.Floats }

// Stored returns T+s+f+u.
func (c Counts) Stored() int64 { return c.Counted() + c.Unreferenced }
