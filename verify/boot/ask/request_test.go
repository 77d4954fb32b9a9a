//go:build unix

package ask

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// What a shell makes of the line is what was sent, whatever the question holds.
func TestCurl(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	for _, question := range []string{"What is 1 + 1?", `it's "quoted" $HOME \n`, "two\nlines\tand é, 日本, 😀 \u202e", "<b>&`date`</b> '' % \\"} {
		answer := One(t.Context(), Endpoint{URL: server.URL}, Question{Question: question}, Load{MaxTokens: 8, Temperature: 0.5})
		line := answer.Curl(8000, ChatPath)
		if !strings.HasPrefix(line, "curl -sS -i http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' -d '") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("line %q", line)
		}
		script := `curl() { for last; do :; done; printf '%s' "$last"; }` + "\n" + line
		sent, err := exec.Command("/bin/sh", "-c", script).Output()
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(sent, &got); err != nil {
			t.Fatalf("%q: %v", sent, err)
		}
		if err := json.Unmarshal(answer.sent, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v (%v)", got, want, err)
		}
	}
	if line := (Exchange{sent: make([]byte, longestCurl+1)}).Curl(1, "/"); line != "" {
		t.Errorf("a line of %d bytes", len(line))
	}
}

// What is wrong with a reply is said in words of JSON, not of this program.
func TestMalformed(t *testing.T) {
	for body, want := range map[string]string{
		``:               "the body is empty",
		`<html>oops`:     `it is no JSON from byte 0 on: "<html>oops"`,
		`{"choices":[{"`: "its JSON is cut off after 14 bytes",
		`{"choices":[]}`: "it has no choice",
		`[]`:             "the body is a list, and must be an object",
		`"OK"`:           "the body is a text, and must be an object",
		`{"choices":{}}`: "choices is an object, and must be a list",
		`{"choices":[{"message":{"content":5}}]}`:                                        "choices.message.content is a number, and must be a text",
		`{"choices":[{"message":{"content":["x"]}}]}`:                                    "choices.message.content is a list, and must be a text",
		`{"choices":[{"message":{"content":null}}]}`:                                     "choices[0].message.content is absent or null",
		`{"choices":[{"message":{"content":"B"}}],"usage":{"completion_tokens":1.5}}`:    "usage.completion_tokens is the number 1.5, and must be a whole number",
		`{"choices":[{"message":{"content":"B"},"token_ids":[4294967296]}]}`:             "choices.token_ids is the number 4294967296, and must be a whole number of 32 bits",
		`{"choices":[{"message":{"content":"B"}}],"usage":{"completion_tokens":"four"}}`: "usage.completion_tokens is a text, and must be a whole number",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		answer := One(t.Context(), Endpoint{URL: server.URL}, Question{Question: "?"}, Load{MaxTokens: 8})
		server.Close()
		if answer.Failed == nil || !strings.HasPrefix(answer.Failed.Error(), "malformed reply: ") || !strings.Contains(answer.Failed.Error(), want) {
			t.Errorf("%s: %v, want %q", body, answer.Failed, want)
		}
	}
}

func TestThought(t *testing.T) {
	for message, want := range map[string]bool{
		`{"content":"","reasoning_content":"so"}`: true, `{"content":null,"reasoning":"so"}`: true, `{"content":""}`: false,
		`{"content":"","reasoning_content":" "}`: false, `{"content":"","reasoning":{"x":1}}`: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"choices":[{"message":%s}]}`, message)
		}))
		answer := One(t.Context(), Endpoint{URL: server.URL}, Question{Question: "?"}, Load{MaxTokens: 8})
		server.Close()
		if answer.Thought != want {
			t.Errorf("%s: %+v", message, answer)
		}
	}
}
