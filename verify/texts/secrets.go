package texts

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/report"
	"slipway/verify/words"
)

// Bounds of one file's secrets: found, and reported one by one.
const (
	maxSecrets      = 200
	maxSecretsShown = 5
)

// Revoke is the remedy for a credential.
const Revoke = "remove it, and revoke it if it was ever pushed or shown"

// secret is one credential that was found.
type secret struct {
	line  int
	what  string
	value string
}

// Secrets reports the credentials of a text, without showing them.
func Secrets(f File) Found {
	var o Found
	list := findSecrets(f)
	for i, s := range list {
		if i == maxSecretsShown {
			o.Fail(report.Finding{Path: f.Path, Problem: fmt.Sprintf("holds %s more", words.Plural(len(list)-i, "secret")), Hint: Revoke})
			return o
		}
		o.Fail(report.Finding{Path: f.Path, Problem: fmt.Sprintf("line %d holds %s", s.line, s.what), Got: shown(s.value), Hint: Revoke})
	}
	return o
}

// shown shows enough of a secret to find it: its first 4 characters.
func shown(value string) string {
	if len(value) < 12 {
		return fmt.Sprintf("%d characters", len(value))
	}
	return fmt.Sprintf("%s… (%d characters)", value[:4], len(value))
}

// Patterns of what has no telling beginning.
var (
	privateKey = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\n|\s|["'+\\,])*([A-Za-z0-9+/=]{24,}|Proc-Type:|Version:)`)
	bearer     = regexp.MustCompile(`(?i:authorization["']?\s*[:=,]\s*["']?(?:bearer|token|basic)|\bbearer) +([A-Za-z0-9._~+/=-]{20,})`)
	awsSecret  = regexp.MustCompile(`(?i:aws_?secret_?access_?key)["']?\s*[=:]\s*["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)`)
	inURL      = regexp.MustCompile(`\b[a-z][a-z0-9+.-]{1,15}://([^\s/:@"'<>]{0,64}):([^\s/:@"'<>]{6,128})@([A-Za-z0-9.-]+)`)
	assigned   = regexp.MustCompile(`(?i)["']?\b((?:[a-z0-9_]+[_-])?(?:api[_-]?key|access[_-]?token|auth[_-]?token|secret[_-]?key|client[_-]?secret|hf[_-]?token|password|passwd))["']?\s*[:=]\s*["']?([^\s"',;]{20,200})`)
	setting    = regexp.MustCompile(`^\s*(?:export |declare -x |set |- )?["']?([A-Z][A-Z0-9_]{1,63})["']?=["']?([^"'\n]*?)["']?\s*$`)
	secretName = regexp.MustCompile(`(?:^|_)(?:TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS|PRIVATE_KEY|KEY|TOKEN_ID)(?:_ID|_SECRET)?$`)
)

// findSecrets looks through one text.
func findSecrets(f File) (found []secret) {
	seen := map[string]bool{}
	add := func(line int, what, value string) {
		if !seen[value] && len(found) < maxSecrets {
			seen[value] = true
			found = append(found, secret{line, what, value})
		}
	}
	settings := environment{dotenv: CredentialFile(f.Path) == "an environment" || path.Ext(f.Path) == ".env"}
	linesOf(f.Data, func(number int, line string) {
		for _, k := range secretKinds {
			if !strings.Contains(line, k.prefix) {
				continue
			}
			for _, value := range k.find(line) {
				if !slices.ContainsFunc(found, func(s secret) bool { return s.line == number && strings.HasSuffix(s.value, value) }) {
					add(number, k.name, value)
				}
			}
		}
		secretsByContext(number, line, add)
		settings.read(number, line)
	})
	if text := string(f.Data); strings.Contains(text, "PRIVATE KEY") {
		for _, at := range privateKey.FindAllStringIndex(text, maxSecretsShown) {
			add(1+strings.Count(text[:at[0]], "\n"), "a private key", text[at[0]:at[1]])
		}
	}
	for _, s := range settings.secrets() {
		add(s.line, s.what, s.value)
	}
	slices.SortStableFunc(found, func(a, b secret) int { return a.line - b.line })
	return found
}

// secretsByContext finds values that what stands before them makes secrets.
func secretsByContext(number int, line string, add func(int, string, string)) {
	lower := strings.ToLower(line)
	if strings.Contains(lower, "bearer ") || strings.Contains(lower, "authorization") {
		for _, m := range bearer.FindAllStringSubmatch(line, -1) {
			if looksRandom(m[1]) {
				add(number, "an Authorization header", m[1])
			}
		}
	}
	if strings.Contains(lower, "secret") {
		for _, m := range awsSecret.FindAllStringSubmatch(line, -1) {
			if !isPlaceholder(m[1]) && distinct(m[1]) > 12 {
				add(number, "an AWS secret key", m[1])
			}
		}
	}
	if strings.Contains(line, "://") && strings.Contains(line, "@") {
		for _, m := range inURL.FindAllStringSubmatch(line, -1) {
			if !isPlaceholder(m[2]) && !strings.EqualFold(m[2], "pass") && distinct(m[2]) > 3 && !strings.HasPrefix(m[3], "example.") {
				add(number, "a password in a URL", m[2])
			}
		}
	}
	if strings.Contains(lower, "key") || strings.Contains(lower, "token") || strings.Contains(lower, "passw") || strings.Contains(lower, "secret") {
		for _, m := range assigned.FindAllStringSubmatch(line, -1) {
			if looksRandom(m[2]) {
				add(number, "a value of "+m[1], m[2])
			}
		}
	}
}

// environment is what NAME=value lines of a text tell: an .env file, or the
// dump of an environment that ended up in a log.
type environment struct {
	dotenv   bool
	lines    int
	path     bool // PATH is among them: a whole environment
	suspects []secret
}

// dumpLines is how many settings a text has that is a dump.
const dumpLines = 8

func (v *environment) read(number int, line string) {
	if !strings.Contains(line, "=") {
		return
	}
	m := setting.FindStringSubmatch(line)
	if m == nil {
		return
	}
	v.lines++
	v.path = v.path || m[1] == "PATH"
	if secretName.MatchString(m[1]) && len(m[2]) >= 6 && !isPlaceholder(m[2]) && distinct(m[2]) > 3 {
		v.suspects = append(v.suspects, secret{number, "a value of " + m[1], m[2]})
	}
}

// secrets returns the settings that count as secrets in such a text.
func (v *environment) secrets() []secret {
	if v.dotenv || v.path && v.lines >= dumpLines {
		return v.suspects
	}
	return nil
}
