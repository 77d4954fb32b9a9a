package bundle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/bundle/config"
)

// fakeServer answers --version and otherwise says how it was called.
const fakeServer = `#!/bin/sh
[ "$1" = --version ] && exit 0
printf 'self=%s\n' "$0"
printf 'arg=%s\n' "$@"
`

// submissionFolder is a folder as serve.sh finds it, in a path with a space
// and a quote.
func submissionFolder(t *testing.T, mode os.FileMode) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "it's a submission")
	script := serveScript(
		config.Runtime{Device: config.Argument[string]{Value: "cpu"}},
		config.Serve{
			Port: config.Argument[int64]{Value: 8000}, Model: config.Argument[string]{Value: "a 'b' $c"},
			Thinking: config.Argument[string]{Value: "off"}, AnswerReserve: config.Argument[int64]{Value: 512},
		}, "name", true)
	write(t, filepath.Join(folder, "serve.sh"), string(script))
	write(t, filepath.Join(folder, "runtime/serve"), fakeServer)
	for name, m := range map[string]os.FileMode{"serve.sh": 0o755, "runtime/serve": mode} {
		if err := os.Chmod(filepath.Join(folder, name), m); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestServeScriptIsShort(t *testing.T) {
	if lines := strings.Count(serveTemplate, "\n"); lines > 25 || !strings.HasPrefix(serveTemplate, "#!/bin/sh\n") {
		t.Errorf("serve.sh has %d lines", lines)
	}
	lines := strings.Split(strings.TrimSpace(serveTemplate), "\n")
	if !strings.HasPrefix(lines[len(lines)-1], "exec ") {
		t.Errorf("the last command is %q, not exec", lines[len(lines)-1])
	}
}

func TestServeScript(t *testing.T) {
	for _, tc := range []struct {
		name     string
		mode     os.FileMode
		readOnly bool
		command  func(folder string) (dir string, args []string)
		env      func(folder string) []string
		copied   bool
	}{
		{name: "by itself", mode: 0o755, command: func(f string) (string, []string) { return f, []string{"./serve.sh"} }},
		{name: "sh", mode: 0o755, command: func(f string) (string, []string) { return f, []string{"sh", "serve.sh"} }},
		{name: "bash", mode: 0o755, command: func(f string) (string, []string) { return f, []string{"bash", "serve.sh"} }},
		{name: "from elsewhere", mode: 0o755, command: func(f string) (string, []string) { return "/", []string{"sh", filepath.Join(f, "serve.sh")} }},
		{name: "CDPATH set", mode: 0o755, command: func(f string) (string, []string) {
			return filepath.Dir(f), []string{"sh", filepath.Base(f) + "/serve.sh"}
		}, env: func(f string) []string { return []string{"CDPATH=/usr:" + filepath.Dir(f)} }},
		{name: "with SUBMISSION_DIR", mode: 0o755, command: func(f string) (string, []string) { return "/", []string{"sh", filepath.Join(f, "serve.sh")} },
			env: func(f string) []string { return []string{"SUBMISSION_DIR=" + f} }},
		{name: "script piped, SUBMISSION_DIR", mode: 0o755, command: func(f string) (string, []string) {
			return "/", []string{"sh", "-c", `sh < "$SUBMISSION_DIR/serve.sh"`}
		}, env: func(f string) []string { return []string{"SUBMISSION_DIR=" + f} }},
		{name: "exec bit lost", mode: 0o644, copied: true, command: func(f string) (string, []string) { return f, []string{"sh", "serve.sh"} }},
		{name: "exec bit lost, read-only", mode: 0o644, copied: true, readOnly: true, command: func(f string) (string, []string) { return f, []string{"sh", "serve.sh"} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := submissionFolder(t, tc.mode)
			if tc.readOnly {
				if err := os.Chmod(folder, 0o555); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.Chmod(folder, 0o755) })
			}
			dir, args := tc.command(folder)
			if _, err := exec.LookPath(args[0]); err != nil && !strings.Contains(args[0], "/") {
				t.Skip(err)
			}
			env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(t.TempDir(), "a b"), "copy=/"}
			if err := os.Mkdir(strings.TrimPrefix(env[1], "TMPDIR="), 0o755); err != nil {
				t.Fatal(err)
			}
			if tc.env != nil {
				env = append(env, tc.env(folder)...)
			}
			checkServed(t, folder, runScript(t, dir, env, args...), tc.copied)
		})
	}
}

func runScript(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], append(args[1:], "--port", "9")...)
	if strings.Contains(strings.Join(args, " "), "sh <") {
		cmd = exec.Command(args[0], args[1:]...)
	}
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func checkServed(t *testing.T, folder, out string, copied bool) {
	t.Helper()
	for _, want := range []string{"arg=--weights\narg=" + folder + "/weights\n", "arg=--model\narg=a 'b' $c\n", "arg=--port\narg=8000\n", "arg=--thinking\narg=off\n", "arg=--selftest\narg=" + folder + "/runtime/selftest.json\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if got := !strings.Contains(out, "self="+folder+"/runtime/serve\n"); got != copied {
		t.Errorf("run from a copy: %v, want %v:\n%s", got, copied, out)
	}
	_, self, _ := strings.Cut(out, "self=")
	self, _, _ = strings.Cut(self, "\n")
	if got := strings.Contains(out, "arg=--remove-copy\narg="+filepath.Dir(self)+"\n"); got != copied || strings.Contains(out, "--remove-copy") != copied {
		t.Errorf("the folder of a copy is named: %v, want %v:\n%s", got, copied, out)
	}
}

// On a noexec mount the server runs from the first folder that is writable and
// executable, here the second of two.
func TestServeScriptOnNoexecMount(t *testing.T) {
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %v %s", err, out)
	}
	folder := submissionFolder(t, 0o755)
	mount := t.TempDir()
	const script = `set -e
mount -t tmpfs -o noexec tmpfs "$1"
cp -r "$2" "$1/s"
exec sh "$1/s/serve.sh" --port 9`
	cmd := exec.Command("unshare", "-m", "sh", "-c", script, "sh", mount, folder)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + mount}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, self, ok := strings.Cut(string(out), "self="); ok {
		self, _, _ = strings.Cut(self, "\n")
		t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(self)) })
	}
	checkServed(t, filepath.Join(mount, "s"), string(out), true)
	if strings.Contains(string(out), "self="+mount) {
		t.Errorf("run from the noexec mount:\n%s", out)
	}
}

func TestShellWord(t *testing.T) {
	for _, text := range []string{"plain", "", "a b", "it's", "$(touch /tmp/x)", "`id`", "a\"b", "*", "-n", "é"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellWord(text)).Output()
		if text == "-n" {
			continue // printf's own business
		}
		if err != nil || string(out) != text {
			t.Errorf("%q becomes %q (%v)", text, out, err)
		}
	}
}

func TestServeScriptNamesDevices(t *testing.T) {
	for _, tc := range []struct {
		device  string
		devices []int64
		want    string
	}{
		{"cpu", nil, " --device cpu --port 1 "},
		{"cuda", []int64{0}, " --device cuda --devices 0 --port 1 "},
		{"cuda", []int64{0, 1}, " --device cuda --devices 0,1 --port 1 "},
	} {
		runtime := config.Runtime{Device: config.Argument[string]{Value: tc.device}, Devices: config.Argument[[]int64]{Value: tc.devices}}
		serve := config.Serve{Port: config.Argument[int64]{Value: 1}}
		if got := string(serveScript(runtime, serve, "name", false)); !strings.Contains(got, tc.want) {
			t.Errorf("no %q in:\n%s", tc.want, got)
		}
	}
}
