package manifest

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Digest is a sha256 content digest. Its zero value means "no digest"; every
// other value came from ParseDigest or from hashing, so it is well formed.
// Digests compare with ==.
type Digest struct{ value digest.Digest }

// ParseDigest reads the text form "sha256:" and 64 lower-case hex digits.
// Other algorithms are refused: the format knows one.
func ParseDigest(text string) (Digest, error) {
	parsed, err := digest.Parse(text)
	if err != nil {
		return Digest{}, fmt.Errorf("parse digest %q: %w", Clip(text), err)
	}
	if parsed.Algorithm() != digest.SHA256 {
		return Digest{}, fmt.Errorf("parse digest %q: algorithm %s is not sha256", Clip(text), parsed.Algorithm())
	}
	return Digest{parsed}, nil
}

// ParseHex reads 64 lower-case hex digits, the form that sha256sum prints.
func ParseHex(text string) (Digest, error) { return ParseDigest("sha256:" + text) }

// DigestBytes hashes data.
func DigestBytes(data []byte) Digest { return Digest{digest.FromBytes(data)} }

// NewHash returns the hash whose sum FinishHash turns into a Digest.
func NewHash() hash.Hash { return sha256.New() }

// FinishHash returns the digest of everything written to a hash from NewHash.
func FinishHash(h hash.Hash) Digest { return Digest{digest.NewDigest(digest.SHA256, h)} }

// String returns "sha256:<hex>", or "" for the zero value.
func (d Digest) String() string { return string(d.value) }

// Hex returns the 64 hex digits, or "" for the zero value.
func (d Digest) Hex() string {
	_, hex, _ := strings.Cut(string(d.value), ":")
	return hex
}

// Short returns the first twelve hex digits, for tables that people read.
func (d Digest) Short() string {
	if hex := d.Hex(); len(hex) > 12 {
		return hex[:12]
	}
	return d.Hex()
}

// IsZero reports whether d holds no digest.
func (d Digest) IsZero() bool { return d.value == "" }

// MarshalText writes the text form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.value), nil }

// UnmarshalText reads the text form; an empty text is an error.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
