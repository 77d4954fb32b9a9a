package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/runtime/engine"
	"slipway/runtime/engine/enginetest"
	"slipway/runtime/model"
)

// The test model has a byte for a token; 0 ends an answer, "<" and ">" are the
// marks of a thought. The template writes role=content; for each message, and
// "<" at the end if it is to think.
func testPrompt(chat Chat) (string, error) {
	var prompt strings.Builder
	for _, m := range chat.Messages {
		if m.Content == "refuse" {
			return "", errors.New("no user query")
		}
		fmt.Fprintf(&prompt, "%s=%s;", m.Role, m.Content)
	}
	for _, tool := range chat.Tools {
		prompt.Write(tool)
	}
	if chat.Thinking {
		prompt.WriteString("<\n")
	}
	return prompt.String(), nil
}

// serve starts a server on a stepper. Fields of m that are set replace the
// test model's.
func serve(t *testing.T, stepper *enginetest.Stepper, config engine.Config, think bool) (*Server, *httptest.Server) {
	t.Helper()
	if stepper.Shape.Slots == 0 {
		stepper.Shape = model.Limits{Slots: 4, Context: 64, Prefill: 16}
	}
	config.EndTokens = []int32{0}
	s := New(Config{Model: "abacus", MaxBody: 4096})
	s.now = func() time.Time { return time.Unix(1700000000, 0) }
	s.newID = func() string { return "1" }
	e := engine.New(config, stepper)
	s.Ready(&Model{
		Engine: e, Encode: enginetest.IDs, LongestText: 1, Prompt: testPrompt, Think: think,
		NewDecoder: func() engine.Decoder { return &enginetest.Bytes{} },
		Token:      func(id int32) string { return string([]byte{byte(id)}) },
		Thinking:   &engine.Thinking{Begin: '<', End: '>', Close: enginetest.IDs("\n>\n"), Reserve: 8},
	})
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		e.Drain(ctx)
	})
	return s, server
}

// answering is a stepper that continues the prompt "user=hi;" (and any other of
// that length) with text.
func answering(text string) *enginetest.Stepper {
	return &enginetest.Stepper{Next: enginetest.Script(len("user=hi;"), enginetest.IDs(text), 0)}
}

func send(t *testing.T, server *httptest.Server, method, path, body string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(data)
}

const hi = `"messages":[{"role":"user","content":"hi"}]`

func TestChat(t *testing.T) {
	for _, tc := range []struct{ name, script, body, want string }{
		{"plain", "yes", `{` + hi + `}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":4,"total_tokens":12}}`},
		{"limit, unknown fields, any model", "yes", `{` + hi + `,"model":"gpt-9","max_tokens":2,"user":"me","store":{"x":[1]},"max_completion_tokens":null}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"ye"},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`},
		{"the newer limit wins", "yes", `{` + hi + `,"max_tokens":1,"max_completion_tokens":2.0}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"ye"},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`},
		{"thought", "<\nhm\n>\n\nyes & no", `{` + hi + `}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"yes & no","reasoning_content":"hm"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":17,"total_tokens":25}}`},
		{"text parts", "yes", `{"messages":[{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}]}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":4,"total_tokens":12}}`},
		{"stop, last of a repeated field", "yes", `{` + hi + `,"stop":"y","stop":["es"]}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"y"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":3,"total_tokens":11}}`},
		{"logprobs", "é", `{` + hi + `,"logprobs":true,"top_logprobs":1}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"é"},"logprobs":{"content":[{"token":"\ufffd","logprob":-0.5,"bytes":[195],"top_logprobs":[{"token":"\ufffd","logprob":-0.5,"bytes":[195]}]},{"token":"\ufffd","logprob":-0.5,"bytes":[169],"top_logprobs":[{"token":"\ufffd","logprob":-0.5,"bytes":[169]}]}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":3,"total_tokens":11}}`},
		{"token ids with log-probabilities", "o", `{` + hi + `,"return_token_ids":true,"logprobs":true}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"o"},"logprobs":{"content":[{"token":"o","logprob":-0.5,"bytes":[111],"token_id":111,"top_logprobs":[]},{"token":"\u0000","logprob":-0.5,"bytes":[0],"token_id":0,"top_logprobs":[]}]},"finish_reason":"stop","token_ids":[111,0]}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10},"prompt_token_ids":[117,115,101,114,61,104,105,59]}`},
		{"token ids with log-probabilities after a stop string", "ok", `{` + hi + `,"return_token_ids":true,"logprobs":true,"stop":"k"}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"o"},"logprobs":{"content":[{"token":"o","logprob":-0.5,"bytes":[111],"token_id":111,"top_logprobs":[]},{"token":"k","logprob":-0.5,"bytes":[107],"token_id":107,"top_logprobs":[]}]},"finish_reason":"stop","token_ids":[111,107]}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10},"prompt_token_ids":[117,115,101,114,61,104,105,59]}`},
		{"token ids", "ok", `{` + hi + `,"return_token_ids":true}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"abacus","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"logprobs":null,"finish_reason":"stop","token_ids":[111,107,0]}],"usage":{"prompt_tokens":8,"completion_tokens":3,"total_tokens":11},"prompt_token_ids":[117,115,101,114,61,104,105,59]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, server := serve(t, answering(tc.script), engine.Config{}, false)
			if status, _, body := send(t, server, "POST", "/v1/chat/completions", tc.body); status != 200 || body != tc.want+"\n" {
				t.Errorf("status %d\n got %s\nwant %s", status, body, tc.want)
			}
		})
	}
}

func TestThinkingSwitch(t *testing.T) {
	for _, tc := range []struct {
		name, options string
		think         bool
		want          string
	}{
		{"off", "", false, "user=hi;"},
		{"on", "", true, "user=hi;<\n"},
		{"switched on", `,"chat_template_kwargs":{"enable_thinking":true,"other":1}`, false, "user=hi;<\n"},
		{"switched off", `,"chat_template_kwargs":{"enable_thinking":false}`, true, "user=hi;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stepper := &enginetest.Stepper{Next: func(sequence []int32) int32 {
				return append(enginetest.IDs("a>b"), 0)[len(sequence)-len(tc.want)]
			}}
			_, server := serve(t, stepper, engine.Config{}, tc.think)
			_, _, body := send(t, server, "POST", "/v1/chat/completions", `{`+hi+tc.options+`}`)
			content := `"content":"a>b"`
			if strings.HasSuffix(tc.want, "<\n") {
				content = `"content":"b","reasoning_content":"a"`
			}
			if prompt := stepper.Steps()[0][0].Tokens; string(bytesOf(prompt)) != tc.want || !strings.Contains(body, content) {
				t.Errorf("prompt %q, answer %s; want %q, %s", bytesOf(prompt), body, tc.want, content)
			}
		})
	}
}

// What an earlier turn said comes to the template as the client sent it.
func TestChatHistory(t *testing.T) {
	f := parseFields("", []byte(`{"messages":[
		{"role":"developer","content":"be brief"},
		{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
			{"id":"a","type":"function","function":{"name":"add","arguments":"{\"x\": 1.0}"}},
			{"id":"b","type":"function","function":{"name":"add","arguments":{"x": 2.0}}},
			{"id":"c","type":"function","function":{"name":"now"}}]},
		{"role":"tool","tool_call_id":"a","content":"3","reasoning_content":5}],
		"tools":[{"type": "function"}]}`))
	hm := "hm"
	want := Chat{
		Messages: []Message{
			{Role: "system", Content: "be brief"},
			{Role: "assistant", Reasoning: &hm, ToolCalls: []ToolCall{{"a", "add", `{"x": 1.0}`}, {"b", "add", `{"x": 2.0}`}, {"c", "now", "{}"}}},
			{Role: "tool", ToolCallID: "a", Content: "3"},
		},
		Tools: []json.RawMessage{json.RawMessage(`{"type": "function"}`)},
	}
	if got := readChat(f, false); f.err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %+v\nwant %+v", got, f.err, want)
	}
}

func bytesOf(ids []int32) []byte {
	text := make([]byte, len(ids))
	for i, id := range ids {
		text[i] = byte(id)
	}
	return text
}

func TestCompletions(t *testing.T) {
	const want = `{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"abacus","choices":[{"index":0,"text":"yes","logprobs":%s,"finish_reason":"%s"}],"usage":{"prompt_tokens":8,"completion_tokens":%d,"total_tokens":%d}}`
	for _, tc := range []struct{ name, script, body, want string }{
		{"text", "yes", `{"prompt":"12345678"}`, fmt.Sprintf(want, "null", "stop", 4, 12)},
		{"text in a list", "yes", `{"prompt":["12345678"],"max_tokens":3}`, fmt.Sprintf(want, "null", "length", 3, 11)},
		{"ids", "yes", `{"prompt":[1,2,3,4,5,6,7,8]}`, fmt.Sprintf(want, "null", "stop", 4, 12)},
		{"ids in a list", "yes", `{"prompt":[[1,2,3,4,5,6,7,8]]}`, fmt.Sprintf(want, "null", "stop", 4, 12)},
		{"logprobs", "yes", `{"prompt":"12345678","logprobs":1}`, fmt.Sprintf(want,
			`{"tokens":["y","e","s"],"token_logprobs":[-0.5,-0.5,-0.5],"top_logprobs":[{"y":-0.5},{"e":-0.5},{"s":-0.5}],"text_offset":[0,1,2]}`, "stop", 4, 12)},
		{"token ids", "y", `{"prompt":"12345678","logprobs":0,"return_token_ids":true}`,
			strings.Replace(strings.Replace(fmt.Sprintf(want, `{"tokens":["y","\u0000"],"token_logprobs":[-0.5,-0.5],"top_logprobs":[{},{}],"text_offset":[0,1]}`, "stop", 2, 10), "yes", "y", 1),
				`"stop"`, `"stop","prompt_token_ids":[49,50,51,52,53,54,55,56],"token_ids":[121,0]`, 1)},
		{"sixteen tokens unless told", strings.Repeat("x", 20), `{"prompt":"12345678"}`,
			strings.Replace(fmt.Sprintf(want, "null", "length", 16, 24), "yes", strings.Repeat("x", 16), 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, server := serve(t, answering(tc.script), engine.Config{}, false)
			if status, _, body := send(t, server, "POST", "/v1/completions", tc.body); status != 200 || body != tc.want+"\n" {
				t.Errorf("status %d\n got %s\nwant %s", status, body, tc.want)
			}
		})
	}
}

func TestDraft(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"sixteen through end tokens", `{"tokens":[1,2,3,4,5,6,7,8]}`, `{"draft":[121,101,115,0,0,0,0,0,0,0,0,0,0,0,0,0]}`},
		{"input_ids", `{"input_ids":[1,2,3,4,5,6,7,8],"n":2}`, `{"draft":[121,101]}`},
		{"context", `{"context":[1,2,3,4,5,6,7,8],"n":2.0}`, `{"draft":[121,101]}`},
		{"prompt", `{"prompt":[1,2,3,4,5,6,7,8],"n":5,"model":"x"}`, `{"draft":[121,101,115,0,0]}`},
		{"null is absent", `{"tokens":null,"prompt":[1,2,3,4,5,6,7,8],"n":1}`, `{"draft":[121]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, server := serve(t, answering("yes"), engine.Config{}, false)
			if status, _, body := send(t, server, "POST", "/draft", tc.body); status != 200 || body != tc.want+"\n" {
				t.Errorf("status %d, %s, want %s", status, body, tc.want)
			}
		})
	}
	t.Run("too long a context keeps its end", func(t *testing.T) {
		stepper := &enginetest.Stepper{Shape: model.Limits{Slots: 1, Context: 8, Prefill: 16}}
		_, server := serve(t, stepper, engine.Config{}, false)
		status, _, body := send(t, server, "POST", "/draft", `{"tokens":[1,2,3,4,5,6,7,8,9],"n":3}`)
		if got := fmt.Sprint(stepper.Steps()[0][0].Tokens); status != 200 || got != "[5 6 7 8 9]" {
			t.Errorf("status %d, %s, context %s", status, body, got)
		}
	})
}

// A context too small for a draft of 16 tokens gives as many as it has room for.
func TestDraftInSmallContexts(t *testing.T) {
	for context, want := range map[int]int{2: 1, 8: 7, 16: 15, 17: 16, 64: 16} {
		stepper := &enginetest.Stepper{Shape: model.Limits{Slots: 1, Context: context, Prefill: 16}}
		_, server := serve(t, stepper, engine.Config{}, false)
		status, _, body := send(t, server, "POST", "/draft", `{"tokens":[1]}`)
		var answer struct{ Draft []int32 }
		if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil || len(answer.Draft) != want {
			t.Errorf("context %d: status %d, %s, want %d tokens", context, status, body, want)
		}
	}
}

func TestStreams(t *testing.T) {
	const head = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"abacus","choices":[`
	chunk := func(choice string) string { return head + choice + "]}\n\n" }
	const textHead = `data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"abacus","choices":[`
	for _, tc := range []struct{ name, path, script, body, want string }{
		{"chat", "/v1/chat/completions", "<h>ok", `{` + hi + `,"stream":true,"stream_options":{"include_usage":true}}`,
			chunk(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`) +
				chunk(`{"index":0,"delta":{"reasoning_content":"h"},"logprobs":null,"finish_reason":null}`) +
				chunk(`{"index":0,"delta":{"content":"o"},"logprobs":null,"finish_reason":null}`) +
				chunk(`{"index":0,"delta":{"content":"k"},"logprobs":null,"finish_reason":null}`) +
				chunk(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`) +
				head + `],"usage":{"prompt_tokens":8,"completion_tokens":6,"total_tokens":14}}` + "\n\n" +
				"data: [DONE]\n\n"},
		{"chat with log-probabilities", "/v1/chat/completions", "a", `{` + hi + `,"stream":true,"logprobs":true}`,
			chunk(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`) +
				chunk(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}]},"finish_reason":null}`) +
				chunk(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`) +
				"data: [DONE]\n\n"},
		{"text", "/v1/completions", "ab", `{"prompt":"12345678","stream":true,"max_tokens":2,"logprobs":0}`,
			textHead + `{"index":0,"text":"a","logprobs":{"tokens":["a"],"token_logprobs":[-0.5],"top_logprobs":[{}],"text_offset":[0]},"finish_reason":null}]}` + "\n\n" +
				textHead + `{"index":0,"text":"b","logprobs":{"tokens":["b"],"token_logprobs":[-0.5],"top_logprobs":[{}],"text_offset":[1]},"finish_reason":null}]}` + "\n\n" +
				textHead + `{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}` + "\n\n" +
				"data: [DONE]\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, server := serve(t, answering(tc.script), engine.Config{}, false)
			status, header, body := send(t, server, "POST", tc.path, tc.body)
			if status != 200 || header.Get("Content-Type") != "text/event-stream" || body != tc.want {
				t.Errorf("status %d, %s\n got %s\nwant %s", status, header.Get("Content-Type"), body, tc.want)
			}
		})
	}
}

// Events arrive while the model is still at work.
func TestStreamIsNotBuffered(t *testing.T) {
	stepper := answering("abc")
	stepper.Gate = make(chan struct{})
	_, server := serve(t, stepper, engine.Config{}, false)
	defer close(stepper.Gate)
	go func() { stepper.Gate <- struct{}{} }()
	response, err := server.Client().Post(server.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"12345678","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, `"text":"a"`) {
		t.Errorf("%q, %v", line, err)
	}
}

func TestStreamErrors(t *testing.T) {
	fault := func(at int) *enginetest.Stepper {
		stepper := answering("abcdef")
		stepper.Fault = func(step int) error {
			if step == at {
				return errors.New("no such kernel")
			}
			return nil
		}
		return stepper
	}
	t.Run("at once", func(t *testing.T) {
		_, server := serve(t, fault(0), engine.Config{}, false)
		status, _, body := send(t, server, "POST", "/v1/chat/completions", `{`+hi+`,"stream":true}`)
		if want := `{"error":{"message":"the model's step failed: no such kernel","type":"server_error","param":null,"code":null}}` + "\n"; status != 500 || body != want {
			t.Errorf("status %d, %s", status, body)
		}
	})
	t.Run("on the way", func(t *testing.T) {
		stepper := fault(2)
		_, server := serve(t, stepper, engine.Config{}, false)
		status, _, body := send(t, server, "POST", "/v1/completions", `{"prompt":"12345678","stream":true}`)
		if status != 200 || !strings.HasSuffix(body, `data: {"error":{"message":"the model's step failed: no such kernel","type":"server_error","param":null,"code":null}}`+"\n\n") {
			t.Errorf("status %d, %s", status, body)
		}
	})
}
