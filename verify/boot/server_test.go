//go:build unix

package boot

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slipway/verify/boot/sandbox"
)

// The test program is its own submission: serve.sh runs it again as a server,
// with the fault that BOOT_TEST_SERVER names.
func TestMain(m *testing.M) {
	sandbox.Main()
	if fault := os.Getenv("BOOT_TEST_SERVER"); fault != "" {
		if err := (&testServer{fault: strings.TrimPrefix(fault, "plain")}).serve(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// testServer answers questions with their last word, and drafts the ids that
// follow the last one. Its first polls of /health are answered 503.
type testServer struct {
	fault    string
	polls    atomic.Int32
	flight   atomic.Int32 // requests being answered
	asked    atomic.Int32
	requests sync.Map
	lost     atomic.Bool // a process that it needs
	later    bool        // it was started before, in the same home
	blank    bool        // the weights that it read are all zero
}

func (s *testServer) is(fault string) bool { return s.fault == fault }

func (s *testServer) serve() error {
	port := flag.Int("port", 8000, "")
	flag.Parse()
	fmt.Println("listening on", *port)
	if err := s.prepare(); err != nil {
		return err
	}
	host := "0.0.0.0"
	if s.is("loopback") {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(*port)))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /draft", s.draft)
	mux.HandleFunc("/elsewhere", s.elsewhere)
	return http.Serve(listener, mux)
}

// prepare is what a server does before it listens.
func (s *testServer) prepare() error {
	here := os.Getenv("SUBMISSION_DIR")
	weights := filepath.Join(here, "weights", "model.safetensors")
	switch s.fault {
	case "no weights":
		return nil
	case "outside":
		weights = "/usr/share/other.safetensors"
	case "one shard":
		weights = filepath.Join(here, "weights", "other.safetensors")
	case "network":
		connection, err := net.DialTimeout("tcp", "198.51.100.7:443", time.Second)
		if err == nil {
			_ = connection.Close()
		}
	case "names":
		_, err := net.LookupHost("huggingface.co")
		fmt.Println(err)
	case "names, and ends":
		_, err := net.LookupHost("huggingface.co")
		fmt.Println(err)
		return errors.New("Temporary failure in name resolution")
	case "a worker", "a worker it needs", "a worker it ends with":
		return s.startWorker()
	case "ignores":
		signal.Ignore(syscall.SIGTERM)
	case "child":
		child := exec.Command("/bin/sh", "-c", "trap '' TERM; exec sleep 1000")
		if err := child.Start(); err != nil {
			return err
		}
	case "daemon":
		child := exec.Command("/bin/sh", "-c", "exec sleep 1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return err
		}
	case "state":
		lock, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), "lock"), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("another server runs: %w", err)
		}
		_ = lock.Close()
	}
	if data, err := os.ReadFile(weights); err == nil {
		fmt.Println("read", len(data), "bytes of weights")
		if lock, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), "started"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = lock.Close()
		} else {
			s.later = true
		}
		s.blank = !s.is("table") && strings.HasSuffix(string(data), strings.Repeat("\x00", 8))
		if s.blank && s.is("wants weights") {
			return errors.New("the weights are all zero")
		}
	}
	return nil
}

// startWorker starts a process that the server wants or does not, and that ends
// when the server does.
func (s *testServer) startWorker() error {
	child := exec.Command("/bin/cat")
	if _, err := child.StdinPipe(); err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	go func() {
		_ = child.Wait()
		switch s.fault {
		case "a worker it needs":
			s.lost.Store(true)
		case "a worker it ends with":
			fmt.Println("the worker is gone")
			os.Exit(4)
		}
	}()
	return nil
}

func (s *testServer) health(w http.ResponseWriter, _ *http.Request) {
	polls := s.polls.Add(1)
	if polls < 3 && !s.is("loopback") || s.is("never") || s.is("sick") && s.asked.Load() > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// elsewhere answers what is not asked for here.
func (s *testServer) elsewhere(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"choices":[{"message":{"content":"B"}}]}`)
}

// company waits a little for other requests to be answered together, as batching
// servers do, and returns how many there are.
func (s *testServer) company() int32 {
	if s.is("pads") {
		for window := time.After(15 * time.Millisecond); s.flight.Load() < 2; {
			select {
			case <-window:
				return s.flight.Load()
			default:
				runtime.Gosched()
			}
		}
	}
	return s.flight.Load()
}

// seen reports whether a request was sent before.
func (s *testServer) seen(request string) bool {
	_, loaded := s.requests.LoadOrStore(request, true)
	return loaded
}

// trouble answers a request as the fault wants it, and reports whether it did.
func (s *testServer) trouble(w http.ResponseWriter, request string) bool {
	asked := s.asked.Add(1)
	if s.is("tells") {
		fmt.Println("answering", asked)
	}
	switch {
	case s.is("500") || s.is("500 later") && asked > firstRequests:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "Internal Server Error")
	case s.is("second try") && !s.seen(request):
		w.WriteHeader(http.StatusInternalServerError)
	case s.is("dies") || s.is("dies later") && asked > firstRequests:
		fmt.Println("EngineCore encountered an issue")
		os.Exit(3)
	case s.lost.Load():
		w.WriteHeader(http.StatusInternalServerError)
	case s.is("traceback"):
		fmt.Println("Traceback (most recent call last):\n  File \"server.py\", line 9, in answer\nTypeError: unhashable type: 'list'")
		w.WriteHeader(http.StatusInternalServerError)
	case s.is("no path"):
		http.NotFound(w, nil)
	case s.is("thinks aside"):
		fmt.Fprint(w, `{"choices":[{"message":{"content":"","reasoning_content":"Let me see."},"finish_reason":"stop"}]}`)
	case s.is("null"):
		fmt.Fprint(w, `{"choices":[{"message":{"content":null}}]}`)
	case s.is("endless"):
		for _, err := fmt.Fprint(w, `{"choices":[{}`); err == nil; {
			_, err = fmt.Fprint(w, strings.Repeat(",{}", 1<<10))
		}
	case s.is("asks elsewhere"):
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	case s.is("fewer than none"):
		fmt.Fprint(w, `{"choices":[{"message":{"content":"B"}}],"usage":{"completion_tokens":-5}}`)
	case s.is("no JSON"):
		fmt.Fprint(w, "<html>")
	default:
		return false
	}
	return true
}

func (s *testServer) chat(w http.ResponseWriter, r *http.Request) {
	flight := s.flight.Add(1)
	defer s.flight.Add(-1)
	var in struct {
		Messages []struct{ Content json.RawMessage }
	}
	if s.refuses(w, r) {
		return
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Messages) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text, colour := readContent(in.Messages[0].Content)
	words := strings.Fields(text)
	if words[0] == "fail" {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "out of\x1b[31m luck")
		return
	}
	if s.trouble(w, text) {
		return
	}
	flight = max(flight, s.company())
	answer, finish := words[len(words)-1], "stop"
	if text == colourQuestion && !s.is("blind") {
		answer = colour
	}
	switch {
	case s.blank || s.later && s.is("forgets"):
		answer = "A"
	case s.is("guesses"):
		answer = "A"
	case s.is("random"):
		answer = "##Ġ%%" + answer
	case s.is("thinks"):
		answer, finish = "Let me see: "+answer, "length"
	case s.is("thinks silently"):
		answer, finish = "", "length"
	case s.is("pads") && flight > 1:
		answer = "Z"
	}
	tokens := 2
	if s.is("babbles") {
		tokens = 65
	}
	fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":%q,"token_ids":[5,7]}],"usage":{"completion_tokens":%d}}`, answer+"\n", finish, tokens)
}

func (s *testServer) draft(w http.ResponseWriter, r *http.Request) {
	flight := s.flight.Add(1)
	defer s.flight.Add(-1)
	var in struct {
		Tokens []int32
		N      int
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.is("few ids") && slices.Max(in.Tokens) >= 10 {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "index out of range")
		return
	}
	if s.trouble(w, fmt.Sprint(in.Tokens)) {
		return
	}
	flight = max(flight, s.company())
	draft := make([]int32, in.N)
	for i := range draft {
		draft[i] = in.Tokens[len(in.Tokens)-1] + int32(i) + 1
		if s.is("random") || s.blank || s.later && s.is("forgets") || s.is("pads") && flight > 1 {
			draft[i] += 1000
		}
	}
	if s.is("short") {
		draft = draft[1:]
	}
	data, _ := json.Marshal(map[string]any{"draft": draft})
	_, _ = w.Write(data)
}

// copyProgram puts the test program where a submission can start it.
func copyProgram(t *testing.T, target string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, target) == nil {
		return
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}
