package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"slipway/manifest"
	"slipway/manifest/registry/embedded"
)

func writeConfig(t *testing.T, text string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// helper installs a credential helper that knows one host and keeps what it
// is told to store.
func helper(t *testing.T, name string) (stored string) {
	t.Helper()
	folder := t.TempDir()
	stored = filepath.Join(folder, "stored")
	script := `#!/bin/sh
case "$1" in
get) read -r host
	case "$host" in
	known.example.com) echo '{"ServerURL":"x","Username":"helped","Secret":"s3"}';;
	token.example.com) echo '{"ServerURL":"x","Username":"<token>","Secret":"refresh"}';;
	broken.example.com) echo 'keychain is locked'; exit 1;;
	*) echo 'credentials not found in native keychain'; exit 1;;
	esac;;
store) cat > '` + stored + `';;
esac
`
	if err := os.WriteFile(filepath.Join(folder, "docker-credential-"+name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return stored
}

func TestCredentials(t *testing.T) {
	helper(t, "test")
	const entries = `"auths":{
		"plain.example.com":{"auth":"YWRhOnA6dw=="},
		"https://address.example.com/v2/":{"username":"ada","password":"pw"},
		"https://index.docker.io/v1/":{"auth":"aHViOnB3"},
		"identity.example.com":{"identitytoken":"it"},
		"registry.example.com":{"registrytoken":"rt"},
		"empty.example.com":{},
		"bad.example.com":{"auth":"!!!"},
		"nocolon.example.com":{"auth":"YWRh"}}`
	for _, test := range []struct {
		name, config, host string
		want               authn.AuthConfig
		fails              string
	}{
		{"plain", "{" + entries + "}", "plain.example.com", authn.AuthConfig{Username: "ada", Password: "p:w"}, ""},
		{"written as an address", "{" + entries + "}", "address.example.com", authn.AuthConfig{Username: "ada", Password: "pw"}, ""},
		{"docker hub", "{" + entries + "}", "docker.io", authn.AuthConfig{Username: "hub", Password: "pw"}, ""},
		{"identity token", "{" + entries + "}", "identity.example.com", authn.AuthConfig{IdentityToken: "it"}, ""},
		{"registry token", "{" + entries + "}", "registry.example.com", authn.AuthConfig{RegistryToken: "rt"}, ""},
		{"empty entry", "{" + entries + "}", "empty.example.com", authn.AuthConfig{}, ""},
		{"other host", "{" + entries + "}", "example.com", authn.AuthConfig{}, ""},
		{"other port", "{" + entries + "}", "plain.example.com:5000", authn.AuthConfig{}, ""},
		{"not base64", "{" + entries + "}", "bad.example.com", authn.AuthConfig{}, "not base64 of USER:PASSWORD"},
		{"no colon", "{" + entries + "}", "nocolon.example.com", authn.AuthConfig{}, "not base64 of USER:PASSWORD"},
		{"helper for all", `{"credsStore":"test",` + entries + `}`, "known.example.com", authn.AuthConfig{Username: "helped", Password: "s3"}, ""},
		{"helper before file", `{"credsStore":"test",` + entries + `}`, "plain.example.com", authn.AuthConfig{}, ""},
		{"helper for the host", `{"credHelpers":{"known.example.com":"test"},` + entries + `}`, "known.example.com", authn.AuthConfig{Username: "helped", Password: "s3"}, ""},
		{"helper for another host", `{"credHelpers":{"known.example.com":"test"},` + entries + `}`, "plain.example.com", authn.AuthConfig{Username: "ada", Password: "p:w"}, ""},
		{"helper with a token", `{"credsStore":"test"}`, "token.example.com", authn.AuthConfig{IdentityToken: "refresh"}, ""},
		{"helper that fails", `{"credsStore":"test"}`, "broken.example.com", authn.AuthConfig{}, "ask credential helper test"},
		{"helper that is missing", `{"credsStore":"missing"}`, "known.example.com", authn.AuthConfig{}, "ask credential helper missing"},
		{"helper that is a path", `{"credsStore":"../test"}`, "known.example.com", authn.AuthConfig{}, "is not the name of one"},
		{"not JSON", `{"auths":`, "plain.example.com", authn.AuthConfig{}, "is not docker's JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			auth, err := credentials(t.Context(), writeConfig(t, test.config), test.host)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error is %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := auth.Authorization()
			if err != nil {
				t.Fatal(err)
			}
			if *got != test.want {
				t.Errorf("got %+v, want %+v", *got, test.want)
			}
		})
	}
	for _, folder := range []string{"", t.TempDir()} {
		if auth, err := credentials(t.Context(), folder, "plain.example.com"); err != nil || auth != authn.Anonymous {
			t.Errorf("without a file: %v, %v", auth, err)
		}
	}
}

// TestLoginKeepsTheRest compares every other key of the file before and after.
func TestLoginKeepsTheRest(t *testing.T) {
	host := serve(t, embedded.Options{Username: "ada", Password: "se:cret"}, nil)
	const before = `{
	"auths": {"other.example.com": {"auth": "eDp5", "email": "a@b"}, "` + "HOST" + `": {"auth": "b2xkOm9sZA=="}},
	"big": 12345678901234567890.10, "HttpHeaders": {"X": "<&>"}, "currentContext": "a\u00e9b", "experimental": null}`
	folder := writeConfig(t, strings.ReplaceAll(before, "HOST", host))
	if err := Login(t.Context(), host, "ada", "se:cret", Options{DockerConfig: folder}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"big": 12345678901234567890.10`, `"X": "<&>"`, `"a\u00e9b"`, `"experimental": null`, `"email": "a@b"`, `"auth": "eDp5"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is gone from %s", want, data)
		}
	}
	var config dockerConfig
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if got := config.Auths[host].Auth; got != "YWRhOnNlOmNyZXQ=" {
		t.Errorf("auth is %q", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("config.json has mode %v", info.Mode())
	}
	r, _ := repository(t, host, Options{DockerConfig: folder})
	mustHave(t, r, describe([]byte("x")), false)
}

func TestLoginRefuses(t *testing.T) {
	guarded := serve(t, embedded.Options{Username: "ada", Password: "secret"}, nil)
	open := serve(t, embedded.Options{}, nil)
	for _, test := range []struct{ host, user, password, want, hint string }{
		{guarded, "ada", "wrong", "401 Unauthorized", "check user name and password, or token"},
		{guarded, "eve", "secret", "401 Unauthorized", "check user name and password, or token"},
		{guarded, "", "secret", "are needed", ""},
		{guarded, "ada", "", "are needed", ""},
		{guarded, "ad:a", "secret", "are needed", ""},
		{open, "ada", "secret", "asks for no credentials", ""},
		{"https://" + guarded, "ada", "secret", "registry host", ""},
	} {
		folder := writeConfig(t, "{}")
		err := Login(t.Context(), test.host, test.user, test.password, Options{DockerConfig: folder})
		if err == nil || !strings.Contains(err.Error(), test.want) || manifest.Hint(err) != test.hint {
			t.Errorf("%+v: error is %v with hint %q", test, err, manifest.Hint(err))
		}
		if data, err := os.ReadFile(filepath.Join(folder, "config.json")); err != nil || string(data) != "{}" {
			t.Errorf("%+v: the file was touched: %s, %v", test, data, err)
		}
	}
	for _, text := range []string{"", "[]", `{"auths":[]}`, `{"a":1,"a":2}`, `{"auths":{"x":{},"x":{}}}`} {
		folder := writeConfig(t, text)
		err := Login(t.Context(), guarded, "ada", "secret", Options{DockerConfig: folder})
		if err == nil {
			t.Errorf("%s: no error", text)
		}
		if data, err := os.ReadFile(filepath.Join(folder, "config.json")); err != nil || string(data) != text {
			t.Errorf("%s: the file was touched: %s, %v", text, data, err)
		}
	}
}

func TestLoginFindsItsPlace(t *testing.T) {
	host := serve(t, embedded.Options{Username: "ada", Password: "secret"}, nil)
	stored := helper(t, "test")

	missing := filepath.Join(t.TempDir(), "not", "there")
	if err := Login(t.Context(), host, "ada", "secret", Options{DockerConfig: missing}); err != nil {
		t.Fatal(err)
	}

	target := writeConfig(t, `{}`)
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(target, "config.json"), filepath.Join(linked, "config.json")); err != nil {
		t.Fatal(err)
	}
	if err := Login(t.Context(), host, "ada", "secret", Options{DockerConfig: linked}); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{missing, target, linked} {
		r, _ := repository(t, host, Options{DockerConfig: folder})
		mustHave(t, r, describe([]byte("x")), false)
	}
	if info, err := os.Lstat(filepath.Join(linked, "config.json")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}

	helped := writeConfig(t, `{"credsStore":"test"}`)
	if err := Login(t.Context(), host, "ada", "secret", Options{DockerConfig: helped}); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	data, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil || got["ServerURL"] != host || got["Username"] != "ada" || got["Secret"] != "secret" {
		t.Errorf("the helper was given %s", data)
	}
	if data, err := os.ReadFile(filepath.Join(helped, "config.json")); err != nil || string(data) != `{"credsStore":"test"}` {
		t.Errorf("the file was touched: %s, %v", data, err)
	}
}
