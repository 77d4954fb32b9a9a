package script

import "testing"

// Fallbacks that leave the command line alone, each beside a twin that is none.
func TestFallbackOfVariables(t *testing.T) {
	before := func(text string) folder { return altered("exec python3", text+"\nexec python3") }
	fault := func(name, text, says string, line int, warning bool) vector {
		return vector{name: name, folder: before(text), check: "C24", line: line, says: says, warning: warning}
	}
	runVectors(t, []vector{
		fault("mode", "nvidia-smi || export MODEL_MODE=tiny", "variable MODEL_MODE", 9, true),
		fault("mode under if", "export MODE=large\nif ! nvidia-smi; then MODE=tiny; fi", "variable MODE", 10, true),
		fault("folder", "export MODEL_DIR=weights\nnvidia-smi || MODEL_DIR=wheels", "variable MODEL_DIR", 10, false),
		fault("outside", "export WEIGHTS=weights\nnvidia-smi || WEIGHTS=/srv/weights", "variable WEIGHTS", 10, false),
		fault("trap of functions too", "set -E\ntrap 'exec python3 code/export.py a b' ERR\nf() { nvidia-smi; }\nf", "another server", 9, false),
		fault("trap", "trap 'exec python3 code/export.py a b' ERR\nnvidia-smi", "another server", 8, false),
	})
	// An unchanged server behind a test of the machine is no fallback.
	runClean(t, map[string]folder{
		"always":                 before("nvidia-smi || true\nexport MODEL_MODE=tiny"),
		"threads":                before("nvidia-smi || export OMP_NUM_THREADS=4"),
		"a copy":                 before("export MODEL_DIR=weights\ncp -r weights /tmp/w && MODEL_DIR=/tmp/w"),
		"trap, not of functions": before("trap 'exec python3 code/export.py a b' ERR\nf() { nvidia-smi; }\nf"),
		"trap":                   before("trap 'echo failed >&2; exit 1' ERR\nnvidia-smi"),
	})
}
