package verify

import (
	"bytes"
	"strings"

	"slipway/manifest/safetensors"
)

// Remedies for a file that is not what its name says.
const (
	getAgain   = "it is damaged or was not copied whole: get it again"
	writeAgain = "write the file again with a safetensors library"
)

// mistaken names what lies where a download went wrong, and what to do about
// it: "" for anything else.
func mistaken(head []byte, size int64) (what, hint string) {
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"))
	switch {
	case size == 0:
		return "empty", getAgain
	case bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/")):
		return "a Git LFS pointer and not the file it points to", "run git lfs pull where the files come from"
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")):
		return "an HTML page: what a web server answered in place of the file", "download the file itself; the address may need a login, or /resolve/ in place of /blob/"
	}
	return "", ""
}

// cutShort reports whether a violation is that of a file which ends too early:
// its header is longer than the file, or its tensors are.
func cutShort(violation *safetensors.Error) bool {
	switch violation.Rule {
	case "S1":
		return strings.Contains(violation.Detail, "exceeds the file") || strings.Contains(violation.Detail, "shorter than")
	case "S5":
		return strings.HasSuffix(violation.Detail, "bytes earlier")
	}
	return false
}
