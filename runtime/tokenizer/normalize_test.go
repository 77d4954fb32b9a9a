package tokenizer

import (
	"math/rand/v2"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Where x/text keeps to the standard, the unlimited form equals it.
func TestComposedUnlimited(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var special []rune
	for r := rune(0x300); r < 0x30000; r++ {
		if unicode.Is(unicode.M, r) || norm.NFD.String(string(r)) != string(r) {
			special = append(special, r)
		}
	}
	for range 20_000 {
		text := make([]rune, 1+random.IntN(7))
		for i := range text {
			if random.IntN(4) == 0 {
				text[i] = rune(random.IntN(0x2000))
			} else {
				text[i] = special[random.IntN(len(special))]
			}
		}
		if got, want := composedUnlimited(string(text)), norm.NFC.String(string(text)); got != want {
			t.Fatalf("%+q:\ngot  %+q\nwant %+q", string(text), got, want)
		}
	}
	for _, r := range special {
		if got, want := composedUnlimited(string(r)), norm.NFC.String(string(r)); got != want {
			t.Fatalf("%U: got %+q, want %+q", r, got, want)
		}
	}
}
