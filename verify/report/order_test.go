package report

import (
	"slices"
	"testing"
)

func TestNaturalOrder(t *testing.T) {
	want := []string{"", "a", "a.2.b", "a.9.a", "a.010", "a.10", "a.10.c", "a.100", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNatural)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
