package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"slipway/manifest"
)

// Reference names a manifest in a registry: HOST/REPOSITORY:TAG or
// HOST/REPOSITORY@DIGEST. One of Tag and Digest is set.
type Reference struct {
	Host       string // registry host in lower case, with :PORT where one was written
	Repository string
	Tag        string
	Digest     manifest.Digest
}

// The grammars of distribution-spec v1.1, "Pulling manifests", and of host
// names (RFC 1123).
var (
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagPattern        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	hostPattern       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

const maxRepositoryLength = 255

// ParseReference reads a reference. Nothing is filled in: a host and a tag or
// digest have to be written, so that a push never lands where nobody meant it.
func ParseReference(text string) (Reference, error) {
	ref, err := parseReference(text)
	if err != nil {
		return Reference{}, fmt.Errorf("reference %q: %w", manifest.Clip(text), err)
	}
	return ref, nil
}

func parseReference(text string) (Reference, error) {
	if scheme, _, found := strings.Cut(text, "://"); found {
		return Reference{}, manifest.WithHint(fmt.Errorf("starts with %s://", manifest.Clip(scheme)), "write HOST/REPOSITORY:TAG")
	}
	host, rest, found := strings.Cut(text, "/")
	if !found || !looksLikeHost(host) {
		return Reference{}, manifest.WithHint(errors.New("names no registry host"), "write the host first, such as ghcr.io/NAME/MODEL:TAG or localhost:5000/MODEL:TAG")
	}
	host = strings.ToLower(host)
	if err := checkHost(host); err != nil {
		return Reference{}, err
	}
	ref := Reference{Host: host}
	rest, digest, byDigest := strings.Cut(rest, "@")
	repository, tag, byTag := strings.Cut(rest, ":")
	ref.Repository, ref.Tag = repository, tag
	switch {
	case byDigest && byTag:
		return Reference{}, manifest.WithHint(errors.New("names a tag and a digest"), "keep one of the two")
	case !byDigest && !byTag:
		return Reference{}, manifest.WithHint(errors.New("names no tag or digest"), "add :TAG or @sha256:DIGEST")
	case byTag && !tagPattern.MatchString(tag):
		return Reference{}, fmt.Errorf("tag %q is not 1 to 128 letters, digits, '_', '.' or '-' that start with a letter, digit or '_'", manifest.Clip(tag))
	}
	if byDigest {
		var err error
		if ref.Digest, err = manifest.ParseDigest(digest); err != nil {
			return Reference{}, err
		}
	}
	return ref, checkRepository(host, repository)
}

func checkRepository(host, repository string) error {
	switch {
	case repository != strings.ToLower(repository):
		return fmt.Errorf("repository %q has upper-case letters", manifest.Clip(repository))
	case len(repository) > maxRepositoryLength:
		return fmt.Errorf("repository has %d characters, more than %d", len(repository), maxRepositoryLength)
	case !repositoryPattern.MatchString(repository):
		return fmt.Errorf("repository %q is not words of lower-case letters and digits joined by '.', '_', '-' or '/'", manifest.Clip(repository))
	case isDockerHub(host) && !strings.Contains(repository, "/"):
		return manifest.WithHint(fmt.Errorf("repository %q has no namespace", manifest.Clip(repository)), "write "+host+"/NAMESPACE/"+manifest.Clip(repository))
	}
	return nil
}

// looksLikeHost tells a host from the first word of a repository the way that
// container tools do.
func looksLikeHost(word string) bool {
	return word == "localhost" || strings.ContainsAny(word, ".:")
}

// checkHost accepts a name or an IPv4 address, or an IPv6 address in
// brackets, each with or without a port.
func checkHost(host string) error {
	name, port := splitPort(host)
	if port != "" {
		n, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || n == 0 || port != fmt.Sprintf(":%d", n) {
			return fmt.Errorf("registry host %q: port is not a number from 1 to 65535", manifest.Clip(host))
		}
	}
	if inner, bracketed := strings.CutPrefix(name, "["); bracketed {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !address.Is6() || address.Zone() != "" || !strings.HasSuffix(name, "]") {
			return fmt.Errorf("registry host %q: not an IPv6 address in brackets", manifest.Clip(host))
		}
		return nil
	}
	if len(name) > 253 || !hostPattern.MatchString(name) {
		return fmt.Errorf("registry host %q is not a host name or address", manifest.Clip(host))
	}
	return nil
}

// splitPort cuts host into name and ":PORT", the latter empty where there is
// none.
func splitPort(host string) (name, port string) {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i], host[i:]
	}
	return host, ""
}

func isDockerHub(host string) bool { return host == "docker.io" || host == "index.docker.io" }

// Name returns what Resolve takes: the tag, or the digest in text form.
func (r Reference) Name() string {
	if r.Tag != "" {
		return r.Tag
	}
	return r.Digest.String()
}

// String returns the text that ParseReference reads.
func (r Reference) String() string {
	if r.Tag != "" {
		return r.Host + "/" + r.Repository + ":" + r.Tag
	}
	return r.Host + "/" + r.Repository + "@" + r.Digest.String()
}
