package script

import "testing"

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
		fault("llama-server -m weights/model.safetensors --port 8000", "loopback", true),
	})
	for _, line := range []string{
		"vllm serve weights --enforce-eager",
		"python3 -m sglang.launch_server --model-path weights --port 8000 --host 0.0.0.0",
		"text-generation-launcher --model-id weights -p 8000",
		"uvicorn server:app --host 0.0.0.0",
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
