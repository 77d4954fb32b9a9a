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
		ends("grep of nothing", "grep a /dev/null"),
		ends("grep of a list", "FOUND=$(ls wheels | grep torch)"),
		ends("grep of a list, under pipefail", "ls wheels | grep torch | head -1"),
		ends("let", "let n=0"),
		ends("grep of other lines", "M=$(echo abc | grep -v abc)"),
		ends("grep that counts", "M=$(echo abc | grep -c abd)"),
		{name: "SIGPIPE", folder: before("yes | head -1"), check: "C18", line: 8, says: "ends with status 141"},
		{name: "SIGPIPE in a substitution", folder: before("KEY=$(tr -dc a-z0-9 </dev/urandom | head -c 16)"), check: "C18", line: 8, says: "ends with status 141"},
		{name: "SIGPIPE through another", folder: before("cat /dev/urandom | base64 | head -c 16"), check: "C18", line: 8, says: "ends with status 141"},
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
		"grep of a word":             before("ls wheels | grep transformers\nls wheels | grep torch || true\nif grep -q torch server.py; then echo torch; fi"),
		"grep of other lines":        before("M=$(printf 'abc\\nabd\\n' | grep -v abc)\n[ \"$M\" = abd ]"),
		"grep that counts":           before("M=$(printf 'abc\\nabd\\n' | grep -c ab)\n[ \"$M\" = 2 ]"),
		"grep of any case":           before("M=$(echo abc | grep -i ABC)"),
		"grep of a pattern":          before("ls wheels | grep 't.*rch'"),
		"end of what does not end":   before("KEY=$(head -c 16 /dev/urandom | base64)\nhead -c 16 </dev/urandom | od -x | head -1"),
		"no pipefail":                before("set +o pipefail\nyes | head -1\nset -o pipefail"),
	})
}

// What keeps signals from the server, and what xargs starts, each beside a twin.
func TestWrappedStartFaults(t *testing.T) {
	starts := func(text string) folder { return altered("exec python3 server.py", text+" server.py") }
	runVectors(t, []vector{
		{name: "setsid", folder: starts("exec setsid python3"), check: "C18", line: 8, says: "session of its own", warning: true},
		{name: "setsid behind another", folder: starts("exec env A=1 setsid --wait nohup python3"), check: "C18", line: 8, says: "session of its own", warning: true},
		{name: "trap", folder: altered("exec python3", "serve() { exec python3 code/export.py a b; }\ntrap \"serve\" ERR\nfalse\nexec python3"), check: "C18", line: 8, says: "what trap starts", warning: true},
		{name: "xargs and signals", folder: starts("echo --dtype float16 | xargs python3"), check: "C18", line: 8, says: "SIGTERM ends the shell"},
		{name: "xargs", folder: altered("exec python3", "echo b --bogus | xargs -r python3 code/export.py a\nexec python3"), check: "C19", line: 8, says: "--bogus"},
		{name: "xargs of a file", folder: altered("exec python3", "xargs -a options python3 code/export.py\nexec python3").with("options", "a\nb\n--bogus\n"), check: "C19", line: 8, says: "--bogus"},
		{name: "xargs of many", folder: altered("exec python3", "echo a b c | xargs -n 2 python3 code/export.py\nexec python3"), check: "C19", line: 8, says: "requires 2 words"},
		{name: "xargs of one", folder: altered("exec python3", "echo c | xargs -I @ python3 code/export.py @\nexec python3"), check: "C19", line: 8, says: "requires 2 words"},
	})
	runClean(t, map[string]folder{
		"nohup":           starts("exec nohup python3"),
		"setsid of other": altered("exec python3", "setsid python3 code/export.py a /tmp/b\nexec python3"),
		"trap":            altered("exec python3", "report() { echo failed; }\ntrap report ERR\nexec python3"),
		"xargs":           altered("exec python3", "echo a /tmp/b --skip-mtp | xargs python3 code/export.py\nls wheels | xargs -n1 echo\nexec python3"),
		"xargs of some":   altered("exec python3", "echo a b c d | xargs -n 2 python3 code/export.py\necho c | xargs -I{} python3 code/export.py {} /tmp/{}\nexec python3"),
		"xargs of none":   altered("exec python3", "true | xargs -r python3 code/export.py\nexec python3"),
	})
}

// What asks somebody who is not there, each beside a twin that does not.
func TestQuestionFaults(t *testing.T) {
	before := func(text string) folder { return altered("exec python3", text+"\nexec python3") }
	fault := func(name, text string) vector {
		return vector{name: name, folder: before(text), check: "C18", line: 8, says: "waits for an answer"}
	}
	runVectors(t, []vector{
		fault("read", "read x"),
		fault("read of the terminal", "read x </dev/tty"),
		fault("time limit under set -e", "read -t 5 x"),
		fault("select", "select x in a b; do break; done"),
		fault("editor", "vim /tmp/settings"),
		fault("pip uninstall", "pip uninstall transformers"),
		{name: "input", folder: server("name = input('model? ')\n"), check: "C18", line: 10, says: "waits for an answer"},
		{name: "input, perhaps", folder: server("if args.text_only:\n    name = input('model? ')\n"), check: "C18", line: 11, says: "waits for an answer", warning: true},
		{name: "password", folder: server("import getpass\nkey = getpass.getpass()\n"), check: "C18", line: 11, says: "waits for an answer"},
		{name: "debugger", folder: server("def answer(x):\n    breakpoint()\n    return x\n"), check: "C18", line: 11, says: "debugger", warning: true},
	})
	runClean(t, map[string]folder{
		"time limit":  before("read -t 1 x || true"),
		"uninstall":   before("pip uninstall -y transformers"),
		"own input":   server("def input(x): return x\ny = input('a')\n"),
		"in a method": server("def ask():\n    return input('go? ')\n"),
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
