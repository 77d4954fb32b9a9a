package texts

import (
	"path"
	"slices"
	"strings"
)

// CredentialFile says what a file of such a path is kept for, or "".
func CredentialFile(p string) string {
	name := path.Base(p)
	switch name {
	case ".netrc", "_netrc":
		return "logins of hosts"
	case ".git-credentials":
		return "Git's passwords"
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519":
		return "an SSH key"
	case ".pypirc", ".npmrc", ".pgpass", ".htpasswd":
		return "passwords"
	case "kubeconfig":
		return "a cluster's credentials"
	case ".env":
		return "an environment"
	}
	if strings.HasPrefix(name, ".env.") && !slices.Contains([]string{".example", ".sample", ".template", ".dist"}, path.Ext(name)) {
		return "an environment"
	}
	for suffix, what := range map[string]string{
		".aws/credentials": "AWS credentials", ".kube/config": "a cluster's credentials", ".docker/config.json": "a registry's password",
		"huggingface/token": "a Hugging Face token", "huggingface/stored_tokens": "Hugging Face tokens",
		"gcloud/application_default_credentials.json": "Google Cloud credentials",
	} {
		if p == suffix || strings.HasSuffix(p, "/"+suffix) {
			return what
		}
	}
	return ""
}
