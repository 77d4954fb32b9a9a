//go:build unix

package boot

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/manifest"
	"slipway/verify/report"
)

func TestStartTimes(t *testing.T) {
	shipped := []manifest.File{{Path: "weights/a.safetensors"}, {Path: "cache/torchinductor_root/x.so"}, {Path: "cache/.triton/y.cubin"}, {Path: "code/triton.py"}}
	for name, test := range map[string]struct {
		first, second float64
		files         []manifest.File
		warns         bool
		say           string // in what is found or noted
		silent        string // and not
	}{
		"in time":                  {100, 90, nil, false, "healthy after 1m40s of 5m0s", "home that the first start left"},
		"in time, and faster":      {100, 20, nil, false, "in the home that the first start left, it was healthy after 20s", "ships"},
		"fast, and twice as fast":  {1.2, 0.4, nil, false, "healthy after 1.2s", "home that the first start left"},
		"late":                     {200, 190, nil, true, "the start takes 67% of the time there is", "rests on caches"},
		"late, and faster":         {200, 90, nil, true, "takes 67% of the time there is: it rests on caches that the grader's machine does not have", "ships"},
		"late, and half":           {200, 100, nil, true, "the start takes 67% of the time there is", "rests on caches"},
		"late, and not again":      {200, 0, nil, true, "the start takes 67% of the time there is", "rests on caches"},
		"caches":                   {100, 90, shipped, false, "it ships 2 files of caches (cache/torchinductor_root/x.so); with what the first start left, too, the second took 1m30s", "were not"},
		"caches that are not used": {100, 20, shipped, false, "saves the second 1m20s: caches are found by versions and paths, and some of these were not", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observed{rehearsal: &Rehearsal{Files: test.files}, Measured: &report.Measured{}}
			o.first.Healthy = test.first
			second := startOutcome{Start: report.Start{What: startedAgain, Healthy: test.second}}
			if test.second == 0 {
				second.problem = "it did not start"
			}
			o.again = []startOutcome{second}
			var v verdict
			o.judgeTime(&v, 5*time.Minute)
			text := findings(report.GateResult{Findings: v.Findings, Notes: v.Notes})
			if (len(v.Findings) > 0) != test.warns || v.Failed() || !strings.Contains(text, test.say) || test.silent != "" && strings.Contains(text, test.silent) {
				t.Errorf("want %q and not %q:\n%s", test.say, test.silent, text)
			}
		})
	}
}

// The start without shipped caches is made where the first one read them, and
// decides nothing.
func TestWithoutCaches(t *testing.T) {
	const cache = "kernels/.triton/x.cubin"
	ships := func(r *Rehearsal) {
		file := filepath.Join(r.Folder, cache)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
		r.Files = append(r.Files, manifest.File{Path: cache})
	}
	inBoth(t, func(t *testing.T, bare bool) {
		if bare {
			t.Skip("what is read is not seen")
		}
		for _, test := range []struct{ script, note string }{
			{"read x <\"$SUBMISSION_DIR/" + cache + "\"; SERVER", ": healthy after "},
			{"cp -R \"$SUBMISSION_DIR/kernels/.triton\" /tmp/ && [ -e /tmp/.triton/x.cubin ] || exit 3; SERVER", ": the server ended before it was healthy: exit status 3"},
			{"SERVER", ""},
		} {
			measured, gates := run(t, testSubmission{script: test.script, change: ships}.rehearsal(t, false))
			if got := failing(gates); got != nil {
				t.Fatalf("%s: %q fail: %s", test.script, got, findings(gates[got[0]]))
			}
			note := ""
			for _, n := range gates["startup"].Notes {
				if rest, is := strings.CutPrefix(n, "started "+withoutCaches); is {
					note = rest
				}
			}
			started := slices.ContainsFunc(measured.Starts, func(s report.Start) bool { return s.What == withoutCaches })
			if !strings.HasPrefix(note, test.note) || (note == "") != (test.note == "") || started != (test.note != "") {
				t.Errorf("%s: %q, want %q; starts %+v", test.script, note, test.note, measured.Starts)
			}
		}
	})
}
