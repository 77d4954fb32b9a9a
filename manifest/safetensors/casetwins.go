package safetensors

import (
	"slices"
	"strings"
	"unicode"
)

// CaseTwins returns the pairs of tensor names that differ only in case, sorted.
// Such names are legal and distinct, and worth a look: a reader that ignores
// case takes one for the other. Of three or more, each later name is paired
// with the first.
func (h *Header) CaseTwins() [][2]string {
	names := make([]string, len(h.Tensors))
	for i, t := range h.Tensors {
		names[i] = t.Name
	}
	slices.Sort(names)
	var twins [][2]string
	first := make(map[string]string, len(names))
	for _, name := range names {
		folded := strings.Map(foldRune, name)
		if other, ok := first[folded]; ok {
			twins = append(twins, [2]string{other, name})
		} else {
			first[folded] = name
		}
	}
	return twins
}

// foldRune returns the least rune equal to r under simple case folding.
func foldRune(r rune) rune {
	if r <= unicode.MaxASCII && !unicode.IsLetter(r) {
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
