package ask

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"slipway/verify/picture"
)

// chatBody is what a chat endpoint is sent of a question: a text, or the list of
// parts that OpenAI has for text and images, which url gives the addresses of.
func chatBody(question Question, load Load, url func(picture.Picture) string) map[string]any {
	body := map[string]any{
		"model":       "submission",
		"messages":    []map[string]any{{"role": "user", "content": content(question, url)}},
		"max_tokens":  load.MaxTokens,
		"temperature": load.Temperature,
	}
	if load.IDs {
		body["return_token_ids"] = true
	}
	return body
}

func content(question Question, url func(picture.Picture) string) any {
	if len(question.Pictures) == 0 {
		return question.Question
	}
	parts := []map[string]any{{"type": "text", "text": question.Question}}
	for _, p := range question.Pictures {
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": url(p)}})
	}
	return parts
}

// longestCurl is up to how many bytes a body is worth a command line.
const longestCurl = 16 << 10

// short is a request's body for people: place stands for each image that would
// make it long.
type short struct {
	body     []byte
	pictures []picture.Picture // in the order of their places
}

// place ends an address, and with it an object, which no text does: in a text
// the quotation mark is escaped, and after one the object goes on.
const place, placed = "@", `@"}`

// shorten makes the short form of a question's body.
func shorten(question Question, load Load) (s short) {
	body, err := json.Marshal(chatBody(question, load, func(p picture.Picture) string {
		if p.Made && len(p.Data) < longestCurl/8 {
			return p.URL()
		}
		s.pictures = append(s.pictures, p)
		return p.URLPrefix() + place
	}))
	if err == nil && len(body) <= longestCurl {
		s.body = body
	}
	return s
}

// Curl is the request as one line for a shell, to be sent to a port of one's own
// machine; "" for a body that nobody pastes. It reads images from the files that
// the question names.
func (x Exchange) Curl(port int, path string) string {
	if len(x.short.body) == 0 {
		return ""
	}
	body := asciiJSON(x.short.body)
	curl := fmt.Sprintf("curl -sS -i http://127.0.0.1:%d%s -H 'Content-Type: application/json'", port, path)
	if len(x.short.pictures) == 0 {
		return curl + " -d " + quote(body)
	}
	format := strings.NewReplacer(placed, `%s"}`, `\`, `\\`, "%", "%%").Replace(body)
	line := "printf " + quote(format)
	for _, p := range x.short.pictures {
		from := "base64 <" + quote(p.Name)
		if p.Made { // as many bytes, which a limit on the size tells from no others
			from = fmt.Sprintf("head -c %d /dev/zero | base64", len(p.Data))
		}
		line += fmt.Sprintf(` "$(%s | tr -d '\n')"`, from)
	}
	return line + " | " + curl + " --data-binary @-"
}

// quote makes a word of a shell of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// asciiJSON writes a JSON text with no character that a terminal or an editor
// could change.
func asciiJSON(data []byte) string {
	var out strings.Builder
	for _, r := range string(data) {
		switch {
		case r < 0x7f:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
