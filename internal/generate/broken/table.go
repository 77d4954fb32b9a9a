package broken

import (
	"fmt"
	"slices"
	"strings"
)

// Table lists cases as a Markdown table, those of failed submissions first.
func Table(cases []Case) string {
	sorted := slices.Clone(cases)
	slices.SortStableFunc(sorted, func(a, b Case) int {
		switch {
		case a.Failed() == b.Failed():
			return strings.Compare(a.Name, b.Name)
		case a.Failed():
			return -1
		}
		return 1
	})
	var out strings.Builder
	out.WriteString("| case | what is wrong | known from | gate |\n|---|---|---|---|\n")
	for _, c := range sorted {
		gate := c.Gate
		if c.Sandboxed {
			gate += " (in the sandbox)"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", c.Name, c.Title, c.From, gate)
	}
	return out.String()
}
