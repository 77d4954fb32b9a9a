package cli

import "testing"

func TestColourVerdicts(t *testing.T) {
	const report = "FAIL: ternary; 2 gates undecided\nmodel (folder)\n\nfail ternary\n  error: pass me\npass paths\nundecided\n  wheels: x\npassing\nPASS"
	const want = "\x1b[31mFAIL\x1b[0m: ternary; 2 gates undecided\nmodel (folder)\n\n\x1b[31mfail\x1b[0m ternary\n  error: pass me\n" +
		"\x1b[32mpass\x1b[0m paths\n\x1b[33mundecided\x1b[0m\n  wheels: x\npassing\n\x1b[32mPASS\x1b[0m"
	if got := colourVerdicts(report); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}
