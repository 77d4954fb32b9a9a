package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mergedSlowly is BPE by its definition, for comparison.
func mergedSlowly(word string, v *vocabulary) []int32 {
	var ids []int32
	for i := range len(word) {
		ids = append(ids, v.bytes[word[i]])
	}
	for {
		best, at := merged{}, -1
		for i := range len(ids) - 1 {
			if m, ok := v.merges[pair(ids[i], ids[i+1])]; ok && (at < 0 || m.rank < best.rank) {
				best, at = m, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.id)
	}
}

func TestMergeEqualsDefinition(t *testing.T) {
	tokenizer := reduced(t, false)
	random := rand.New(rand.NewPCG(1, 2))
	var tokens []string
	for text := range tokenizer.ids {
		tokens = append(tokens, text)
	}
	slices.Sort(tokens)
	few := []string{"a", "a", "aa", "=", "==", " ", "\n", "l", "o"} // many merges of one rank
	for i := range 6000 {
		choice := tokens
		if i%2 == 0 {
			choice = few
		}
		var word strings.Builder
		for range 1 + random.IntN(20) {
			word.WriteString(choice[random.IntN(len(choice))])
		}
		text := word.String()
		want := mergedSlowly(text, &tokenizer.vocabulary)
		if got := new(workspace).merge(nil, text, &tokenizer.vocabulary); !slices.Equal(got, want) {
			t.Fatalf("%q:\ngot  %v\nwant %v", text, got, want)
		}
	}
}

// A word as long as a text: quadratic merging would not come to an end.
func TestLongWord(t *testing.T) {
	tokenizer := reduced(t, false)
	text := strings.Repeat("antidisestablishment", 25_000)
	ids := tokenizer.Encode(text)
	if got := tokenizer.Decode(ids, false); got != text {
		t.Error("does not come back")
	}
	if len(ids) > len(text)/2 {
		t.Errorf("%d ids for %d bytes: hardly merged", len(ids), len(text))
	}
}

// The workspace of a long word is not kept, that of short ones is.
func TestWorkspaceSize(t *testing.T) {
	v := &reduced(t, false).vocabulary
	for length, kept := range map[int]bool{1000: true, 1_000_000: false} {
		w := new(workspace)
		w.merge(nil, strings.Repeat("a", length), v)
		if (w.size() <= maxKept) != kept {
			t.Errorf("%d bytes: a workspace of %d bytes", length, w.size())
		}
	}
}
