package script

import "testing"

// Where the served Python itself says that it listens, each beside a twin.
func TestListeningFaults(t *testing.T) {
	const loopback, port = "loopback", "another port"
	fault := func(lines, says string) vector {
		return vector{name: lines, folder: server(lines), check: "C21", says: says, warning: true}
	}
	runVectors(t, []vector{
		fault("import uvicorn\nuvicorn.run(app, port=args.port)\n", loopback),
		fault("import uvicorn\nHOST = 'localhost'\nuvicorn.run(app, host=HOST)\n", loopback),
		fault("import uvicorn\nc = uvicorn.Config(app, host='0.0.0.0', port=8080)\n", port),
		fault("import uvicorn, os\nuvicorn.run(app, host=os.environ.get('HOST', '127.0.0.1'))\n", loopback),
		fault("import uvicorn, os\nuvicorn.run(app, host='0.0.0.0', port=int(os.getenv('PORT', '8080')))\n", port),
		fault("from flask import Flask\napp = Flask(__name__)\napp.run('0.0.0.0')\n", port),
		fault("from flask import Flask\napp = Flask(__name__)\napp.run(port=8000)\n", loopback),
		fault("from aiohttp import web\nweb.run_app(app)\n", port),
		fault("from http.server import HTTPServer\nHTTPServer(('127.0.0.1', 8000), H).serve_forever()\n", loopback),
		fault("from http.server import HTTPServer\nHTTPServer(('', 8080), H).serve_forever()\n", port),
		fault("from http.server import HTTPServer\nparser.add_argument('--bind', default='127.0.0.1')\nHTTPServer((args.bind, args.port), H)\n", loopback),
		fault("class Server(ThreadingHTTPServer): pass\nparser.add_argument('--bind-host', default='127.0.0.1')\ns = Server((args.bind_host, args.port), H)\n", loopback),
		fault("s = make_server('localhost', 8000, app)\n", loopback),
	})
	environment := altered("exec python3", "export HOST=0.0.0.0\nexec python3").with("server.py", serverSource+"import os, uvicorn\nuvicorn.run(app, host=os.environ.get('HOST', '127.0.0.1'))\n")
	told := altered("--port 8000", "--bind 0.0.0.0").with("server.py", serverSource+"import uvicorn\nparser.add_argument('--bind', default='127.0.0.1')\nuvicorn.run(app, host=args.bind)\n")
	runClean(t, map[string]folder{
		"environment": environment, "option": told,
		"default":    server("import uvicorn\nuvicorn.run(app, host=args.host, port=args.port)\n"),
		"all":        server("from http.server import ThreadingHTTPServer\nThreadingHTTPServer(('', 8000), H)\n"),
		"socket":     server("import uvicorn\nuvicorn.run(app, fd=3)\n"),
		"settings":   server("import uvicorn\nuvicorn.run(app, **settings)\n"),
		"not Flask":  server("app.run()\n"),
		"computed":   server("from http.server import HTTPServer\nHTTPServer(address, H)\n"),
		"subprocess": server("import subprocess\nsubprocess.run(['true'])\n"),
	})
}

// Where servers listen, said and not said.
func TestAddressFaults(t *testing.T) {
	way := func(line string) folder {
		return altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec "+line)
	}
	fault := func(line, says string, warning bool) vector {
		return vector{name: line, folder: way(line), check: "C21", line: 9, says: says, warning: warning}
	}
	runVectors(t, []vector{
		fault("python3 -m sglang.launch_server --model-path weights --host 0.0.0.0", "another port", false),
		fault("python3 -m sglang.launch_server --model-path weights --port 8000", "loopback", true),
		fault("vllm serve weights --enforce-eager --port 8080", "another port", false),
		fault("text-generation-launcher --model-id weights", "another port", false),
		fault("uvicorn server:app", "loopback", true),
		fault("gunicorn server:app -b 127.0.0.1:8000", "loopback", true),
		fault("gunicorn server:app --bind=0.0.0.0:9000", "another port", false),
		fault("hypercorn server:app -b 0.0.0.0:9000", "another port", false),
		fault("lmdeploy serve api_server weights", "another port", false),
		fault("trtllm-serve weights", "loopback", true),
		fault("ollama serve", "another port", false),
		fault("env OLLAMA_HOST=127.0.0.1:8000 ollama serve", "loopback", true),
		fault("env OLLAMA_HOST=0.0.0.0 ollama serve", "another port", false),
		fault("llama-server -m weights/model.safetensors --port 8000", "loopback", true),
	})
	for _, line := range []string{
		"vllm serve weights --enforce-eager",
		"python3 -m sglang.launch_server --model-path weights --port 8000 --host 0.0.0.0",
		"text-generation-launcher --model-id weights -p 8000",
		"uvicorn server:app --host 0.0.0.0",
		"lmdeploy serve api_server weights --server-port 8000", "trtllm-serve weights --host 0.0.0.0", "env OLLAMA_HOST=http://0.0.0.0:8000 ollama serve",
		"env UVICORN_HOST=0.0.0.0 uvicorn server:app",
		"gunicorn server:app -b :8000", "gunicorn server:app -b unix:/tmp/s", "gunicorn server:app -c settings.py",
		"hypercorn server:app --bind 0.0.0.0:8000",
		"llama-server -m weights/model.safetensors --port 8000 --host 0.0.0.0 -c 4096",
	} {
		for _, f := range Analyse(way(line).submission(), graderOptions()).Findings {
			if f.Check == "C21" && f.Problem != "" && (f.Want == "0.0.0.0" || f.Want == "port 8000") {
				t.Errorf("%s: %+v", line, f)
			}
		}
	}
}
