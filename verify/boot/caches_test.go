package boot

import (
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
