package script

import (
	"strings"
	"testing"
)

// Command lines of well-known servers, whose versions nobody knows: what is
// doubtful is a warning and names what is meant.
func TestOptionsOfKnownServers(t *testing.T) {
	const plain = "exec python3 server.py --port 8000 --weights weights"
	for _, v := range []struct {
		line string
		says string // of the one warning; "" for none
		hint string
	}{
		{"vllm serve weights --enforce-eager --port 8000 -tp 1 --served-model-name a b --no-enable-prefix-caching --max_model_len=4096 -O0", "", ""},
		{"vllm serve weights --enforce-eager --compilation-config '{\"mode\": 3}' --hf-overrides.a.b 1 --speculative-config '{}'", "", ""},
		{"vllm serve weights --enforce-eager --tensor-par 1", "", ""},
		{"vllm serve weights --enforce-eager --max-modle-len 4096", "the option --max-modle-len", "--max-model-len"},
		{"vllm serve weights --enforce-eager --enable-prefix-cache", "the option --enable-prefix-cache", "--enable-prefix-caching"},
		{"vllm serve weights --enforce-eager=true", "--enforce-eager takes no value", ""},
		{"vllm serve weights --enforce-eager --port", "--port lacks its value", ""},
		{"vllm serve weights --enforce-eager --no-max-model-len 1", "the option --no-max-model-len", ""},
		{"python3 -m vllm.entrypoints.openai.api_server --model weights --enforce-eager --mem-fraction-static 0.8", "--mem-fraction-static", ""},
		{"python3 -m sglang.launch_server --model-path weights --tp 1 --mem-fraction-static 0.8 --cuda-graph-bs 1 2 4 --disable-radix-cache --host 0.0.0.0 --port 8000", "", ""},
		{"python3 -m sglang.launch_server --model weights --gpu-memory-utilization 0.9", "--gpu-memory-utilization", ""},
		{"python3 -m sglang.launch_server --model-path weights --disable-radix-cahce", "--disable-radix-cahce", "--disable-radix-cache"},
		{"python3 -m sglang.launch_server --model_path weights", "--model_path", "--model-path"},
		{"sglang serve --model-path weights --attention-backend triton", "", ""},
		{"llama-server -m weights/model.gguf -ngl 99 -c 4096 --host 0.0.0.0 --port 8000 --no-mmap -fa on --jinja -np 16 --no-webui", "", ""},
		{"llama-server --model weights/model.gguf -fa --ctx_size 4096", "", ""},
		{"llama-server --model weights/model.gguf --n-gpu-layer 99", "--n-gpu-layer", "--n-gpu-layers"},
		{"text-generation-launcher --model-id weights --num-shard 1 -p 8000 --max-total-tokens 4096", "", ""},
		{"text-generation-launcher --model-id weights --max-model-len 1", "--max-model-len", ""},
		{"lmdeploy serve api_server weights --server-name 0.0.0.0 --server-port 8000 --tp 1 --cache_max_entry_count 0.5 --api-keys a b --backend pytorch", "", ""},
		{"lmdeploy serve api_server weights --port 8000", "--port", "--server-port"},
		{"python3 -m lmdeploy serve api_server weights --max-batch 16", "", ""},
		{"trtllm-serve weights --host 0.0.0.0 --max_batch_size 16 --backend pytorch --tp_size 1 --trust_remote_code", "", ""},
		{"trtllm-serve serve weights --host 0.0.0.0 --max-batch-size 16", "--max-batch-size", "--max_batch_size"},
		{"ollama serve", "", ""},
		{"ollama serve --host 0.0.0.0", "--host", ""},
		{"uvicorn server:app --host 0.0.0.0 --port 8000 --no-access-log --workers 1", "", ""},
		{"uvicorn server:app --timeout 5", "--timeout", ""},
		{"gunicorn server:app -w 1 -k uvicorn.workers.UvicornWorker -b 0.0.0.0:8000 --timeout 300 --graceful-timeout=10", "", ""},
		{"gunicorn server:app --host 0.0.0.0", "--host", ""},
		{"hypercorn server:app --bind 0.0.0.0:8000 --workers 1", "", ""},
		{"hypercorn server:app --port 8000", "--port", ""},
	} {
		t.Run(v.line, func(t *testing.T) {
			f := altered(plain, "export XDG_CACHE_HOME=/tmp/c\nexec "+v.line).with("weights/model.gguf", "size 1000")
			a := Analyse(f.submission(), graderOptions())
			var found []string
			for _, f := range a.Findings {
				if f.Check == "C19" && !f.Warning {
					t.Errorf("an error, where no version is known: %+v", f)
				}
				if f.Check == "C19" {
					found = append(found, f.Problem+" "+f.Hint)
				}
			}
			if v.says == "" && len(found) > 0 || v.says != "" && (len(found) != 1 || !strings.Contains(found[0], v.says) || !strings.Contains(found[0], v.hint)) {
				t.Error(found)
			}
		})
	}
}

// An option that a release no longer has is an error, unless an earlier release
// is the one that serves.
func TestRemovedOptions(t *testing.T) {
	f := altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec vllm serve weights --enforce-eager --reasoning-parser qwen3 --enable-reasoning")
	for version, wants := range map[string]bool{"": true, "0.8.5": false, "0.9.2": false, "0.10.0": true, "0.11.0": true} {
		o := graderOptions()
		if version != "" {
			o.Image.Distributions = map[string]string{"vllm": version}
		}
		if says := strings.Contains(listed(Analyse(f.submission(), o)), "C19 error serve.sh:9: vllm has no option --enable-reasoning since its release 0.10.0"); says != wants {
			t.Errorf("vllm %s of the image: %v", version, says)
		}
		if version != "" {
			shipped := f.with("wheels/vllm-"+version+"-cp38-abi3-manylinux1_x86_64.whl", "size 1000")
			if says := strings.Contains(listed(Analyse(shipped.submission(), graderOptions())), "since its release 0.10.0"); says != wants {
				t.Errorf("vllm %s of a wheel: %v", version, says)
			}
		}
	}
}

// Every file of options is well formed, and says where it was read.
func TestFlagFiles(t *testing.T) {
	entries, err := flagFiles.ReadDir("flags")
	if err != nil || len(entries) < 10 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		data, err := flagFiles.ReadFile("flags/" + e.Name())
		if err != nil || !strings.HasPrefix(string(data), "# Options of ") || !strings.Contains(string(data), "Source") {
			t.Errorf("%s does not say what it holds and from where: %v", e.Name(), err)
		}
		flags, _ := flagsOf(strings.TrimSuffix(e.Name(), ".txt"))
		seen := map[string]bool{}
		for _, o := range flags.declared.Options {
			for _, name := range o.Names {
				if seen[name] || !o.Positional && !flagName.MatchString(strings.ReplaceAll(name, ".", "")) {
					t.Errorf("%s: %q, twice or no option", e.Name(), name)
				}
				seen[name] = true
			}
		}
		if !seen["--help"] {
			t.Errorf("%s has no --help", e.Name())
		}
	}
}

// Models that known servers would ask other machines for.
func TestModelsOfKnownServers(t *testing.T) {
	way := func(line string) folder {
		return altered("exec python3 server.py --port 8000 --weights weights", "export XDG_CACHE_HOME=/tmp/c\nexec "+line)
	}
	var vectors []vector
	for _, line := range []string{
		"llama-server --host 0.0.0.0 --port 8000 -hf ggml-org/gemma-3-1b-it-GGUF", "llama-server --host 0.0.0.0 --port 8000 --model-url=https://example.com/m.gguf",
		"text-generation-launcher -p 8000 --model-id org/name", "lmdeploy serve api_server org/name --server-port 8000", "trtllm-serve org/name --host 0.0.0.0",
		"python3 -m sglang.launch_server --host 0.0.0.0 --port 8000 --model-path org/name",
		"python3 -m sglang.launch_server --host 0.0.0.0 --port 8000 --model-path weights --speculative-draft-model-path org/draft",
	} {
		vectors = append(vectors, vector{name: line, folder: way(line), check: "C22", line: 9, says: "network"})
	}
	runVectors(t, vectors)
	for _, line := range []string{"llama-server --host 0.0.0.0 --port 8000 -m weights/model.safetensors", "text-generation-launcher -p 8000 --model-id weights"} {
		for _, f := range Analyse(way(line).submission(), graderOptions()).Findings {
			if f.Check == "C22" {
				t.Errorf("%s: %+v", line, f)
			}
		}
	}
}
