package verify

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/wheel"
	"slipway/verify/words"
)

// wheels judges what the wheels hold, and holds them against a lock's digests.
// A RECORD that agrees proves only that a wheel was not changed by somebody who
// forgot it: the digests that the package index published prove the rest.
func (o *outcome) wheels(e *evidence) {
	locks, compared := e.lockedWheels(), 0
	for _, p := range slices.Sorted(maps.Keys(e.sub.wheels)) {
		w, f := e.sub.wheels[p], e.facts[p]
		if w.Err == nil && w.Digest != f.Digest {
			w.Err = fmt.Errorf("changed while it was read")
		}
		if w.Err != nil {
			o.Fail(report.Finding{Path: p, Problem: "cannot be read as a wheel: " + w.Err.Error(), Hint: upstreamWheel})
			continue
		}
		published := locks[strings.ToLower(path.Base(p))]
		same := slices.Contains(published, f.Digest.Hex())
		switch {
		case same:
			compared++
		case len(published) > 0:
			o.Fail(report.Finding{Path: p, Problem: "is not the wheel that the lock names", Want: strings.Join(published, " or "), Got: f.Digest.Hex(), Hint: upstreamWheel})
		}
		for _, fault := range w.Faults {
			o.wheelFault(p, fault, same)
		}
	}
	if n := len(e.sub.wheels); n > compared {
		o.Note("%s read and held against their own RECORD; upstream's digest of %d was not compared, since no lock names it: a reviewer, or a lock, has to", words.Plural(n, "wheel"), n-compared)
	} else if n > 0 {
		o.Note("%s read; their digests are those of the submission's lock (self-declared)", words.Plural(n, "wheel"))
	}
}

const upstreamWheel = "vendor the wheel that the package index publishes, unchanged"

// wheelFault reports one fault of a wheel. Code that runs when Python starts is
// normal in a few wheels, and those are known by their digests.
func (o *outcome) wheelFault(p string, fault wheel.Fault, locked bool) {
	f := report.Finding{Path: p, Problem: "the wheel " + fault.Problem, Want: manifest.Clip(fault.Want), Got: manifest.Clip(fault.Got), Hint: upstreamWheel}
	if fault.Member != "" {
		f.Problem = fmt.Sprintf("member %s %s", manifest.Clip(fault.Member), fault.Problem)
	}
	switch {
	case fault.Severity == wheel.Doubtful, fault.Severity == wheel.Runs && locked:
		f.Hint = "read what it does: no gate runs it"
		o.Warn(f)
	case fault.Severity == wheel.Runs:
		f.Hint = "leave the wheel out where nothing needs it; or ship pylock.toml with its upstream digest, and this is a warning"
		o.Fail(f)
	default:
		o.Fail(f)
	}
}

// lockToken matches what is read of a lock: a wheel's file name, at the end of
// a name, path or URL, a digest, and what begins another thing than a wheel.
var lockToken = regexp.MustCompile(`([A-Za-z0-9_.+!%-]+\.whl)\b|sha256\s*=\s*"([0-9a-fA-F]{64})"|\.tar\.gz\b|\.zip\b|\[\[packages\]\]`)

// lockedWheels returns the digests that locks give, by the lower-case name of
// the wheel. A lock (PyPA, "pylock.toml") names a wheel's file before its hashes.
func (e *evidence) lockedWheels() map[string][]string {
	locked := map[string][]string{}
	for _, p := range lockNames {
		f := e.facts[p]
		if f == nil || f.Small == nil {
			continue
		}
		name := ""
		for line := range strings.Lines(string(f.Small)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, token := range lockToken.FindAllStringSubmatch(line, -1) {
				switch digest := strings.ToLower(token[2]); {
				case token[1] == "" && digest == "":
					name = ""
				case token[1] != "":
					name = strings.ToLower(token[1])
					if plain, err := url.PathUnescape(name); err == nil {
						name = plain
					}
				case name != "" && !slices.Contains(locked[name], digest):
					locked[name] = append(locked[name], digest)
				}
			}
		}
	}
	return locked
}
