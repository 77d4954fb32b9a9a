package script

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway/verify/script/shell"
)

// defaultAddresses are where known servers listen that are told nothing, and the
// variables and files by which they may be told all the same. Source: their
// documentation.
var defaultAddresses = map[string]struct {
	host, port string
	told       []string // variables, and files of the folder
}{
	"vllm":                     {"0.0.0.0", "8000", nil},
	"sglang":                   {"127.0.0.1", "30000", nil},
	"llama-server":             {"127.0.0.1", "", []string{"LLAMA_ARG_HOST", "LLAMA_ARG_PORT"}},
	"text-generation-launcher": {"0.0.0.0", "3000", []string{"PORT", "HOSTNAME"}},
	"uvicorn":                  {"127.0.0.1", "8000", []string{"UVICORN_HOST", "UVICORN_PORT"}},
	"gunicorn":                 {"127.0.0.1", "8000", []string{"PORT", "GUNICORN_CMD_ARGS", "gunicorn.conf.py"}},
	"hypercorn":                {"127.0.0.1", "8000", nil},
	"lmdeploy":                 {"0.0.0.0", "23333", nil},
	"trtllm-serve":             {"localhost", "8000", nil},
	"ollama":                   {"127.0.0.1", "11434", nil},
}

// address is where a command says that it listens; "" for what it does not say.
type address struct{ host, port string }

// addressOf reads the options of a server: --host, --hostname and --port, or
// --bind HOST:PORT. said is false where a file, a socket or a variable may say it.
func addressOf(server string, options map[string]string) (at address, said bool) {
	at = address{host: options["--host"], port: options["--port"]}
	switch server {
	case "lmdeploy":
		at = address{options["--server-name"], options["--server-port"]}
	case "text-generation-launcher":
		at.host = options["--hostname"]
		if at.port == "" {
			at.port = options["-p"]
		}
	case "gunicorn", "hypercorn":
		bind, short := options["--bind"], options["-b"]
		if bind = strings.TrimSpace(bind + " " + short); bind != "" {
			colon := strings.LastIndexByte(bind, ':')
			if colon < 0 || strings.Contains(bind, " ") || strings.HasPrefix(bind, "unix:") || strings.HasPrefix(bind, "fd:") {
				return at, false
			}
			if at = (address{bind[:colon], bind[colon+1:]}); at.host == "" {
				at.host = "0.0.0.0" // gunicorn's and hypercorn's :PORT
			}
		}
	}
	for _, option := range []string{"--config", "-c", "--uds", "--fd", "--env-file", "--grpc-mode"} {
		if _, given := options[option]; given && server != "llama-server" {
			return at, false
		}
	}
	return at, true
}

// checkAddress looks at where the server listens.
func (a *analysis) checkAddress() {
	st := a.server
	if st == nil || a.options.Port == 0 && len(st.Argv) == 0 {
		return
	}
	a.checkListening()
	server, args := serverOf(st.Argv)
	if server == "" {
		args = st.Argv[1:]
	}
	at, said := addressOf(server, optionMap(args))
	got := address{"--host " + at.host, "--port " + at.port}
	host, port := "say --host 0.0.0.0", fmt.Sprintf("say --port %d", a.options.Port)
	switch server {
	case "lmdeploy":
		host, port = "say --server-name 0.0.0.0", fmt.Sprintf("say --server-port %d", a.options.Port)
	case "ollama":
		at = ofOllama(st.Variables["OLLAMA_HOST"])
		got = address{"OLLAMA_HOST=" + st.Variables["OLLAMA_HOST"], "OLLAMA_HOST=" + st.Variables["OLLAMA_HOST"]}
		host = fmt.Sprintf("export OLLAMA_HOST=0.0.0.0:%d", a.options.Port)
		port = host
	}
	if d, known := defaultAddresses[server]; known && said && !a.told(st, d.told) {
		if at.host == "" {
			at.host, got.host = d.host, "none, which is "+d.host
		}
		if at.port == "" {
			at.port, got.port = d.port, "none, which is "+d.port
		}
	}
	a.judgeAddress(shell.Finding{Check: "C21", Path: st.Path, Line: st.Line}, at, got, address{host, port})
}

// judgeAddress holds an address against where the grader asks: f, with how the
// address was said and how it should be. A wrong host only warns.
func (a *analysis) judgeAddress(f shell.Finding, at, said, hint address) {
	if a.options.Port != 0 && isNumber(at.port) && at.port != fmt.Sprint(a.options.Port) {
		f.Problem, f.Want, f.Got, f.Hint = "the server listens on another port than the grader asks", fmt.Sprintf("port %d", a.options.Port), shell.Shown(said.port), hint.port
		a.add(f)
	}
	if at.host == "127.0.0.1" || at.host == "localhost" {
		f.Warning = true
		f.Problem, f.Want, f.Got, f.Hint = "the server listens on the loopback address alone: a grader outside its container cannot reach it", "0.0.0.0", said.host, hint.host
		a.add(f)
	}
}

// ofOllama is the address that OLLAMA_HOST gives: HOST, HOST:PORT or a URL of both.
func ofOllama(value string) (at address) {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		value = rest
	}
	value, _, _ = strings.Cut(value, "/")
	at.host, at.port, _ = strings.Cut(value, ":")
	return at
}

// told reports whether one of some variables is set, or one of some files there.
func (a *analysis) told(st *shell.Step, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		n, _ := a.main.Tree.Get(path.Join(st.Folder, name))
		return st.Variables[name] != "" || n != nil && strings.Contains(name, ".")
	})
}
