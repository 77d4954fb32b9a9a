package broken

import (
	"fmt"
	"image/color"
	"math/rand/v2"
	"slices"
	"strings"

	"slipway/verify/picture"
)

// colours are how the words look. The server of base/code knows them too.
var colours = map[string]color.RGBA{
	"amber": rgb(255, 191, 0), "black": rgb(0, 0, 0), "blue": picture.Blue, "brown": rgb(139, 69, 19),
	"coral": rgb(255, 127, 80), "cream": rgb(255, 253, 208), "green": rgb(0, 128, 0), "grey": rgb(128, 128, 128),
	"lilac": rgb(200, 162, 200), "olive": rgb(128, 128, 0), "orange": rgb(255, 165, 0), "pink": rgb(255, 192, 203),
	"purple": rgb(128, 0, 128), "red": picture.Red, "white": rgb(255, 255, 255), "yellow": rgb(255, 255, 0),
}

func rgb(r, g, b uint8) color.RGBA { return color.RGBA{r, g, b, 255} }

// pictureName is the path of a word's picture, beside the questions.
func pictureName(word string) string { return "pictures/" + word + ".png" }

// Questions with an image: imageWords words, each once, of which the server counts
// the image's colour three times more.
const (
	imageQuestions = 32
	imageWords     = 4
)

type imageQuestion struct {
	question
	Image string `json:"image"`
}

// makeImageQuestions returns the questions, the same ones every time. The answer
// is never the first of its words in the vocabulary, which a model takes that
// finds all of them equally often.
func makeImageQuestions() []imageQuestion {
	random := rand.New(rand.NewPCG(5, 6))
	var all []imageQuestion
	for i := range imageQuestions {
		listed := random.Perm(len(words))[:imageWords]
		first := slices.Min(listed)
		answer := words[listed[slices.IndexFunc(listed, func(w int) bool { return w != first })]]
		var text strings.Builder
		text.WriteString(questionText)
		for _, w := range listed {
			text.WriteString(" " + words[w])
		}
		all = append(all, imageQuestion{question{fmt.Sprintf("majority-image-%04d", i), text.String(), answer}, pictureName(answer)})
	}
	return all
}
