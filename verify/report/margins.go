package report

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"slipway/verify/words"
)

// Elements writes a margin of so many parts of an element as a decimal number:
// exactly, or to six digits where it has no end. Neither is "0" for another number:
// no task's ratio has a denominator of a million.
func Elements(parts, denominator int64) string {
	margin := big.NewRat(parts, denominator)
	digits, exact := margin.FloatPrec()
	if !exact {
		digits = 6
	}
	return margin.FloatString(digits)
}

// FractionText says, for people, how far the ternary fraction is from its bound,
// which is written "95/100"; "" is none.
func (c Counts) FractionText(above string) string {
	switch {
	case above == "" || c.FractionMarginElements == "":
		return noBound
	case c.FractionMargin == 0:
		return fmt.Sprintf("exactly %s of T+s+f are ternary; it must be more", above)
	case c.FractionMargin < 0:
		return fmt.Sprintf("%s too few ternary elements for more than %s of T+s+f", magnitude(c.FractionMarginElements), above)
	}
	return fmt.Sprintf("%s ternary elements to spare above %s of T+s+f", magnitude(c.FractionMarginElements), above)
}

// StoredText says, for people, how far what is stored is from its bound, which is
// written "11/10"; "" is none.
func (c Counts) StoredText(atMost string) string {
	switch {
	case atMost == "" || c.StoredMarginElements == "":
		return noBound
	case c.StoredMargin < 0:
		return fmt.Sprintf("%s stored elements too many for at most %s of P0", magnitude(c.StoredMarginElements), atMost)
	}
	return fmt.Sprintf("%s stored elements to spare below %s of P0", magnitude(c.StoredMarginElements), atMost)
}

const noBound = "the profile has no bound"

// magnitude is a decimal number without its sign, its thousands grouped.
func magnitude(decimal string) string {
	whole, rest, fraction := strings.Cut(strings.TrimPrefix(decimal, "-"), ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
		whole = words.Grouped(n)
	}
	if fraction {
		return whole + "." + rest
	}
	return whole
}
