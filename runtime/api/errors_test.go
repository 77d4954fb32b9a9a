package api

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"slipway/runtime/engine"
	"slipway/runtime/engine/enginetest"
	"slipway/runtime/model"
)

// unread is a body that may not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// A body that says that it is too long is not waited for, and one that does not
// say is read up to the limit.
func TestTooLargeBody(t *testing.T) {
	s, _ := serve(t, answering("yes"), engine.Config{}, false)
	for _, tc := range []struct {
		body   io.Reader
		length int64
	}{{unread{t}, 4097}, {strings.NewReader(strings.Repeat(" ", 4097)), -1}} {
		request := httptest.NewRequest("POST", "/v1/completions", tc.body)
		request.ContentLength = tc.length
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, request)
		if answer.Code != 413 || !strings.Contains(answer.Body.String(), "the request has more than 4096 bytes") {
			t.Errorf("length %d: %d, %s", tc.length, answer.Code, answer.Body)
		}
	}
}

// Every mistake has a request of its own; the test sends its twin without the
// mistake, a plain question, before and after.
func TestErrors(t *testing.T) {
	const chat, text, draft = "/v1/chat/completions", "/v1/completions", "/draft"
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for _, tc := range []struct {
		name, path, body string
		status           int
		message, param   string
		code             string
	}{
		{"no JSON", chat, `{"messages":`, 400, "the request is not valid JSON: unexpected end of JSON input", "", ""},
		{"empty body", chat, ``, 400, "the request is not valid JSON: unexpected end of JSON input", "", ""},
		{"more than JSON", chat, `{` + hi + `} x`, 400, "the request is not valid JSON: invalid character 'x' after top-level value", "", ""},
		{"a list", chat, `[]`, 400, "the request has to be a JSON object", "", ""},
		{"null", chat, `null`, 400, "the request has to be a JSON object", "", ""},
		{"a huge body", chat, `{"x":"` + strings.Repeat("x", 5000) + `",` + hi + `}`, 413, "the request has more than 4096 bytes", "", "request_too_large"},
		{"no messages", chat, `{}`, 400, "messages is missing", "messages", ""},
		{"another field's name", chat, `{"Messages":[{"role":"user","content":"hi"}]}`, 400, "messages is missing", "messages", ""},
		{"empty messages", chat, `{"messages":[]}`, 400, "messages has to have at least one message", "messages", ""},
		{"messages of text", chat, `{"messages":"hi"}`, 400, "messages has to be a list", "messages", ""},
		{"a message of text", chat, `{"messages":["hi"]}`, 400, "messages[0] has to be a JSON object", "messages[0]", ""},
		{"no role", chat, `{"messages":[{"content":"hi"}]}`, 400, "messages[0].role is missing", "messages[0].role", ""},
		{"a bad role", chat, `{"messages":[{"role":"user","content":"hi"},{"role":"king","content":"hi"}]}`, 400, `messages[1].role has to be system, developer, user, assistant or tool, not "king"`, "messages[1].role", ""},
		{"a role of number", chat, `{"messages":[{"role":1,"content":"hi"}]}`, 400, "messages[0].role has to be a string", "messages[0].role", ""},
		{"no content", chat, `{"messages":[{"role":"user"}]}`, 400, "messages[0].content is missing", "messages[0].content", ""},
		{"a content of number", chat, `{"messages":[{"role":"user","content":5}]}`, 400, "messages[0].content has to be a string or a list of parts", "messages[0].content", ""},
		{"no parts", chat, `{"messages":[{"role":"user","content":[]}]}`, 400, "messages[0].content has to be a string or a list of parts", "messages[0].content", ""},
		{"an image", chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, 400, "messages[0].content[1].type is an image: this model reads text only", "messages[0].content[1].type", ""},
		{"a part of sound", chat, `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, `messages[0].content[0].type has to be text, not "input_audio"`, "messages[0].content[0].type", ""},
		{"a part without text", chat, `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, 400, "messages[0].content[0].text is missing", "messages[0].content[0].text", ""},
		{"a call without a name", chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{}}]}]}`, 400, "messages[0].tool_calls[0].function.name is missing", "messages[0].tool_calls[0].function.name", ""},
		{"tools of text", chat, `{` + hi + `,"tools":["x"]}`, 400, "tools[0] has to be a JSON object", "tools[0]", ""},
		{"the template refuses", chat, `{"messages":[{"role":"user","content":"refuse"}]}`, 400, "no user query", "messages", ""},
		{"two answers", chat, `{` + hi + `,"n":2}`, 400, "n has to be 1: send the request again for another answer", "n", ""},
		{"too hot", chat, `{` + hi + `,"temperature":2.5}`, 400, "temperature has to be between 0 and 2, not 2.5", "temperature", ""},
		{"a temperature of text", chat, `{` + hi + `,"temperature":"0"}`, 400, "temperature has to be a number", "temperature", ""},
		{"top_p above one", chat, `{` + hi + `,"top_p":1.5}`, 400, "top_p has to be between 0 and 1, not 1.5", "top_p", ""},
		{"top_k below minus one", chat, `{` + hi + `,"top_k":-2}`, 400, "top_k has to be at least -1, not -2", "top_k", ""},
		{"no tokens", chat, `{` + hi + `,"max_tokens":0}`, 400, "max_tokens has to be at least 1, not 0", "max_tokens", ""},
		{"half a token", chat, `{` + hi + `,"max_completion_tokens":1.5}`, 400, "max_completion_tokens has to be an integer, not 1.5", "max_completion_tokens", ""},
		{"a seed of text", chat, `{` + hi + `,"seed":"x"}`, 400, "seed has to be a 64-bit integer", "seed", ""},
		{"a penalty too large", chat, `{` + hi + `,"presence_penalty":3}`, 400, "presence_penalty has to be between -2 and 2, not 3", "presence_penalty", ""},
		{"a stop of number", chat, `{` + hi + `,"stop":[1]}`, 400, "stop has to be a string or a list of strings", "stop", ""},
		{"an empty stop", chat, `{` + hi + `,"stop":["a",""]}`, 400, "stop has to have no empty string", "stop", ""},
		{"too many stops", chat, `{` + hi + `,"stop":[` + strings.Repeat(`"a",`, 16) + `"a"]}`, 400, "stop has to have at most 16 strings", "stop", ""},
		{"top_logprobs alone", chat, `{` + hi + `,"top_logprobs":2}`, 400, "top_logprobs needs logprobs to be true", "top_logprobs", ""},
		{"too many top_logprobs", chat, `{` + hi + `,"logprobs":true,"top_logprobs":21}`, 400, "top_logprobs has to be between 0 and 20, not 21", "top_logprobs", ""},
		{"stream of text", chat, `{` + hi + `,"stream":"yes"}`, 400, "stream has to be true or false", "stream", ""},
		{"stream options of a list", chat, `{` + hi + `,"stream_options":[]}`, 400, "stream_options has to be a JSON object", "stream_options", ""},
		{"thinking of text", chat, `{` + hi + `,"chat_template_kwargs":{"enable_thinking":"no"}}`, 400, "chat_template_kwargs.enable_thinking has to be true or false", "chat_template_kwargs.enable_thinking", ""},
		{"deep nesting", chat, `{"messages":` + deep + `}`, 400, "messages[0] has to be a JSON object", "messages[0]", ""},
		{"a prompt too long", chat, `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 58) + `"}]}`, 400, "the prompt has 64 tokens, and with at least one generated token the model's context holds 64", "", "context_length_exceeded"},

		{"more bytes than tokens can have", chat, `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 59) + `"}]}`, 400, "the prompt has 65 bytes, and the model's context holds 64 tokens of at most 1 bytes", "", "context_length_exceeded"},
		{"a number of a hundred digits", chat, `{` + hi + `,"max_tokens":1e99}`, 400, "max_tokens has to be at most 2147483647, not 1e+99", "max_tokens", ""},

		{"no prompt", text, `{}`, 400, "prompt is missing", "prompt", ""},
		{"an empty prompt", text, `{"prompt":""}`, 400, "the prompt is empty", "", ""},
		{"two prompts", text, `{"prompt":["a","b"]}`, 400, "prompt has to be one prompt; send others in requests of their own", "prompt", ""},
		{"a prompt of a number", text, `{"prompt":5}`, 400, "prompt has to be a string or a list of token ids", "prompt", ""},
		{"an unknown token", text, `{"prompt":[1,256]}`, 400, "prompt has id 256 at place 1; ids are 0 to 255", "prompt", ""},
		{"echo", text, `{"prompt":"a","echo":true}`, 400, "echo is not offered: the answer never repeats the prompt", "echo", ""},
		{"best of two", text, `{"prompt":"a","best_of":2}`, 400, "best_of has to be 1", "best_of", ""},
		{"a text prompt too long", text, `{"prompt":"` + strings.Repeat("x", 64) + `"}`, 400, "the prompt has 64 tokens, and with at least one generated token the model's context holds 64", "", "context_length_exceeded"},

		{"a text prompt of more bytes than tokens can have", text, `{"prompt":"` + strings.Repeat("x", 65) + `"}`, 400, "the prompt has 65 bytes, and the model's context holds 64 tokens of at most 1 bytes", "", "context_length_exceeded"},

		{"no context", draft, `{}`, 400, "tokens is missing: the context's token ids", "tokens", ""},
		{"an empty context", draft, `{"input_ids":[]}`, 400, "input_ids has to have at least one token id", "input_ids", ""},
		{"a context of text", draft, `{"prompt":"abc"}`, 400, "prompt has to be a list of token ids", "prompt", ""},
		{"a context with null", draft, `{"tokens":[1,null]}`, 400, "tokens has to be a list of token ids", "tokens", ""},
		{"a negative token", draft, `{"tokens":[-1]}`, 400, "tokens has id -1 at place 0; ids are 0 to 255", "tokens", ""},
		{"a negative token that would be cut off", draft, `{"tokens":[-7` + strings.Repeat(",1", 500) + `]}`, 400, "tokens has id -7 at place 0; ids are 0 to 255", "tokens", ""},
		{"an unknown token under another name", draft, `{"input_ids":[1,2,999]}`, 400, "input_ids has id 999 at place 2; ids are 0 to 255", "input_ids", ""},
		{"no draft", draft, `{"tokens":[1],"n":0}`, 400, "n has to be between 1 and 63, not 0", "n", ""},

		{"no such path", "/v1/chat", ``, 404, "there is no /v1/chat here", "", "not_found"},
		{"wrong method", "/health", ``, 405, "/health takes GET, not POST", "", "method_not_allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, server := serve(t, answering("yes"), engine.Config{}, false)
			status, header, body := send(t, server, "POST", tc.path, tc.body)
			want := fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":%s,"code":%s}}`+"\n",
				encode(tc.message), quoted(tc.param), quoted(tc.code))
			if status != tc.status || body != want {
				t.Errorf("status %d, want %d\n got %s\nwant %s", status, tc.status, body, want)
			}
			if header.Get("Content-Type") != "application/json" {
				t.Errorf("content type %s", header.Get("Content-Type"))
			}
			if status, _, body := send(t, server, "POST", chat, `{`+hi+`}`); status != 200 {
				t.Errorf("the next request: %d %s", status, body)
			}
		})
	}
}

func quoted(text string) string {
	if text == "" {
		return "null"
	}
	return string(encode(text))
}

func TestWrongMethod(t *testing.T) {
	_, server := serve(t, answering("yes"), engine.Config{}, false)
	status, header, body := send(t, server, "GET", "/draft", "")
	if status != 405 || header.Get("Allow") != "POST" {
		t.Errorf("status %d, allow %q, %s", status, header.Get("Allow"), body)
	}
	if status, _, body := send(t, server, "HEAD", "/health", ""); status != 200 || body != "" {
		t.Errorf("HEAD: status %d, %s", status, body)
	}
}

// A template that panics costs its request and nothing else.
func TestPanicIsAnswered(t *testing.T) {
	s, server := serve(t, answering("yes"), engine.Config{}, false)
	var lines []string
	s.config.Log = func(line string) { lines = append(lines, line) }
	broken := *s.model.Load()
	broken.Prompt = func(Chat) (string, error) { panic("template") }
	s.Ready(&broken)
	status, _, body := send(t, server, "POST", "/v1/chat/completions", `{`+hi+`}`)
	if want := `{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}` + "\n"; status != 500 || body != want {
		t.Errorf("status %d, %s", status, body)
	}
	if len(lines) != 1 || strings.Contains(lines[0], "\n") || !strings.Contains(lines[0], "panic in a request: template") {
		t.Errorf("log: %q", lines)
	}
	if status, _, _ := send(t, server, "POST", "/draft", `{"tokens":[1,2,3,4,5,6,7,8],"n":1}`); status != 200 {
		t.Errorf("the next request: %d", status)
	}
}

// Whatever a client sends, reading it neither panics nor lets through what the
// engine cannot take.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{` + hi + `}`, `{"prompt":"a","stop":["b"],"logprobs":3}`, `{"prompt":[[1,2]],"n":1}`, `{"tokens":[1,2],"n":4}`,
		`{"messages":[{"role":"assistant","content":null,"tool_calls":[{}]},{"role":"tool","content":[{"type":"text","text":"x"}],"tool_call_id":"1"}],"tools":[{}]}`,
		`{` + hi + `,"seed":18446744073709551615,"top_p":0,"top_k":-1,"min_p":0.1,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[],"max_tokens":1e300}`, `{"messages":[null]}`, `[1`, `{"prompt":[null]}`,
	} {
		f.Add(seed)
	}
	e := engine.New(engine.Config{}, &enginetest.Stepper{Shape: model.Limits{Slots: 1, Context: 64, Prefill: 16}})
	f.Cleanup(func() { e.Drain(context.Background()) })
	m := &Model{
		Engine: e, Encode: enginetest.IDs, LongestText: 1, Prompt: testPrompt,
		NewDecoder: func() engine.Decoder { return &enginetest.Bytes{} },
		Token:      func(id int32) string { return string([]byte{byte(id)}) },
		Thinking:   &engine.Thinking{Begin: '<', End: '>', Close: enginetest.IDs(">")},
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, read := range []func(*Model, *fields) (engine.Request, parameters, *Error){readChatRequest, readTextRequest} {
			fields := parseFields("", []byte(body))
			if fields.err != nil {
				checkError(t, fields.err)
				continue
			}
			request, p, err := read(m, fields)
			if err != nil {
				checkError(t, err)
				continue
			}
			s := request.Sampling
			if request.MaxTokens < 0 || s.Temperature < 0 || s.TopP < 0 || s.TopP > 1 || s.TopK < 0 || s.TopLogprobs > maxTop || len(p.stop) > maxStops {
				t.Errorf("%q became %+v", body, request)
			}
		}
		if fields := parseFields("", []byte(body)); fields.err == nil {
			if ids := readContext(fields, 256); fields.err == nil && len(ids) == 0 {
				t.Errorf("%q became an empty context", body)
			}
		}
	})
}

func TestLostDeviceIsUnavailable(t *testing.T) {
	if err := engineError(engine.ErrLost); err.Status != 503 || err.Code != "device_lost" || err.RetryAfter == 0 {
		t.Errorf("%+v", err)
	}
}

func checkError(t *testing.T, err *Error) {
	t.Helper()
	if err.Status != 400 || err.Message == "" || err.Type != typeInvalid {
		t.Errorf("%+v", err)
	}
}
