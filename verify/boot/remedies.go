package boot

import (
	"errors"
	"net/http"
	"strings"

	"slipway/verify/boot/ask"
)

// unknownRemedy is for a request that fails for no reason that shows.
const unknownRemedy = "send one request of each kind before /health answers 200, on a machine with no compiler and no network"

// thoughtRemedy is for answers that are all thought.
const thoughtRemedy = "turn thinking off (chat_template_kwargs enable_thinking false, or no reasoning parser), or end the thought in time: graders read content alone"

// requestRemedy is what to do about a request to path that failed, by how it
// did. thought says that there was text, in a field for thoughts.
func requestRemedy(path string, x ask.Exchange, failed error, thought bool) string {
	switch x.Status {
	case 0:
		if errors.As(failed, new(ask.LateError)) {
			return "answer one request alone in time: what is compiled or captured at the first one belongs before the first 200 of /health"
		}
		return "the server closed the connection, as one does whose engine died: the end of its log says of what"
	case http.StatusOK:
		if thought {
			return thoughtRemedy
		}
		return "answer as the endpoint's standard says: an OpenAI chat completion, or {\"draft\": [...]} for drafts"
	case http.StatusNotFound:
		return "answer POST " + path + ": the server has another path, or knows no model of the name in the request; graders send that path, and any name. Where its task asks something else, name that task's profile, as in --profile " + ofOtherPath(path)
	case http.StatusMethodNotAllowed:
		return "answer POST at " + path + ": the server takes another method there"
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "take the request as it is: its reply says which part is refused; ignore fields that you do not know"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "ask for no key: graders send none"
	case http.StatusRequestEntityTooLarge:
		return "raise the server's limit on the size of a body, or of a prompt: graders send long ones"
	case http.StatusTooManyRequests:
		return "raise the server's limit on requests: graders wait for no quota"
	case http.StatusServiceUnavailable:
		return "answer /health with 200 only when a request would be answered"
	}
	switch x.Status / 100 {
	case 3:
		return "answer at " + path + " itself: graders follow no redirect"
	case 5:
		return "the server's log says what failed inside; " + unknownRemedy
	}
	return unknownRemedy
}

// ofOtherPath is a shipped profile whose requests go elsewhere.
func ofOtherPath(path string) string {
	if path == ask.DraftPath {
		return "ternary-chat"
	}
	return "drafter"
}

// exception returns the last line of the last Python traceback of a log, the one
// that names the exception; "" for none.
func exception(log string) string {
	const begins = "Traceback (most recent call last):"
	at := strings.LastIndex(log, begins)
	if at < 0 {
		return ""
	}
	lines := strings.Split(log[at:], "\n")
	column := strings.LastIndex(log[:at], "\n") + 1
	prefix := log[column:at] // loggers put something before each line
	for _, line := range lines[1:] {
		line = strings.TrimPrefix(line, prefix)
		if line != "" && !strings.HasPrefix(line, " ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
