//go:build unix

package boot

import (
	"errors"
	"testing"
	"time"

	"slipway/verify/boot/python"
)

// A trial ends at its limit, and with it all that it left.
func TestTryoutEnds(t *testing.T) {
	inBoth(t, func(t *testing.T, bare bool) {
		r := testSubmission{}.rehearsal(t, bare)
		place, err := r.open(t.Context(), r.lies())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := place.close(); err != nil {
				t.Error(err)
			}
		})
		for _, test := range []struct {
			name, program, output string
			limit                 time.Duration
			late                  bool
		}{
			{"it loops", "while :; do :; done", "", 50 * time.Millisecond, true},
			{"it looks away", "trap '' TERM; while :; do :; done", "", 50 * time.Millisecond, true},
			{"it leaves a child", "sleep 1000 & echo left", "left\n", time.Minute, false},
			{"it leaves one that holds its output, in a session of its own", "setsid sleep 1000 & echo left", "left\n", time.Minute, false},
			{"it ends", "echo ended", "ended\n", time.Minute, false}, // in the place of all those
		} {
			output, ended := tryout{place}.Run(t.Context(), python.Command{Argv: []string{"/bin/sh", "-c", test.program}, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + place.home()}, Dir: "/"}, test.limit)
			if output != test.output || errors.Is(ended, python.ErrLate) != test.late || !test.late && ended != nil {
				t.Errorf("%s: it printed %q and ended with %v", test.name, output, ended)
			}
			if left, err := place.alive(); err != nil || len(left) > 0 {
				t.Errorf("%s: %q still run, %v", test.name, left, err)
			}
		}
	})
}
