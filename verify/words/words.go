// Package words writes numbers, counts and times for people.
package words

import (
	"fmt"
	"strconv"
)

// Grouped writes a number with its thousands apart, for people: 1,234,567.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Plural writes a count of things: 1 tensor, 2 tensors.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%s %s", Grouped(int64(n)), pluralOf(thing))
}

// pluralOf puts the s at the thing's own word: tensors of the model.
func pluralOf(thing string) string {
	for i, r := range thing {
		if r == ' ' && i+3 < len(thing) && thing[i:i+4] == " of " {
			return thing[:i] + "s" + thing[i:]
		}
	}
	return thing + "s"
}

// Are writes a count with its verb: 1 tensor is, 2 tensors are.
func Are(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return Grouped(n) + " " + pluralOf(thing) + " are"
}

// Seconds writes a time for people, three digits of it: 0.213 s, 12.3 s, 4,120 s.
func Seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.3f s", s)
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	case s < 100:
		return fmt.Sprintf("%.1f s", s)
	}
	return Grouped(int64(s+0.5)) + " s"
}
