package cli

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// answers PORT is a server for scripts, of a serve.sh that decides the port
// itself: it answers every question with the same word, and its ids, and drafts the
// same three ids. With a second argument it is never healthy.
func answers() int {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if len(os.Args) > 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"prompt_token_ids":[1,2],"choices":[{"message":{"content":"red"},"finish_reason":"stop","token_ids":[5],"logprobs":{"content":[{"token_id":5,"logprob":-0.5,"top_logprobs":[{"token_id":5,"logprob":-0.5}]}]}}]}`)
	})
	mux.HandleFunc("POST /draft", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"draft":[5,6,7]}`) })
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Args[1], mux))
	return 1
}

// freePort VARIABLE sets it to a port that nobody listens on.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	ts.Check(listener.Close())
}
