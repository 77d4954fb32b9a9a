package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"slipway/manifest"
	"slipway/manifest/content"
)

const maxErrorBody = 64 << 10

// StatusError is a registry's answer that is not the one hoped for.
type StatusError struct {
	Code    int    // HTTP status
	Message string // the registry's own words, or ""
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Is lets errors.Is(err, content.ErrNotFound) see a 404.
func (e *StatusError) Is(target error) bool {
	return target == content.ErrNotFound && e.Code == http.StatusNotFound
}

// checkStatus returns nil for one of the codes and a *StatusError for others.
// It reads the body only in the latter case.
func checkStatus(resp *http.Response, codes ...int) error {
	for _, code := range codes {
		if resp.StatusCode == code {
			return nil
		}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is better than nothing
	return &StatusError{Code: resp.StatusCode, Message: messageOf(body, resp.Header.Get("Content-Type"))}
}

// messageOf reads the error form of distribution-spec v1.1, or short plain text.
func messageOf(body []byte, contentType string) string {
	var answer transport.Error
	if json.Unmarshal(body, &answer) == nil && len(answer.Errors) > 0 {
		return diagnostics(answer.Errors)
	}
	if strings.HasPrefix(contentType, "text/plain") {
		return printable(string(body))
	}
	return ""
}

func diagnostics(list []transport.Diagnostic) string {
	var parts []string
	for _, d := range list {
		text := d.Message
		if text == "" {
			text = string(d.Code)
		}
		parts = append(parts, text)
	}
	return printable(strings.Join(parts, "; "))
}

// printable makes one bounded line of text that a server wrote.
func printable(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "..."
	}
	return text
}

func statusOf(err error) int {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answer.StatusCode
	}
	return 0
}

// explain turns an error of the libraries below into one that may be printed:
// without addresses, whose queries can carry signatures and tokens, and with
// the remedy where there is one.
func (r *Repository) explain(ctx context.Context, err error) error {
	return explain(ctx, err, r.ref.Host)
}

func explain(ctx context.Context, err error, host string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		err = &StatusError{Code: answer.StatusCode, Message: diagnostics(answer.Errors)}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if permanent, ok := errors.AsType[permanentError](err); ok {
		err = permanent.error
	}
	if before, _, found := strings.Cut(err.Error(), "no token in bearer response"); found {
		err = errors.New(before + "no token in the token server's answer") // the rest is the answer itself
	}
	if hint := hintFor(err, host); hint != "" {
		return manifest.WithHint(err, hint)
	}
	return err
}

// isNoTLS reports whether something answered an https request in plain text.
func isNoTLS(err error) bool {
	_, is := errors.AsType[tls.RecordHeaderError](err)
	return is
}

func hintFor(err error, host string) string {
	switch {
	case manifest.Hint(err) != "":
		return manifest.Hint(err)
	case statusOf(err) == http.StatusUnauthorized, statusOf(err) == http.StatusForbidden:
		return "run: slipway login " + host
	case statusOf(err) == http.StatusRequestEntityTooLarge:
		return "lower max_shard in the weights block: the registry, or a proxy before it, takes no blob of this size"
	case errors.Is(err, errPlainHTTP), errors.Is(err, http.ErrSchemeMismatch), isNoTLS(err):
		return "where the registry speaks plain http on purpose: --plain-http"
	}
	return ""
}

// named returns the words for a blob in an error: "layer sha256:0123456789ab".
func named(blob manifest.Descriptor) string {
	noun := "layer"
	switch {
	case isManifest(blob.MediaType):
		noun = "manifest"
	case blob.MediaType == manifest.MediaTypeConfig:
		noun = "config"
	}
	return noun + " sha256:" + blob.Digest.Short()
}
