package texts

import (
	"slices"
	"strings"
)

// secretKind is a kind of credential that can be told by its beginning.
type secretKind struct {
	name     string
	prefix   string
	alphabet string // beyond letters and digits
	min, max int    // length of what follows the prefix; max 0: any
}

// secretKinds, longer prefixes first where one begins another. Sources: the
// issuers' documents on their tokens' formats.
var secretKinds = []secretKind{
	{"a Hugging Face token", "hf_", "", 30, 64},
	{"a Hugging Face token", "api_org_", "", 30, 64},
	{"an Anthropic key", "sk-ant-", "-_", 30, 0},
	{"an OpenRouter key", "sk-or-", "-", 32, 0},
	{"an OpenAI key", "sk-", "-_", 20, 0},
	{"an AWS access key", "AKIA", "", 16, 16},
	{"an AWS access key", "ASIA", "", 16, 16},
	{"a GitHub token", "ghp_", "", 36, 255},
	{"a GitHub token", "gho_", "", 36, 255},
	{"a GitHub token", "ghs_", "", 36, 255},
	{"a GitHub token", "ghu_", "", 36, 255},
	{"a GitHub token", "github_pat_", "_", 60, 255},
	{"a GitLab token", "glpat-", "-_", 20, 64},
	{"a Google API key", "AIza", "-_", 35, 35},
	{"a Slack token", "xoxb-", "-", 20, 0},
	{"a Slack token", "xoxp-", "-", 20, 0},
	{"a Slack token", "xapp-", "-", 20, 0},
	{"a Slack webhook", "hooks.slack.com/services/", "/", 30, 0},
	{"an npm token", "npm_", "", 36, 36},
	{"a PyPI token", "pypi-AgE", "-_", 50, 0},
	{"a Weights & Biases key", "wandb_v1_", "_", 30, 0},
	{"a Groq key", "gsk_", "", 40, 64},
}

// find returns the secrets of the kind in a line.
func (k secretKind) find(line string) (found []string) {
	for from := 0; ; {
		i := strings.Index(line[from:], k.prefix)
		if i < 0 {
			return found
		}
		start := from + i
		end := start + len(k.prefix)
		for end < len(line) && (isAlphanumeric(line[end]) || strings.IndexByte(k.alphabet, line[end]) >= 0) {
			end++
		}
		rest := line[start+len(k.prefix) : end]
		inWord := start > 0 && (isAlphanumeric(line[start-1]) || line[start-1] == '_' || line[start-1] == '-')
		if !inWord && len(rest) >= k.min && (k.max == 0 || len(rest) <= k.max) && k.plausible(rest) {
			found = append(found, line[start:end])
		}
		from = max(end, start+1)
	}
}

// plausible tells a key from words joined by hyphens, and from an example.
func (k secretKind) plausible(rest string) bool {
	if isPlaceholder(rest) || distinct(rest) < 9 {
		return false
	}
	if !strings.Contains(k.alphabet, "-") {
		return true
	}
	longest := 0
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return r == '-' || r == '_' || r == '/' }) {
		if strings.ContainsAny(part, "0123456789") {
			longest = max(longest, len(part))
		}
	}
	return longest >= 10
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func distinct(text string) int {
	var seen [256]bool
	n := 0
	for i := range len(text) {
		if !seen[text[i]] {
			seen[text[i]] = true
			n++
		}
	}
	return n
}

// placeholders are parts of what stands for a secret in examples.
var placeholders = []string{
	"xxx", "your", "example", "placeholder", "redacted", "dummy", "changeme", "change_me", "change-me", "insert", "***", "...", "…", "<", "fake",
	"sample", "1234567890", "abcdefgh", "replace", "secret", "password", "none", "null", "empty", "todo", "masked", "not-needed", "notneeded",
	"not_needed", "$", "{", "%s", "undefined",
}

func isPlaceholder(value string) bool {
	lower := strings.ToLower(value)
	return slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(lower, p) })
}

// looksRandom reports whether a value has what a generated key has: length,
// letters and digits, few repetitions, and that it is no hash.
func looksRandom(value string) bool {
	if len(value) < 20 || isPlaceholder(value) || distinct(value) < 10 {
		return false
	}
	letters, digits, others := 0, 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case c >= '0' && c <= '9':
			digits++
		case isAlphanumeric(c):
			letters++
		case strings.IndexByte("-_+/=.~", c) >= 0:
			others++
		default:
			return false
		}
	}
	return letters > 0 && digits > 1 && others <= len(value)/8 && !isPathLike(value)
}

// isPathLike tells words with a slash or a dot between them from a key.
func isPathLike(value string) bool {
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("-_/.", r) }) {
		if len(part) >= 16 && distinct(part) >= 8 {
			return false
		}
	}
	return true
}
