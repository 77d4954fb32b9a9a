package texts

import (
	"fmt"
	"strings"
	"testing"
)

// fake assembles a made-up secret at run time, so that no search finds one in
// this file.
func fake(parts ...string) string { return strings.Join(parts, "") }

const letters = "QmVjYXVzZU5vT25lUmVhZHNUaGlzMTIzNDU2Nzg5MGFiY2Q"

func TestSecretsAreFound(t *testing.T) {
	mixed := "T3BlbkFJa2V5Rm9yVGVzdHMwMTIz"
	for _, test := range []struct{ path, text, want string }{
		{"code/a.py", `TOKEN = "` + fake("hf", "_", letters[:34]) + `"`, "1 a Hugging Face token"},
		{"a.log", "x\nusing " + fake("sk", "-proj-", mixed, "_", mixed), "2 an OpenAI key"},
		{"a.log", fake("sk", "-ant-api03-", mixed, mixed), "1 an Anthropic key"},
		{"a.md", "`" + fake("sk", "-or-v1-", strings.Repeat("0a1b2c3d9e8f", 5), "4d5e") + "`", "1 an OpenRouter key"},
		{"a.json", `{"id": "` + fake("AK", "IA", "Q7RSTUVWX2YZ3BCD") + `"}`, "1 an AWS access key"},
		{"a.sh", "export AWS_SECRET_ACCESS_KEY=" + fake("wJalrXUtnFEMIK7MDENG", "bPxRfiCYzQ8vLmT4uWsA"), "1 an AWS secret key"},
		{"a.sh", "git clone https://" + fake("gh", "p_", letters[:36]) + "@github.com/a/b", "1 a GitHub token"},
		{"a.txt", fake("github", "_pat_", letters[:22], "_", letters, letters[:12]), "1 a GitHub token"},
		{"a.py", `KEY = "` + fake("AI", "za", "SyB1c2D3e4F5g6H7i8J9k0L1m2N3o4P5q6r") + `"`, "1 a Google API key"},
		{"a.py", `"` + fake("xo", "xb-", "290817364512-", mixed) + `"`, "1 a Slack token"},
		{"sa.json", `{"type": "service_account", "private_key": "-----BEGIN ` + fake("PRIVATE", " KEY-----") + `\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"}`, "1 a private key"},
		{"a.pem", "x\n-----BEGIN RSA " + fake("PRIVATE", " KEY-----") + "\nMIIEowIBAAKCAQEAvGx8Zq3mYk2w\n", "2 a private key"},
		{"a.py", `h = {"Authorization": "Bearer ` + mixed + `"}`, "1 an Authorization header"},
		{"a.sh", "curl https://user:" + "hunter2x9@registry.internal/x", "1 a password in a URL"},
		{"a.toml", `api_key = "` + mixed + `"`, "1 a value of api_key"},
		{".env", "PORT=8000\nSPIN_API_KEY=" + "s3cretless9\n", "2 a value of SPIN_API_KEY"},
		{"a.log", "PATH=/bin\nHOME=/root\nPWD=/\nAA=1\nBB=2\nCC=3\nDD=4\nMODAL_TOKEN_SECRET=as-hunter7\n", "8 a value of MODAL_TOKEN_SECRET"},
	} {
		var got []string
		for _, s := range findSecrets(File{test.path, []byte(test.text)}) {
			got = append(got, fmt.Sprintf("%d %s", s.line, s.what))
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: %q gives %q, want %q", test.path, test.text, text, test.want)
		}
	}
}

func TestNoSecrets(t *testing.T) {
	for _, test := range []struct{ path, text string }{
		{"a.py", `TOKEN = os.environ["HF_TOKEN"]`},
		{"a.md", "Set HF_TOKEN=hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, or api_key=sk-your-key-goes-here-please-0123"},
		{"a.md", "export OPENAI_API_KEY=EMPTY\nexport VLLM_API_KEY=local-server-for-tests-only"},
		{"a.py", `aws = "` + fake("AK", "IA", "IOSFODNN7EXAMPLE") + `"`},
		{"a.py", `if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError("a private key")`},
		{"a.log", "set " + strings.Repeat("0123456789abcdef", 4) + "\nrevision 851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"},
		{"lock.toml", `hashes = {sha256 = "` + strings.Repeat("a1b2c3d4", 8) + `"}`},
		{"a.json", `{"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "bos_token_id": 151643}`},
		{"a.py", "task-specific-0123456789-abcdef risk-based-scoring-2024-01-02-abcdefgh disk-encryption"},
		{"a.py", `redis = "redis://user:password@localhost:6379"; u = f"https://{user}:{secret}@host/"`},
		{"a.sh", `curl -H "Authorization: Bearer $TOKEN" https://example.com`},
		{"a.sh", `curl -H "Authorization: Bearer your-token-goes-here-0123456789"`},
		{"a.log", "A=1\nB=2\nKEY=abcdefgh\nsetting CACHE_KEY=abcdefghijkl"},
		{".env", "PORT=8000\nHF_TOKEN=\nAPI_KEY=${API_KEY}\nHF_HUB_OFFLINE=1"},
		{"a.log", "PATH=/bin\nHOME=/root\nPWD=/\nAA=1\nBB=2\nCC=3\nDD=4\nHF_TOKEN=***\nOPENAI_API_KEY=<redacted>"},
		{"a.py", `tokenizer_token = "model.layers.0.self_attn.q_proj.weight1"`},
		{"a.py", `hf_hub_download_with_a_very_long_name_of_a_function(repo)`},
		{"a.txt", "the password: is at least twenty-four-characters-long-and-memorable"},
	} {
		for _, s := range findSecrets(File{test.path, []byte(test.text)}) {
			t.Errorf("%s: %q gives line %d, %s, %q", test.path, test.text, s.line, s.what, s.value)
		}
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add(".env", []byte("A=b\nHF_TOKEN=abcdefgh1\n"))
	f.Add("a.log", []byte("https://a:bcdefgh@c Authorization: Bearer x sk-ant- sk- hf_\r\n-----BEGIN PRIVATE KEY-----\nA"))
	f.Fuzz(func(t *testing.T, p string, data []byte) {
		for _, s := range findSecrets(File{p, data}) {
			if s.line < 1 || s.line > strings.Count(string(data), "\n")+1 || s.value == "" {
				t.Errorf("%+v", s)
			}
		}
	})
}
