package config

import (
	"fmt"
	"path"
	"strings"

	"slipway/manifest"
)

// checkGlob says why a pattern may not select files, or returns nil. Patterns
// are relative paths whose segments are path.Match patterns; the segment "**"
// stands for any number of folders, none included.
func checkGlob(pattern string) error {
	// The characters that only a pattern may hold are valid in a path too.
	if err := manifest.CheckPath(pattern); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(segment, ""); err != nil {
			return fmt.Errorf("pattern %q: segment %q: %w", pattern, segment, err)
		}
	}
	return nil
}

// MatchGlob reports whether a checked pattern selects a slash path.
func MatchGlob(pattern, name string) bool {
	segments := strings.Split(name, "/")
	// reached[i]: the pattern so far matches the first i segments.
	reached := make([]bool, len(segments)+1)
	reached[0] = true
	for part := range strings.SplitSeq(pattern, "/") {
		next := make([]bool, len(segments)+1)
		for i := range reached {
			switch {
			case part == "**":
				next[i] = reached[i] || (i > 0 && next[i-1])
			case i > 0 && reached[i-1]:
				next[i], _ = path.Match(part, segments[i-1])
			}
		}
		reached = next
	}
	return reached[len(segments)]
}

// Selects reports whether the block takes the file at a path relative to its
// `from` folder: one include pattern matches and no exclude pattern does.
func (f Files) Selects(relative string) bool {
	return matchesAny(f.Include.Value, relative) && !matchesAny(f.Exclude.Value, relative)
}

func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if MatchGlob(pattern, name) {
			return true
		}
	}
	return false
}
