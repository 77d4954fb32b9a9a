package manifest

import (
	"fmt"
	"path"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds that every file system and tar reader we know accepts.
const (
	maxPathBytes    = 1024
	maxSegmentBytes = 255
)

// CheckPath says why a path may not stand in a bundle, or returns nil. Allowed
// are relative, slash-separated, clean paths in Unicode form NFC whose segments
// neither are "." or ".." nor end in a dot or a space, without backslash, colon
// or control characters.
func CheckPath(p string) error {
	if reason := pathFault(p); reason != "" {
		return fmt.Errorf("path %q %s", Clip(p), reason)
	}
	return nil
}

func pathFault(p string) string {
	switch {
	case p == "":
		return "is empty"
	case len(p) > maxPathBytes:
		return fmt.Sprintf("is longer than %d bytes", maxPathBytes)
	case !utf8.ValidString(p):
		return "is not valid UTF-8"
	case strings.HasPrefix(p, "/"):
		return "is absolute"
	case strings.Contains(p, `\`):
		return "contains a backslash"
	case strings.Contains(p, ":"):
		return "contains a colon"
	case strings.ContainsFunc(p, unicode.IsControl):
		return "contains a control character"
	case !norm.NFC.IsNormalString(p):
		return "is not in Unicode form NFC"
	}
	for segment := range strings.SplitSeq(p, "/") {
		switch {
		case segment == "..":
			return "contains '..'"
		case segment == "" || segment == ".":
			return "is not in its shortest form"
		case len(segment) > maxSegmentBytes:
			return fmt.Sprintf("has a name longer than %d bytes", maxSegmentBytes)
		case strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " "):
			return "has a name that ends in a dot or a space"
		}
	}
	return ""
}

// CheckPaths returns every fault of a set of file paths: those of CheckPath,
// paths given twice, paths (or folders on the way) that differ only in case or
// Unicode form, and files that stand where another path needs a folder. The
// result is sorted by path.
func CheckPaths(paths []string) []error {
	sorted := append([]string(nil), paths...)
	sort.Strings(sorted)
	var faults []error
	spelled := map[string]string{} // folded path or folder -> its first spelling
	files := map[string]bool{}
	for _, p := range sorted {
		if err := CheckPath(p); err != nil {
			faults = append(faults, err)
		}
		if files[p] {
			faults = append(faults, fmt.Errorf("path %q is given twice", Clip(p)))
			continue
		}
		files[p] = true
		if other := firstTwin(p, spelled); other != "" {
			faults = append(faults, fmt.Errorf("path %q and %q differ only in case or Unicode form", Clip(p), Clip(other)))
		}
	}
	for _, p := range sorted {
		for folder := path.Dir(p); folder != "." && folder != "/"; folder = path.Dir(folder) {
			if files[folder] {
				faults = append(faults, fmt.Errorf("path %q needs a folder where %q is a file", Clip(p), Clip(folder)))
				break
			}
		}
	}
	return faults
}

// firstTwin records p and its folders under their folded spelling and returns
// an earlier, different spelling of one of them.
func firstTwin(p string, spelled map[string]string) string {
	for i := 0; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		part := p[:i]
		key := FoldPath(part)
		if first, taken := spelled[key]; taken && first != part {
			return first
		} else if !taken {
			spelled[key] = part
		}
	}
	return ""
}

// FoldPath maps paths that some file system takes for the same name to one
// string: Unicode form NFC of the lower-cased upper case.
func FoldPath(p string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(p))))
}
