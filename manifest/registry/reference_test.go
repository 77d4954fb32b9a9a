package registry

import (
	"strings"
	"testing"

	"slipway/manifest"
)

const someDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParseReference(t *testing.T) {
	digest := manifest.DigestBytes(nil)
	for text, want := range map[string]Reference{
		"ghcr.io/team/model:v1":                 {"ghcr.io", "team/model", "v1", manifest.Digest{}},
		"localhost/model:v1":                    {"localhost", "model", "v1", manifest.Digest{}},
		"localhost:5000/model:V1.0_x-y":         {"localhost:5000", "model", "V1.0_x-y", manifest.Digest{}},
		"127.0.0.1:5000/a/b/c__d:_":             {"127.0.0.1:5000", "a/b/c__d", "_", manifest.Digest{}},
		"[::1]:5000/model:v1":                   {"[::1]:5000", "model", "v1", manifest.Digest{}},
		"[fd00::1]/model:v1":                    {"[fd00::1]", "model", "v1", manifest.Digest{}},
		"GHCR.io/team/model:v1":                 {"ghcr.io", "team/model", "v1", manifest.Digest{}},
		"docker.io/team/model:v1":               {"docker.io", "team/model", "v1", manifest.Digest{}},
		"reg.example.com:443/m@" + someDigest:   {"reg.example.com:443", "m", "", digest},
		"registry.example.com/tags/list:latest": {"registry.example.com", "tags/list", "latest", manifest.Digest{}},
	} {
		got, err := ParseReference(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
		if name := got.Name(); name != got.Tag && name != someDigest || !strings.HasSuffix(text, name) {
			t.Errorf("%s: name is %q", text, name)
		}
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "names no registry host",
		"model:v1":                      "names no registry host",
		"team/model:v1":                 "names no registry host",
		"library/ubuntu@" + someDigest:  "names no registry host",
		"https://ghcr.io/team/model:v1": "starts with https://",
		"oci://ghcr.io/team/model:v1":   "starts with oci://",
		"ghcr.io/team/model":            "names no tag or digest",
		"ghcr.io/team/model:":           `tag ""`,
		"ghcr.io/team/model:v1:v2":      `tag "v1:v2"`,
		"ghcr.io/team/model:-x":         `tag "-x"`,
		"ghcr.io/team/model:" + strings.Repeat("x", 129):                   "tag ",
		"ghcr.io/team/model:v1@" + someDigest:                              "names a tag and a digest",
		"ghcr.io/team/model@sha256:abc":                                    "parse digest",
		"ghcr.io/team/model@" + strings.Replace(someDigest, "e3", "E3", 1): "parse digest",
		"ghcr.io/Team/model:v1":                                            "upper-case",
		"ghcr.io/team//model:v1":                                           "is not words",
		"ghcr.io/../model:v1":                                              "is not words",
		"ghcr.io/team/model/:v1":                                           "is not words",
		"ghcr.io/:v1":                                                      "is not words",
		"ghcr.io/te%2fam:v1":                                               "is not words",
		"ghcr.io/" + strings.Repeat("a/", 127) + "aa:v1":                   "256 characters",
		"docker.io/ubuntu:v1":                                              "has no namespace",
		"ghcr.io:0/m:v1":                                                   "port is not a number",
		"ghcr.io:065/m:v1":                                                 "port is not a number",
		"ghcr.io:65536/m:v1":                                               "port is not a number",
		"ghcr.io:/m:v1":                                                    "port is not a number",
		":5000/m:v1":                                                       "not a host name",
		"user:pass@ghcr.io/m:v1":                                           "port is not a number",
		"ghcr..io/m:v1":                                                    "not a host name",
		"-ghcr.io/m:v1":                                                    "not a host name",
		"gh_cr.io/m:v1":                                                    "not a host name",
		"ghcr.io /m:v1":                                                    "not a host name",
		"[::1/m:v1":                                                        "not an IPv6 address",
		"[::1]x/m:v1":                                                      "not an IPv6 address",
		"[127.0.0.1]/m:v1":                                                 "not an IPv6 address",
		"[fe80::1%25eth0]:5000/m:v1":                                       "not an IPv6 address",
	} {
		got, err := ParseReference(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, error is %v, want %q", text, got, err, want)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{"ghcr.io/team/model:v1", "localhost:5000/m@" + someDigest, "[::1]:5000/a/b:x", "docker.io/a/b:c", "user:pass@host/x:y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := ParseReference(text)
		if err != nil {
			return
		}
		again, err := ParseReference(ref.String())
		if err != nil || again != ref {
			t.Fatalf("%q reads as %+v, whose text reads as %+v, %v", text, ref, again, err)
		}
		if (ref.Tag == "") == ref.Digest.IsZero() {
			t.Fatalf("%q: not one of tag and digest: %+v", text, ref)
		}
		if _, err := Open(ref, Options{}); err != nil {
			t.Fatalf("%q is a reference and cannot be opened: %v", text, err)
		}
	})
}
