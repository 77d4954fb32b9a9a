//go:build unix

package ask

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway/verify/picture"
)

// What a shell makes of the line is what was sent, whatever the question holds.
func TestCurl(t *testing.T) {
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	folder := t.TempDir()
	file := picture.Picture{Name: "it's 100% \"red\".png", Data: append(picture.Large(picture.Red, 1<<20).Data, "at the end"...)}
	if err := os.WriteFile(filepath.Join(folder, file.Name), file.Data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, shown := range [][]picture.Picture{nil, {picture.Small(picture.Red)}, {file}, {file, picture.Small(picture.Blue), file}} {
		for _, question := range []string{"What is 1 + 1?", `it's "quoted" $HOME \n 100% %s`, "two\nlines\tand é, 日本, 😀 \u202e \x00", "<b>&`date`</b> '' % \\", `@"}`, `\@"},@`} {
			answer := One(t.Context(), Endpoint{URL: server.URL}, Question{Question: question, Pictures: shown}, Load{MaxTokens: 8, Temperature: 0.5})
			line := answer.Curl(8000, ChatPath)
			if !strings.Contains(line, "curl -sS -i http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' -") ||
				strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) || len(line) > 3000 {
				t.Errorf("line %q", line)
			}
			script := `curl() { for last; do :; done; if [ "$last" = @- ]; then cat; else printf '%s' "$last"; fi; }` + "\n" + line
			command := exec.Command("/bin/sh", "-c", script)
			command.Dir = folder
			again, err := command.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(again, &got); err != nil {
				t.Fatalf("%.200q: %v", again, err)
			}
			if err := json.Unmarshal(sent, &want); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%q: got %.200s, want %.200s (%v)", question, again, sent, err)
			}
			if answer.Sent != len(sent) {
				t.Errorf("%d bytes sent, %d read", answer.Sent, len(sent))
			}
		}
	}
	long := One(t.Context(), Endpoint{URL: server.URL}, Question{Question: strings.Repeat("long", longestCurl/4)}, Load{MaxTokens: 8})
	if line := long.Curl(1, "/"); line != "" {
		t.Errorf("a line of %d bytes", len(line))
	}
}

// The line for a large image that is no file sends a body of as many bytes.
func TestCurlOfLarge(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }))
	defer server.Close()
	answer := One(t.Context(), Endpoint{URL: server.URL}, Question{Question: "?", Pictures: []picture.Picture{picture.Large(picture.Red, 1<<20)}}, Load{MaxTokens: 8})
	body, err := exec.Command("/bin/sh", "-c", "curl() { cat; }\n"+answer.Curl(8000, ChatPath)).Output()
	if err != nil || len(body) < answer.Sent-8 || len(body) > answer.Sent+8 {
		t.Errorf("%d bytes, %d were sent: %v", len(body), answer.Sent, err)
	}
}

// Text and images are sent as OpenAI has them, the images as data URLs.
func TestContent(t *testing.T) {
	images := map[string][]byte{"a.png": picture.Small(picture.Red).Data, "b.gif": []byte("GIF89a")}
	questions, err := ReadQuestions([]byte(`{"id":"1","question":"?","answer":"A","image":"a.png"}`+"\n"+`{"id":"2","question":"Both?","answer":"A","images":["b.gif","a.png"]}`+"\n"+
		`{"id":"3","question":"None?","answer":"A"}`), images)
	if err != nil {
		t.Fatal(err)
	}
	red := picture.Picture{Data: images["a.png"]}.URL()
	for i, want := range []string{
		`[{"text":"?","type":"text"},{"image_url":{"url":"` + red + `"},"type":"image_url"}]`,
		`[{"text":"Both?","type":"text"},{"image_url":{"url":"data:image/gif;base64,R0lGODlh"},"type":"image_url"},{"image_url":{"url":"` + red + `"},"type":"image_url"}]`,
		`"None?"`,
	} {
		if got, err := json.Marshal(content(questions[i], picture.Picture.URL)); err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s (%v)", questions[i].ID, got, want, err)
		}
	}
	for line, want := range map[string]string{
		`{"id":"1","question":"?","answer":"A","image":"other.png"}`:                  `question "1": image other.png was not read`,
		`{"id":"1","question":"?","answer":"A","image":"a.png","images":["b.gif"]}`:   `question "1" has both image and images`,
		`{"id":"1","question":"?","answer":"A","image":"a.png","Pictures":["b.gif"]}`: "Pictures",
		`{"id":"1","question":"?","answer":"A","image":["a.png"]}`:                    "line 1",
	} {
		if _, err := ReadQuestions([]byte(line), images); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A question repeats another where both its text and its images do.
func TestWithoutRepeatsOfImages(t *testing.T) {
	red, blue := picture.Small(picture.Red), picture.Small(picture.Blue)
	again := red
	again.Name = "under another name"
	kept, repeats := WithoutRepeats([]Question{
		{Question: "What colour?", Pictures: []picture.Picture{red}}, {Question: "What colour?", Pictures: []picture.Picture{blue}},
		{Question: "what  colour?", Pictures: []picture.Picture{again}}, {Question: "What colour?"},
		{Question: "What colour?", Pictures: []picture.Picture{red, blue}}, {Question: "What colour?", Pictures: []picture.Picture{blue, red}},
	})
	if len(kept) != 5 || repeats != 1 {
		t.Errorf("%d kept, %d repeats", len(kept), repeats)
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
