package manifest

import (
	"strings"
	"testing"
)

func TestParseDigest(t *testing.T) {
	empty := "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, tc := range []struct{ text, fault string }{
		{empty, ""},
		{"", "invalid checksum digest format"},
		{strings.ToUpper(empty), "invalid"},
		{"sha256:" + strings.ToUpper(empty[7:]), "invalid checksum digest format"},
		{empty[:70], "invalid checksum digest length"},
		{"sha512:" + strings.Repeat("0", 128), "parse digest"},
		{"md5:" + strings.Repeat("0", 32), "unsupported"},
	} {
		d, err := ParseDigest(tc.text)
		if tc.fault == "" {
			if err != nil || d != DigestBytes(nil) || d.String() != tc.text || d.Hex() != empty[7:] || d.Short() != empty[7:19] {
				t.Errorf("%q: %v %v", tc.text, d, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%q: error %v, want one with %q", tc.text, err, tc.fault)
		}
	}
}

func TestZeroDigest(t *testing.T) {
	var d Digest
	if !d.IsZero() || d.Hex() != "" || d.Short() != "" || d.String() != "" {
		t.Errorf("zero digest says %q %q %q", d.Hex(), d.Short(), d.String())
	}
	if err := d.UnmarshalText(nil); err == nil {
		t.Error("an empty text was taken for a digest")
	}
}
