package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"slipway/runtime/model"
)

const ternary = "../examples/abacus/ternary"

// run is the program with these arguments; it returns the exit code.
func run(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	p := &process{args: args, stdout: stdout, stderr: stderr, signals: signals}
	return p.run().code
}

// program is the runtime, running in this process.
type program struct {
	url     string // http://127.0.0.1:port
	signals chan os.Signal
	code    chan int // its exit code, once

	mutex sync.Mutex
	lines []string // of standard error
}

// launch starts the runtime on a free port and waits until it is ready. At the
// end of the test it is stopped, unless that has happened.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{signals: make(chan os.Signal, 2), code: make(chan int, 1)}
	reader, writer := io.Pipe()
	go func() {
		p.code <- run(append([]string{"--host", "127.0.0.1", "--port", "0"}, args...), io.Discard, writer, p.signals)
		close(p.code)
		writer.Close()
	}()
	ready := make(chan bool, 1)
	go func() {
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			p.mutex.Lock()
			p.lines = append(p.lines, scanner.Text())
			if address, found := strings.CutPrefix(scanner.Text(), "runtime: listening on "); found {
				p.url = "http://" + address
			}
			p.mutex.Unlock()
			if scanner.Text() == "runtime: ready" {
				ready <- true
			}
		}
		close(ready)
	}()
	if !<-ready {
		t.Fatalf("the runtime ended: %q", p.log())
	}
	t.Cleanup(func() {
		p.signals <- syscall.SIGTERM
		<-p.code
	})
	return p
}

func (p *program) log() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string(nil), p.lines...)
}

// post sends request as JSON and decodes the answer into target. It is for any
// goroutine: what goes wrong is reported, and false returned.
func (p *program) post(t *testing.T, path string, request, target any) bool {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Error(err)
		return false
	}
	response, err := http.Post(p.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return false
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s: %s, %v", path, response.Status, data, err)
		return false
	}
	if err := json.Unmarshal(data, target); err != nil {
		t.Errorf("%s: %s: %v", path, data, err)
		return false
	}
	return true
}

// endless starts a stream that runs for a good while, and returns it after its
// first event.
func (p *program) endless(t *testing.T, tokens string) *bufio.Reader {
	t.Helper()
	response, err := http.Post(p.url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"1 2 3","ignore_eos":true,"stream":true,"max_tokens":`+tokens+`}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	stream := bufio.NewReader(response.Body)
	if line, err := stream.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("%q, %v", line, err)
	}
	return stream
}

func (p *program) checkClosed(t *testing.T) {
	t.Helper()
	if connection, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://")); err == nil {
		connection.Close()
		t.Error("the port is still open")
	}
}

func TestStopFinishesRequests(t *testing.T) {
	p := launch(t, "--weights", ternary)
	stream := p.endless(t, "200")
	p.signals <- syscall.SIGTERM
	rest, err := io.ReadAll(stream)
	if err != nil || !strings.HasSuffix(string(rest), `"finish_reason":"length"}]}`+"\n\ndata: [DONE]\n\n") {
		t.Errorf("the request in flight ended with %q, %v", rest[max(0, len(rest)-200):], err)
	}
	if code := <-p.code; code != exitDone {
		t.Errorf("exit code %d: %q", code, p.log())
	}
	p.checkClosed(t)
}

func TestStopDeadline(t *testing.T) {
	p := launch(t, "--weights", ternary, "--drain", "0s")
	stream := p.endless(t, "4000")
	p.signals <- syscall.SIGTERM
	rest, err := io.ReadAll(stream)
	if err != nil || !strings.HasSuffix(string(rest), `data: {"error":{"message":"the server is stopping","type":"server_error","param":null,"code":"stopping"}}`+"\n\n") {
		t.Errorf("the request in flight ended with %q, %v", rest[max(0, len(rest)-200):], err)
	}
	if code := <-p.code; code != exitCannotRun {
		t.Errorf("exit code %d: %q", code, p.log())
	}
	p.checkClosed(t)
}

func TestSecondSignal(t *testing.T) {
	p := launch(t, "--weights", ternary, "--drain", "1h")
	p.endless(t, "4000")
	p.signals <- syscall.SIGTERM
	p.signals <- syscall.SIGTERM
	if code := <-p.code; code != exitInterrupted {
		t.Errorf("exit code %d: %q", code, p.log())
	}
	p.checkClosed(t)
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"", "--weights is missing"},
		{"--weights x --prot 5", "flag provided but not defined: -prot"},
		{"--weights x y", `unexpected argument "y"`},
		{"--weights x --port 70000", "--port has to be between 0 and 65535, not 70000"},
		{"--weights x --port http", `invalid value "http" for flag -port: parse error`},
		{"--weights x --thinking maybe", `--thinking has to be on or off, not "maybe"`},
		{"--weights x --answer-reserve -1", "--answer-reserve has to be at least 0, not -1"},
		{"--weights x --slots 0", "--slots has to be at least 1, not 0"},
		{"--weights x --context 1", "--context has to be at least 16, not 1"},
		{"--weights x --queue 0", "--queue has to be at least 1, not 0"},
		{"--weights x --device tpu", `--device has to be cpu or cuda, not "tpu"`},
		{"--weights x --device cuda --devices 0,x", `--devices has to be indexes parted by commas, such as 0 or 0,1, not "0,x"`},
		{"--weights x --device cuda --devices -1", `--devices has to be indexes parted by commas, such as 0 or 0,1, not "-1"`},
		{"--weights x --device cuda --write-selftest x", "--write-selftest computes on the CPU: leave --device out"},
		{"--weights x --devices 0", "--devices needs --device cuda"},
		{"--weights x --drain -1s", "--drain has to be at least 0s, not -1s"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(strings.Fields(tc.args), &stdout, &stderr, nil)
		first, rest, _ := strings.Cut(stderr.String(), "\n")
		if code != exitUsage || first != "runtime: "+tc.want || rest != usage {
			t.Errorf("%s: exit code %d, %q", tc.args, code, first)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--help"}, &stdout, &stderr, nil); code != exitDone || stdout.String() != usage || stderr.Len() > 0 {
		t.Errorf("--help: exit code %d, %s%s", code, &stdout, &stderr)
	}
}

func TestCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	shortContext := changed(t, ternary, "config.json", `"max_position_embeddings": 4096`, `"max_position_embeddings": 15`)
	withPipe := changed(t, ternary, "config.json", "{", "{")
	shard := filepath.Join(withPipe, "float-00001.safetensors")
	if err := errors.Join(os.Remove(shard), syscall.Mkfifo(shard, 0o644)); err != nil {
		t.Fatal(err)
	}
	moreTokens := changed(t, ternary, "tokenizer.json", `"id": 445,`, `"id": 512,`)
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "selftest.json")
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tc := range []struct {
		name string
		args []string
		want string // the last line but a hint
	}{
		{"no such folder", []string{"--weights", "nowhere"}, "nowhere"},
		{"a tokenizer with more ids than the model", []string{"--weights", moreTokens}, "checkpoint " + moreTokens + ": tokenizer.json has ids up to 512, config.json: vocab_size is 512"},
		{"a short context", []string{"--weights", shortContext}, "config.json: max_position_embeddings is 15; the server needs 16"},
		{"a pipe", []string{"--weights", withPipe}, "open " + shard + ": is not a regular file"},
		{"port in use", []string{"--weights", ternary, "--port", port}, "address already in use"},
		{"cuda", []string{"--weights", ternary, "--device", "cuda"}, "--device cuda: this program was built without CUDA"},
		{"no selftest", []string{"--weights", ternary, "--selftest", "nowhere.json"}, "open nowhere.json: no such file or directory"},
		{"no object in a selftest", []string{"--weights", ternary, "--selftest", file(`[[]]`)}, "read "},
		{"a selftest of other fields", []string{"--weights", ternary, "--selftest", file(`[{"Prompt":[1],"tokens":[1]}]`)}, `Prompt`},
		{"a selftest without tokens", []string{"--weights", ternary, "--selftest", file(`[{"prompt":[1],"tokens":[]}]`)}, "answer 0: prompt or tokens are empty"},
		{"a selftest of unknown tokens", []string{"--weights", ternary, "--selftest", file(`[{"prompt":[512],"tokens":[1]}]`)}, "answer 0: token 0 of the prompt is 512; ids are 0 to 511"},
		{"a wrong answer", []string{"--weights", ternary, "--selftest", file(`[` + known + `,` + strings.Replace(known, "24,443", "25,443", 1) + `]`)}, "answer 1: token 2 is 24, want 25"},
		{"too long an answer", []string{"--weights", ternary, "--context", "30", "--selftest", file(`[` + known + `]`)}, "answer 0: the context has room for 2 of 4 tokens"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := run(append([]string{"--host", "127.0.0.1", "--port", "0"}, tc.args...), io.Discard, &stderr, nil)
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			found := 0
			for _, line := range lines {
				if strings.Contains(line, tc.want) {
					found++
				}
				if !strings.HasPrefix(line, "runtime: ") {
					t.Errorf("line %q", line)
				}
			}
			if code != exitCannotRun || found != 1 || strings.Contains(stderr.String(), "runtime: ready") {
				t.Errorf("exit code %d, %q; want one line with %q", code, lines, tc.want)
			}
		})
	}
}

// changed is a copy of a checkpoint with other text in one of its files.
func changed(t *testing.T, folder, file, old, new string) string {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(copied, file)
	data, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s: %v", name, err)
	}
	if err := os.WriteFile(name, bytes.Replace(data, []byte(old), []byte(new), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	return copied
}

// known is a question of the abacus and the reference's answer to it.
const known = `{"prompt":[442,431,198,271,261,333,11,220,20,24,23,290,220,24,23,24,30,443,198,442,425,198,444,198,198,445,198,198],"tokens":[24,23,24,443]}`

func TestSelftest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "selftest.json")
	if err := os.WriteFile(name, []byte("["+known+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	launch(t, "--weights", ternary, "--selftest", name)
}

func TestDefaults(t *testing.T) {
	for _, tc := range []struct {
		file string
		want model.Sampling
	}{
		{`{"do_sample":false,"temperature":0.6}`, model.Sampling{}},
		{`{"temperature":0.6,"repetition_penalty":1.05}`, model.Sampling{RepetitionPenalty: 1.05}},
		{`{"do_sample":true}`, model.Sampling{Temperature: 1}},
		{`{"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.95,"min_p":0.1}`, model.Sampling{Temperature: 0.6, TopK: 20, TopP: 0.95, MinP: 0.1}},
		{"", model.Sampling{}}, // no file
	} {
		folder := t.TempDir()
		if tc.file != "" {
			if err := os.WriteFile(filepath.Join(folder, "generation_config.json"), []byte(tc.file), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := readDefaults(folder); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v", tc.file, got, err)
		}
	}
}

func TestDefaultsOutOfRange(t *testing.T) {
	for file, want := range map[string]string{
		`{"do_sample":true,"temperature":7}`:                `temperature has to be between 0 and 2, not 7`,
		`{"do_sample":true,"temperature":-1}`:               `temperature has to be between 0 and 2, not -1`,
		`{"do_sample":true,"top_p":1.5}`:                    `top_p has to be between 0 and 1, not 1.5`,
		`{"do_sample":true,"min_p":-0.1}`:                   `min_p has to be between 0 and 1, not -0.1`,
		`{"do_sample":true,"top_k":-5}`:                     `top_k has to be at least -1, not -5`,
		`{"do_sample":true,"top_k":"all"}`:                  `top_k has to be an integer`,
		`{"do_sample":"yes"}`:                               `do_sample has to be true or false`,
		`{"repetition_penalty":0}`:                          `repetition_penalty has to be between 0.01 and 100, not 0`,
		`{"repetition_penalty":1e30}`:                       `repetition_penalty has to be between 0.01 and 100, not 1e+30`,
		`{"Repetition_penalty":0,"do_sample":false}`:        ``, // no key that is known
		`{"do_sample":false,"temperature":7,"top_p":"all"}`: ``, // not read
		`[]`:           `want an object, got an array`,
		`{"do_sample"`: `ends in the middle of a value`,
	} {
		folder := t.TempDir()
		name := filepath.Join(folder, "generation_config.json")
		if err := os.WriteFile(name, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		switch got, err := readDefaults(folder); {
		case want == "" && (err != nil || got != model.Sampling{}):
			t.Errorf("%s: %+v, %v", file, got, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "read "+name+": "+want)):
			t.Errorf("%s: got %v, want %s", file, err, want)
		}
	}
}
