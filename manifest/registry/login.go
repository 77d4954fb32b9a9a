package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway/manifest"
)

// Check proves credentials: the registry must ask for some, and take these.
func Check(ctx context.Context, host, username, password string, options Options) error {
	err := check(ctx, host, username, password, options, newTransport(options.Proxy))
	if err != nil {
		return fmt.Errorf("log in to %s: %w", host, err)
	}
	return nil
}

func check(ctx context.Context, host, username, password string, options Options, connections http.RoundTripper) error {
	if err := checkHost(host); err != nil {
		return err
	}
	if username == "" || password == "" || strings.Contains(username, ":") {
		return errors.New("a user name without a colon and a password are needed")
	}
	registry, err := newRegistry(host, options)
	if err != nil {
		return err
	}
	base := newBase(options, connections)
	challenge, err := transport.Ping(ctx, registry, base)
	if err != nil {
		return explain(ctx, pingError(err), host)
	}
	if challenge.Scheme == "" {
		return errors.New("the registry asks for no credentials, so it cannot prove these")
	}
	auth := authn.FromConfig(authn.AuthConfig{Username: username, Password: password})
	authenticated, err := transport.NewWithContext(ctx, registry, auth, base, nil)
	if err != nil {
		return rejected(explain(ctx, pingError(err), host))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+registry.RegistryStr()+"/v2/", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: authenticated, CheckRedirect: checkRedirect}
	resp, err := client.Do(req)
	if err != nil {
		return rejected(explain(ctx, err, host))
	}
	defer resp.Body.Close()
	return rejected(explain(ctx, checkStatus(resp, http.StatusOK), host))
}

// rejected replaces the hint to log in, which is what was just tried.
func rejected(err error) error {
	if denied(err) {
		return manifest.WithHint(err, "check user name and password, or token")
	}
	return err
}

// pingError picks, of the errors of the two schemes that a ping tries, the
// one about https: the other only says that plain http is not allowed.
func pingError(err error) error {
	if _, answered := errors.AsType[*transport.Error](err); answered || !errors.Is(err, errPlainHTTP) {
		return err
	}
	if first, ok := errors.AsType[*url.Error](err); ok {
		return first
	}
	return err
}

// Login checks the credentials and keeps them in options.DockerConfig, where
// docker and every tool that reads its configuration find them: with the
// credential helper that is configured for the host, else in config.json.
func Login(ctx context.Context, host, username, password string, options Options) error {
	if options.DockerConfig == "" {
		return fmt.Errorf("log in to %s: no folder for docker's config.json", host)
	}
	if err := Check(ctx, host, username, password, options); err != nil {
		return err
	}
	if err := saveLogin(ctx, options.DockerConfig, host, username, password); err != nil {
		return fmt.Errorf("log in to %s: %w", host, err)
	}
	return nil
}

func saveLogin(ctx context.Context, folder, host, username, password string) error {
	path := filepath.Join(folder, "config.json")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays one
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return err
	}
	var config dockerConfig
	if json.Unmarshal(data, &config) != nil {
		return fmt.Errorf("%s is not docker's JSON", path)
	}
	if helper := config.helper(host); helper != "" {
		return storeWithHelper(ctx, helper, configKey(host), username, password)
	}
	data, err = withAuth(data, configKey(host), username, password)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writePrivate(path, data)
}

// withAuth sets one entry of "auths" and leaves every other value as it is
// written.
func withAuth(data []byte, key, username, password string) ([]byte, error) {
	all, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	auths, err := decodeObject(all["auths"])
	if err != nil {
		return nil, fmt.Errorf("auths: %w", err)
	}
	entry := dockerAuth{Auth: base64.StdEncoding.EncodeToString([]byte(username + ":" + password))}
	if auths[key], err = manifest.EncodeCanonical(map[string]string{"auth": entry.Auth}); err != nil {
		return nil, err
	}
	if all["auths"], err = manifest.EncodeCanonical(auths); err != nil {
		return nil, err
	}
	compact, err := manifest.EncodeCanonical(all)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "\t"); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// decodeObject reads an object whose values stay as they are. Keys given twice
// are refused, since one of the two would be lost.
func decodeObject(data []byte) (map[string]json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	if len(data) == 0 || string(data) == "null" {
		return object, nil
	}
	if err := manifest.DecodeStrict(data, &object); err != nil {
		return nil, err
	}
	return object, nil
}

func storeWithHelper(ctx context.Context, helper, key, username, password string) error {
	command, err := helperCommand(ctx, helper, "store")
	if err != nil {
		return err
	}
	input, err := json.Marshal(map[string]string{"ServerURL": key, "Username": username, "Secret": password})
	if err != nil {
		return err
	}
	command.Stdin = bytes.NewReader(input)
	if err := command.Run(); err != nil {
		return fmt.Errorf("store with credential helper %s: %w", helper, err)
	}
	return nil
}
