//go:build unix

package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/verify/boot/ask"
	"slipway/verify/picture"
	"slipway/verify/profiles"
)

// refuses answers what a server does not take of a body: one that is large, or
// with a list of parts.
func (s *testServer) refuses(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, smallBody))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	large, parts := r.ContentLength > smallBody, bytes.Contains(body, []byte(`"type":"image_url"`))
	switch {
	case err != nil:
		return false
	case s.is("limit") && large:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case s.is("closes") && large:
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return false
		}
		_ = connection.Close()
	case s.is("no parts") && parts:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "content: str type expected")
	case s.is("trips over parts") && parts, s.is("one image") && bytes.Count(body, []byte(`"type":"image_url"`)) > 1:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		return false
	}
	return true
}

// readContent reads the text and the colour of an image out of a message's
// content, a text or parts.
func readContent(content json.RawMessage) (text, colour string) {
	if json.Unmarshal(content, &text) == nil {
		return text, ""
	}
	var parts []struct {
		Text  string
		Image struct{ URL string } `json:"image_url"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return "fail", ""
	}
	for _, part := range parts {
		text += part.Text
		if _, data, ok := strings.Cut(part.Image.URL, ";base64,"); ok {
			image, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
			if err != nil {
				return "fail", ""
			}
			if colour = "red"; image.At(0, 0) == picture.Blue {
				colour = "blue"
			}
		}
	}
	return text, colour
}

// imageProfile asks the questions of chatProfile with an image each.
func imageProfile(p *profiles.Profile) {
	p.Load.BodyBytes = 1 << 20
	p.Quality.Questions = bytes.ReplaceAll(p.Quality.Questions, []byte(`{"id"`), []byte(`{"image":"below/a.png","id"`))
	p.Quality.Images = map[string][]byte{"below/a.png": picture.Small(picture.Red).Data}
}

func withoutQuestions(p *profiles.Profile) {
	imageProfile(p)
	p.Quality = nil
}

// A task's images are sent with its questions, and two more right after the first
// request. Each fault fails gate first-request, and no other.
func TestImages(t *testing.T) {
	for name, test := range map[string]struct {
		testSubmission
		say []string // findings and notes of gate first-request
	}{
		"clean":            {testSubmission{}, []string{`it says "blue" of a blue one and "red" of a red one`}},
		"no questions":     {testSubmission{profile: withoutQuestions}, []string{`it says "blue" of a blue one and "red" of a red one`}},
		"blind":            {testSubmission{fault: "blind"}, []string{"warning:", "a blue and a red image are answered the same", `got "word."`}},
		"blind twin":       {testSubmission{fault: "blind", change: func(r *Rehearsal) { r.Shrunk = "a tiny twin" }}, []string{"requests took"}},
		"limit":            {testSubmission{fault: "limit"}, []string{"request 3 after the start fails (POST /v1/chat/completions a body of 1 MiB (a plain square of 512 x 512 pixels))", "413", "client_max_size", "client_max_body_size", "head -c 78"}},
		"closes":           {testSubmission{fault: "closes"}, []string{"request 3 after the start fails", "the connection was closed over a body of 1", "client_max_size"}},
		"no parts":         {testSubmission{fault: "no parts"}, []string{"request 1 after the start fails (POST /v1/chat/completions 0 (below/a.png))", "400", `{"type":"image_url"`, "content: str type expected", `"$(base64 <'below/a.png' | tr -d '\n')" | curl`, "from the folder of the questions: printf"}},
		"one image":        {testSubmission{fault: "one image"}, []string{"request 4 after the start fails (POST /v1/chat/completions two images (a plain square of 64 x 64 pixels, a plain", "500", "with one image or several"}},
		"trips over parts": {testSubmission{fault: "trips over parts", profile: withoutQuestions}, []string{"request 1 after the start fails", "500", `{"type":"image_url"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.profile == nil {
				test.profile = imageProfile
			}
			measured, gates := run(t, test.rehearsal(t, true))
			g, bad := gates["first-request"], test.fault != "" && test.fault != "blind"
			if got := failing(gates); bad && !slices.Equal(got, []string{"first-request"}) || !bad && len(got) > 0 {
				t.Errorf("failed: %v", got)
			}
			for _, say := range test.say {
				if text := findings(g); !strings.Contains(text, say) {
					t.Errorf("does not say %q:\n%s", say, text)
				}
			}
			if warns := test.fault == "blind" && name != "blind twin"; !bad && (len(g.Findings) > 0) != warns {
				t.Errorf("findings:\n%s", findings(g))
			}
			if !bad && len(measured.First) != firstRequests+3 {
				t.Errorf("%d first requests", len(measured.First))
			}
		})
	}
}

func TestImageRemedy(t *testing.T) {
	shown := ask.Question{Pictures: []picture.Picture{picture.Small(picture.Red)}}
	for name, test := range map[string]struct {
		question ask.Question
		status   int
		sent     int
		failed   error
		want     string // "": no remedy of its own
	}{
		"no image":        {ask.Question{}, 413, 1 << 22, nil, ""},
		"too large":       {shown, 413, 1 << 22, nil, "client_max_size"},
		"closed":          {shown, 0, 1 << 22, fmt.Errorf("broken pipe"), "the connection was closed over a body of 4194304 bytes: raise"},
		"small, closed":   {shown, 0, 1000, fmt.Errorf("broken pipe"), ""},
		"late":            {shown, 0, 1 << 22, ask.LateError{}, ""},
		"large, refused":  {shown, 400, 1 << 22, nil, "where that is the size, raise"},
		"small, refused":  {shown, 400, 1000, nil, "list of parts"},
		"unprocessable":   {shown, 422, 1 << 22, nil, "list of parts"},
		"inside":          {shown, 500, 1000, nil, "list of parts"},
		"no path":         {shown, 404, 1000, nil, ""},
		"not of an image": {shown, 503, 1000, nil, ""},
	} {
		a := ask.Answer{Question: test.question, Failed: test.failed, Exchange: ask.Exchange{Status: test.status, Sent: test.sent}}
		if got := imageRemedy(a); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A reference answer is of a question with the same images, or of none.
func TestGoldenImages(t *testing.T) {
	red := picture.Small(picture.Red)
	public := ask.Question{ID: "1", Question: "What is it?", Answer: "A", Pictures: []picture.Picture{red}}
	for name, test := range map[string]struct {
		reference ask.Reference
		shown     int // images that are asked with it; -1: not asked
	}{
		"the same":      {ask.Reference{ID: "1", Question: "What is it?", Images: public.Shown()}, 1},
		"by its id":     {ask.Reference{ID: "1"}, 1},
		"another image": {ask.Reference{ID: "1", Question: "What is it?", Images: []string{"sha256:00"}}, -1},
		"another id":    {ask.Reference{ID: "2", Question: "What is it?", Images: public.Shown()}, -1},
		"another text":  {ask.Reference{ID: "1", Question: "What?", Images: public.Shown()}, -1},
		"text alone":    {ask.Reference{ID: "1", Question: "What is it?"}, 0},
	} {
		r := Rehearsal{Golden: []ask.Reference{test.reference, {ID: "else", Question: "Else?"}}}
		pairs, err := r.goldenQuestions(examples{questions: []ask.Question{public}})
		if err != nil || (len(pairs) == 2) != (test.shown >= 0) {
			t.Errorf("%s: %d pairs, %v", name, len(pairs), err)
		} else if test.shown >= 0 && len(pairs[0].answer.Question.Pictures) != test.shown {
			t.Errorf("%s: %d images", name, len(pairs[0].answer.Question.Pictures))
		}
	}
}

// Tasks with images have them in made-up requests too.
func TestMadeUpImages(t *testing.T) {
	for _, q := range madeUp(profiles.Load{Concurrency: 2, BodyBytes: 1 << 20}, 0).questions {
		if len(q.Pictures) != 1 || q.Question == colourQuestion {
			t.Errorf("%+v", q)
		}
	}
	if _, repeats := ask.WithoutRepeats(madeUp(profiles.Load{Concurrency: 16, BodyBytes: 1 << 20}, 0).questions); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
}
