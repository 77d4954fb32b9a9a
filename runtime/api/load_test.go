package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/runtime/engine"
	"slipway/runtime/engine/enginetest"
	"slipway/runtime/model"
)

func TestBeforeReady(t *testing.T) {
	s := New(Config{Model: "abacus"})
	server := httptest.NewServer(s)
	defer server.Close()
	s.Progress("reading weights", 3, 10)
	for path, want := range map[string]string{
		"/health":    `503 {"status":"loading","stage":"reading weights","done":3,"total":10}`,
		"/v1/models": `200 {"object":"list","data":[{"id":"abacus","object":"model","created":0,"owned_by":"slipway"}]}`,
		"/metrics":   "200 # HELP slipway_ready 1 once the model serves.\n# TYPE slipway_ready gauge\nslipway_ready 0",
	} {
		status, _, body := send(t, server, "GET", path, "")
		if got := strings.TrimSpace(fmt.Sprintf("%d %s", status, body)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	const want = `{"error":{"message":"the model is still being loaded; GET /health says how far","type":"server_error","param":null,"code":"loading"}}` + "\n"
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/draft"} {
		status, header, body := send(t, server, "POST", path, `{}`)
		if status != 503 || header.Get("Retry-After") != "5" || body != want {
			t.Errorf("%s: %d, retry after %q, %s", path, status, header.Get("Retry-After"), body)
		}
	}
}

func TestHealth(t *testing.T) {
	stepper := answering("yes")
	stepper.Fault = func(step int) error {
		if step < 3 {
			return fmt.Errorf("broken")
		}
		return nil
	}
	s, server := serve(t, stepper, engine.Config{}, false)
	check := func(status int, want string) {
		t.Helper()
		if got, _, body := send(t, server, "GET", "/health", ""); got != status || body != want+"\n" {
			t.Errorf("%d %s, want %d %s", got, body, status, want)
		}
	}
	check(200, `{"status":"ok"}`)
	for range 3 {
		send(t, server, "POST", "/draft", `{"tokens":[1,2,3,4,5,6,7,8]}`)
	}
	check(503, `{"status":"failing","message":"the last 3 steps failed"}`)
	send(t, server, "POST", "/draft", `{"tokens":[1,2,3,4,5,6,7,8]}`)
	check(200, `{"status":"ok"}`)
	if _, _, body := send(t, server, "GET", "/v1/models", ""); !strings.Contains(body, `"max_model_len":64`) {
		t.Errorf("models: %s", body)
	}
	s.Stop()
	check(503, `{"status":"stopping"}`)
}

func TestMetrics(t *testing.T) {
	_, server := serve(t, answering("yes"), engine.Config{}, false)
	send(t, server, "POST", "/v1/chat/completions", `{`+hi+`}`)
	_, header, body := send(t, server, "GET", "/metrics", "")
	if !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("content type %s", header.Get("Content-Type"))
	}
	for _, want := range []string{
		`slipway_requests_total{end="stop"} 1`, "slipway_prompt_tokens_total 8", "slipway_generated_tokens_total 4",
		"slipway_requests_waiting 0", "slipway_slots 4", "slipway_ready 1", "slipway_steps_failed_total 0",
		`slipway_step_seconds_bucket{le="+Inf"} 4`, "slipway_step_seconds_count 4", "# TYPE slipway_step_seconds histogram",
	} {
		if !slices.Contains(strings.Split(body, "\n"), want) {
			t.Errorf("no line %q in\n%s", want, body)
		}
	}
}

func TestQueueFull(t *testing.T) {
	stepper := &enginetest.Stepper{Shape: model.Limits{Slots: 1, Context: 64, Prefill: 16}, Gate: make(chan struct{})}
	_, server := serve(t, stepper, engine.Config{Queue: 1}, false)
	answers := make(chan int, 2)
	draft := func() {
		status, _, _ := send(t, server, "POST", "/draft", `{"tokens":[1],"n":1}`)
		answers <- status
	}
	go draft()
	stepper.Gate <- struct{}{} // one step: the first is answered
	if status := <-answers; status != 200 {
		t.Fatalf("the first: %d", status)
	}
	go draft()
	go draft()
	waitFor(t, server, "slipway_requests_waiting 1")
	status, header, body := send(t, server, "POST", "/draft", `{"tokens":[1],"n":1}`)
	const want = `{"error":{"message":"too many requests are waiting; try again","type":"rate_limit_error","param":null,"code":"queue_full"}}` + "\n"
	if status != 429 || header.Get("Retry-After") != "1" || body != want {
		t.Errorf("one too many: %d, retry after %q, %s", status, header.Get("Retry-After"), body)
	}
	close(stepper.Gate)
	for range 2 {
		if status := <-answers; status != 200 {
			t.Errorf("accepted before: %d", status)
		}
	}
}

// waitFor polls /metrics until it has a line.
func waitFor(t *testing.T, server *httptest.Server, line string) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, _, body := send(t, server, "GET", "/metrics", ""); slices.Contains(strings.Split(body, "\n"), line) {
			return
		}
	}
}

func TestDisconnectFreesTheSlot(t *testing.T) {
	for _, body := range []string{`{"prompt":"a","max_tokens":1000000,"ignore_eos":true}`, `{"prompt":"a","max_tokens":1000000,"ignore_eos":true,"stream":true}`} {
		stepper := &enginetest.Stepper{Shape: model.Limits{Slots: 1, Context: 1 << 21, Prefill: 16}, Gate: make(chan struct{})}
		s, server := serve(t, stepper, engine.Config{}, false)
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() {
			response, err := server.Client().Do(request)
			if err == nil {
				response.Body.Close()
			}
			gone <- err
		}()
		stepper.Gate <- struct{}{}
		stepper.Gate <- struct{}{}
		cancel()
		<-gone
		// The slot is freed between steps, so steps go on until it is.
		for s.model.Load().Engine.Metrics().Finished["cancelled"] == 0 && t.Context().Err() == nil {
			select {
			case stepper.Gate <- struct{}{}:
			default:
				runtime.Gosched()
			}
		}
		if m := s.model.Load().Engine.Metrics(); m.Finished["cancelled"] != 1 || m.GeneratedTokens >= 1000000 {
			t.Errorf("%s: %+v", body, m)
		}
		close(stepper.Gate)
	}
}

// Thirty-two clients at a time get what each would get alone.
func TestConcurrency(t *testing.T) {
	_, server := serve(t, &enginetest.Stepper{Shape: model.Limits{Slots: 8, Context: 128, Prefill: 16}}, engine.Config{}, false)
	ask := func(i int) string {
		stream := i%2 == 1
		status, _, body := send(t, server, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":[%d,1,2,3],"max_tokens":%d,"ignore_eos":true,"stream":%v}`, i, 10+i, stream))
		if status != 200 {
			t.Errorf("request %d: %d %s", i, status, body)
		}
		return body
	}
	const requests = 32
	var alone, together [requests]string
	for i := range requests {
		alone[i] = content(t, ask(i))
	}
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() { together[i] = content(t, ask(i)) })
	}
	group.Wait()
	if alone != together {
		t.Errorf("alone %q\ntogether %q", alone, together)
	}
	if alone[0] == alone[2] {
		t.Error("different prompts have the same answer: the test cannot tell them apart")
	}
}

// content joins the texts of an answer; how a stream is cut is not compared.
func content(t *testing.T, body string) string {
	t.Helper()
	var joined strings.Builder
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if line == "" || line == "[DONE]" {
			continue
		}
		choices := parseFields("", []byte(line)).list("choices")
		for _, choice := range choices {
			joined.WriteString(parseFields("", choice).text("text"))
		}
	}
	return joined.String()
}
