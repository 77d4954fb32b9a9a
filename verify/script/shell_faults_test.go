package script

import "testing"

// What ends a script under set -e, each beside a twin that does not.
func TestErrorExitFaults(t *testing.T) {
	before := func(text string) folder { return altered("exec python3", text+"\nexec python3") }
	ends := func(name, text string) vector {
		return vector{name: name, folder: before(text), check: "C18", line: 8, says: "ends with status 1"}
	}
	runVectors(t, []vector{
		ends("substitution", "x=$(false)"),
		ends("expr", "n=$(expr 1 - 1)"),
		ends("background", "false & wait $!"),
		ends("no job", "kill %1"),
		ends("folder that is there", "mkdir weights"),
		ends("folder without the one above", "mkdir /tmp/a/b"),
		ends("which", "which nvcc"),
		ends("which in a substitution", "NVCC=$(which nvcc)"),
		ends("command -v", "NVCC=$(command -v nvcc)"),
		ends("read of nothing", "read x </dev/null"),
	})
	runClean(t, map[string]folder{
		"local":                      before("f() { local x=$(false); }\nf"),
		"export":                     before("export X=$(false)"),
		"readonly":                   before("readonly X=$(false)"),
		"declare":                    before("declare X=$(false)"),
		"expr":                       before("n=$(expr 2 - 1)"),
		"grep":                       before("n=$(grep -c zzz serve.sh)\nif [ \"$n\" -gt 3 ]; then echo many; fi"),
		"background":                 before("true & wait $!"),
		"job":                        before("sleep 1 &\nkill %1"),
		"no job, asked for":          before("kill %1 || true"),
		"folder that is not there":   before("mkdir /tmp/a\nmkdir /tmp/a/b"),
		"folder that is there, asks": before("mkdir -p weights"),
		"which":                      before("which gcc\nGCC=$(command -v gcc)"),
		"read":                       before("read x <<< text"),
	})
}

// runClean wants no finding at all.
func runClean(t *testing.T, folders map[string]folder) {
	t.Helper()
	for name, f := range folders {
		t.Run("clean/"+name, func(t *testing.T) {
			if a := Analyse(f.submission(), graderOptions()); len(a.Findings) > 0 || a.Undecided != "" {
				t.Error(listed(a))
			}
		})
	}
}
