package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"slipway/manifest"

	"github.com/google/go-containerregistry/pkg/authn"
)

// dockerHubKey is the name under which docker keeps its hub's credentials.
const dockerHubKey = "https://index.docker.io/v1/"

// dockerConfig is the part of docker's config.json that is about credentials.
type dockerConfig struct {
	Auths       map[string]dockerAuth `json:"auths"`
	CredsStore  string                `json:"credsStore"`
	CredHelpers map[string]string     `json:"credHelpers"`
}

type dockerAuth struct {
	Auth          string `json:"auth"` // base64 of USER:PASSWORD
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// credentials finds a host's credentials the way docker does: the helper for
// the host, the helper for all, the entry in the file. None is not an error.
func credentials(ctx context.Context, folder, host string) (authn.Authenticator, error) {
	if folder == "" {
		return authn.Anonymous, nil
	}
	path := filepath.Join(folder, "config.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return authn.Anonymous, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	var config dockerConfig
	if json.Unmarshal(data, &config) != nil {
		return nil, fmt.Errorf("read credentials: %s is not docker's JSON", path) // the cause could quote a secret
	}
	if helper := config.helper(host); helper != "" {
		return fromHelper(ctx, helper, configKey(host))
	}
	entry, found := config.entry(host)
	if !found {
		return authn.Anonymous, nil
	}
	return entry.authenticator(path, host)
}

// configKey is the name of a host in the file and for helpers.
func configKey(host string) string {
	if isDockerHub(host) {
		return dockerHubKey
	}
	return host
}

func (c dockerConfig) helper(host string) string {
	if helper, found := c.CredHelpers[configKey(host)]; found {
		return helper
	}
	return c.CredsStore
}

// entry looks for the host's own name first, then for one written as an
// address (https://HOST/v2/).
func (c dockerConfig) entry(host string) (dockerAuth, bool) {
	if entry, found := c.Auths[configKey(host)]; found {
		return entry, true
	}
	for key, entry := range c.Auths {
		_, bare, found := strings.Cut(key, "://")
		if !found {
			bare = key
		}
		if bare, _, _ = strings.Cut(bare, "/"); bare == host {
			return entry, true
		}
	}
	return dockerAuth{}, false
}

func (a dockerAuth) authenticator(path, host string) (authn.Authenticator, error) {
	if a.Auth != "" {
		plain, err := base64.StdEncoding.DecodeString(a.Auth)
		user, password, found := strings.Cut(strings.TrimRight(string(plain), "\x00"), ":")
		if err != nil || !found {
			return nil, fmt.Errorf("read credentials: the entry for %s in %s is not base64 of USER:PASSWORD", host, path)
		}
		a.Username, a.Password = user, password
	}
	config := authn.AuthConfig{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
	if config == (authn.AuthConfig{}) {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(config), nil
}

var helperPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// helperCommand is the program docker-credential-NAME of docker's protocol for
// credential helpers.
func helperCommand(ctx context.Context, helper, action string) (*exec.Cmd, error) {
	if !helperPattern.MatchString(helper) {
		return nil, fmt.Errorf("credential helper %q is not the name of one", manifest.Clip(helper))
	}
	return exec.CommandContext(ctx, "docker-credential-"+helper, action), nil
}

// fromHelper asks a helper: the host on its input, a JSON object on its
// output, and a fixed sentence there when it knows none.
func fromHelper(ctx context.Context, helper, key string) (authn.Authenticator, error) {
	command, err := helperCommand(ctx, helper, "get")
	if err != nil {
		return nil, err
	}
	command.Stdin = strings.NewReader(key)
	output, err := command.Output()
	if bytes.Contains(output, []byte("credentials not found")) {
		return authn.Anonymous, nil
	}
	var answer struct{ Username, Secret string }
	if err != nil {
		return nil, fmt.Errorf("ask credential helper %s: %w", helper, err)
	}
	if json.Unmarshal(output, &answer) != nil {
		return nil, fmt.Errorf("ask credential helper %s: its answer is not JSON", helper)
	}
	if answer.Username == "<token>" {
		return authn.FromConfig(authn.AuthConfig{IdentityToken: answer.Secret}), nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: answer.Username, Password: answer.Secret}), nil
}
