package script

import (
	"strings"

	"slipway/verify/script/python"
)

// nearest is the declared option that is most like a word, or "".
func nearest(m python.Module, word string) string {
	var names []string
	for _, o := range m.Options {
		if !o.Positional {
			names = append(names, o.Names...)
		}
	}
	return nearestOf(names, word)
}

// leastMistyped is how many letters apart two names may be to be taken for one;
// of long names it is a quarter of the letters.
const leastMistyped = 2

func nearestOf(names []string, word string) string {
	limit := max(leastMistyped, len(word)/4)
	best, distance := "", limit+1
	for _, name := range names {
		d := editDistance(word, name)
		if strings.HasPrefix(name, "--") && (strings.HasPrefix(word, name) || strings.HasPrefix(name, word) || strings.HasSuffix(name, word[min(1, len(word)):])) {
			d = min(d, limit)
		}
		if d < distance {
			best, distance = name, d
		}
	}
	return best
}

func nearestHint(m python.Module, word string) string {
	if best := nearest(m, word); best != "" {
		return "the script declares " + best + ": is that what is meant, or are the two of different versions?"
	}
	return "ship the script of the same version as serve.sh, or leave the option out"
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
