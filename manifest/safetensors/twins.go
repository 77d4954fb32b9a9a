package safetensors

import "slices"

// Twins returns the pairs of tensor names that fold maps to one string, sorted.
// Names that differ only in case, or in Unicode form, are legal and distinct,
// and worth a look: a reader that ignores that takes one for the other. Of three
// or more, each later name is paired with the first.
func (h *Header) Twins(fold func(name string) string) [][2]string {
	names := make([]string, len(h.Tensors))
	for i, t := range h.Tensors {
		names[i] = t.Name
	}
	slices.Sort(names)
	var twins [][2]string
	first := make(map[string]string, len(names))
	for _, name := range names {
		folded := fold(name)
		if other, ok := first[folded]; ok {
			twins = append(twins, [2]string{other, name})
		} else {
			first[folded] = name
		}
	}
	return twins
}
