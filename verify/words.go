package verify

import (
	"fmt"
	"strconv"
)

// grouped writes a number with its thousands apart, for people: 1,234,567.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// plural writes a count of things: 1 tensor, 2 tensors.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%s %s", grouped(int64(n)), pluralOf(thing))
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

// isAre writes a count with its verb: 1 tensor is, 2 tensors are.
func isAre(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return grouped(n) + " " + pluralOf(thing) + " are"
}
