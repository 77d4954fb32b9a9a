package boot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"slipway/verify/boot/ask"
	"slipway/verify/picture"
	"slipway/verify/report"
)

// colourQuestion is asked of plain images.
const colourQuestion = "What colour is this image? Answer with one word."

// showImages sends images right after the first request: a small blue one, a red
// one that makes the body as large as the task's largest, and two in one message.
// It stops at the first request that fails.
func (s *session) showImages(ctx context.Context, o *observed) {
	blue, red, large := picture.Small(picture.Blue), picture.Small(picture.Red), s.Profile.Load.BodyBytes
	for i, q := range []ask.Question{
		{ID: "a small image", Question: colourQuestion, Pictures: []picture.Picture{blue}},
		{ID: fmt.Sprintf("a body of %.3g MiB", float64(large)/(1<<20)), Question: colourQuestion, Pictures: []picture.Picture{picture.Large(picture.Red, large)}},
		{ID: "two images", Question: "What colours are these images? Answer with two words.", Pictures: []picture.Picture{red, blue}},
	} {
		answer := ask.One(ctx, s.server, q, s.requestLoad())
		o.First = append(o.First, s.answered(&answer))
		if answer.Failed != nil {
			return
		}
		if i < len(o.colours) {
			o.colours[i] = answer
		}
	}
}

// coloursAnswered reports whether both images were answered, by weights that mean
// something.
func (o *observed) coloursAnswered() bool {
	return o.colours[0].Tries > 0 && o.colours[1].Tries > 0 && o.Shrunk == ""
}

// blind reports whether the same question is answered the same, whichever image
// comes with it.
func (o *observed) blind() bool {
	return o.coloursAnswered() && strings.TrimSpace(o.colours[0].Content) == strings.TrimSpace(o.colours[1].Content)
}

// judgeColours warns of a server that seems not to see images.
func (o *observed) judgeColours(v *verdict) {
	if !o.coloursAnswered() {
		return
	}
	blue, red := quoted(strings.TrimSpace(o.colours[0].Content)), quoted(strings.TrimSpace(o.colours[1].Content))
	if !o.blind() {
		v.Note("asked what colour an image is, it says %s of a blue one and %s of a red one", blue, red)
		return
	}
	v.Warn(report.Finding{Path: serveScript, Problem: "a blue and a red image are answered the same", Want: "another answer to " + quoted(colourQuestion), Got: blue,
		Hint: "see that image_url parts reach the model: a server that reads the text parts alone, or an encoder that was never trained, looks like this"})
}

// shownText names the images that a question shows.
func shownText(q ask.Question) string {
	var names []string
	for _, p := range q.Pictures {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// smallBody is a size that no server's limit on bodies is below, in bytes.
const smallBody = 512 << 10

const (
	bodyRemedy = "raise the server's limit on the size of a body: aiohttp's client_max_size is 1 MiB where nothing else is said, nginx's client_max_body_size too; " +
		"others are tornado's max_body_size and Flask's MAX_CONTENT_LENGTH"
	partsRemedy = `take content that is a list of parts, {"type":"text","text":"..."} and {"type":"image_url","image_url":{"url":"data:image/png;base64,..."}}, ` +
		"with one image or several"
)

// imageRemedy is what to do about a request with images that failed, where the
// images can be why; "" elsewhere.
func imageRemedy(a ask.Answer) string {
	refused := []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType, http.StatusInternalServerError, http.StatusNotImplemented}
	switch {
	case len(a.Question.Pictures) == 0:
		return ""
	case a.Status == http.StatusRequestEntityTooLarge:
		return bodyRemedy
	case a.Status == 0 && a.Sent > smallBody && !errors.As(a.Failed, new(ask.LateError)):
		return fmt.Sprintf("the connection was closed over a body of %d bytes: %s", a.Sent, bodyRemedy)
	case a.Status == http.StatusBadRequest && a.Sent > smallBody:
		return "its reply says what is refused; where that is the size, " + bodyRemedy
	case slices.Contains(refused, a.Status):
		return partsRemedy + "; its reply and the server's log say what failed"
	}
	return ""
}
