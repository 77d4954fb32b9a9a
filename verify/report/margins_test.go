package report

import "testing"

// A margin is in elements, with its sign, and says on which side of the bound it is.
func TestMargins(t *testing.T) {
	for _, tc := range []struct {
		parts, denominator int64
		elements           string
		fraction, stored   string
	}{
		{19509680, 100, "195096.8", "195,096.8 ternary elements to spare above 9/10 of T+s+f", "195,096.8 stored elements to spare below 11/10 of P0"},
		{-5, 100, "-0.05", "0.05 too few ternary elements for more than 9/10 of T+s+f", "0.05 stored elements too many for at most 11/10 of P0"},
		{0, 10, "0", "exactly 9/10 of T+s+f are ternary; it must be more", "0 stored elements to spare below 11/10 of P0"},
		{1, 3, "0.333333", "0.333333 ternary elements to spare above 9/10 of T+s+f", "0.333333 stored elements to spare below 11/10 of P0"},
		{-70, 10, "-7", "7 too few ternary elements for more than 9/10 of T+s+f", "7 stored elements too many for at most 11/10 of P0"},
	} {
		elements := Elements(tc.parts, tc.denominator)
		c := Counts{FractionMargin: tc.parts, StoredMargin: tc.parts, FractionMarginElements: elements, StoredMarginElements: elements}
		if elements != tc.elements || c.FractionText("9/10") != tc.fraction || c.StoredText("11/10") != tc.stored {
			t.Errorf("%d/%d: %s; %s; %s", tc.parts, tc.denominator, elements, c.FractionText("9/10"), c.StoredText("11/10"))
		}
	}
	if c := (Counts{}); c.FractionText("") != noBound || c.StoredText("") != noBound {
		t.Error("a margin without a bound")
	}
}
