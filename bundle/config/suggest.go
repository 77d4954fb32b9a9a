package config

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns the remedy for a misspelt name: the nearest of the allowed
// names, or all of them where none is near.
func Suggest(given string, allowed []string) string {
	best, bestDistance := "", max(1, min(3, len(given)/3))+1
	for _, name := range allowed {
		if d := editDistance(given, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(allowed) == 0 {
		return "none is taken here"
	}
	names := slices.Sorted(slices.Values(allowed))
	return "expected here: " + strings.Join(names, ", ")
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment), ignoring case.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) > 64 {
		return len(a)
	}
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := previous[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, previous[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}

// misspells reports whether written is name with a slip or two.
func misspells(written, name string) bool {
	d := editDistance(written, name)
	return d > 0 && d <= max(1, min(2, len(name)/3))
}
