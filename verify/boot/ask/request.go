package ask

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// chatBody is what a chat endpoint is sent of a question.
func chatBody(question Question, load Load) map[string]any {
	body := map[string]any{
		"model":       "submission",
		"messages":    []map[string]string{{"role": "user", "content": question.Question}},
		"max_tokens":  load.MaxTokens,
		"temperature": load.Temperature,
	}
	if load.IDs {
		body["return_token_ids"] = true
	}
	return body
}

// longestCurl is up to how many bytes a body is worth a command line.
const longestCurl = 16 << 10

// Curl is the request as one line for a shell, to be sent to a port of one's own
// machine; "" for a body that nobody pastes.
func (x Exchange) Curl(port int, path string) string {
	if len(x.sent) == 0 || len(x.sent) > longestCurl {
		return ""
	}
	return fmt.Sprintf("curl -sS -i http://127.0.0.1:%d%s -H 'Content-Type: application/json' -d '%s'",
		port, path, strings.ReplaceAll(asciiJSON(x.sent), "'", `'\''`))
}

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
