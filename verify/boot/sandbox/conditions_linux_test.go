package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"slipway/verify/boot/sandbox"
)

// needs skips the test where a condition is not to be had.
func needs(t *testing.T, s *sandbox.Sandbox, name string) {
	t.Helper()
	for _, c := range s.Conditions() {
		if c.Name == name && c.Held {
			return
		} else if c.Name == name {
			t.Skipf("%s: %s", name, c.Detail)
		}
	}
	t.Fatalf("no condition %q among %v", name, s.Conditions())
}

// Each condition is shown by a script, and by its twin where it was not asked
// for.
func TestConditions(t *testing.T) {
	const mib = 1 << 20
	program := map[string]string{"run.sh": "#!/bin/sh\necho ran\n"}
	fill := func(folder string, count string) string {
		return "dd if=/dev/zero of=" + folder + "/x bs=1M count=" + count + " 2>&1 | grep -o 'No space left' | sort -u"
	}
	inFolder := func(folder string) string {
		return "cp /submission/run.sh " + folder + "/x.sh; " + folder + "/x.sh 2>/dev/null; echo $?"
	}
	for _, tc := range []struct {
		name      string
		condition string
		options   sandbox.Options
		script    string
		want      string
	}{
		{"the submission is not written", sandbox.ReadOnlySubmission, sandbox.Options{}, "echo x 2>/dev/null >/submission/new || echo refused", "refused"},
		{"nor its files", sandbox.ReadOnlySubmission, sandbox.Options{}, "echo x 2>/dev/null >>/submission/run.sh || echo refused", "refused"},
		{"the submission is noexec", sandbox.NoExecSubmission, sandbox.Options{NoExec: true}, "/submission/run.sh 2>/dev/null; echo $?", "126"},
		{"or not", sandbox.ReadOnlySubmission, sandbox.Options{}, "/submission/run.sh; echo $?", "ran\n0"},
		{"elsewhere", sandbox.ReadOnlySubmission, sandbox.Options{At: "/grader/deep/down"}, "cd /grader/deep/down && ./run.sh", "ran"},
		{"below a folder of the machine", sandbox.ReadOnlySubmission, sandbox.Options{At: "/var/lib/there/it/is"}, "/var/lib/there/it/is/run.sh; ls /var/lib | grep -c .. | grep -qx 1 || echo others", "ran\nothers"},
		{"in /tmp", sandbox.ReadOnlySubmission, sandbox.Options{At: "/tmp/it"}, "/tmp/it/run.sh; echo x 2>/dev/null >/tmp/it/x || echo refused", "ran\nrefused"},
		{"in a folder that was to be hidden", sandbox.ReadOnlySubmission, sandbox.Options{At: "/opt/not/there/it", Hide: []string{"/opt/not/there"}}, "/opt/not/there/it/run.sh", "ran"},
		{"in a hidden folder", sandbox.ReadOnlySubmission, sandbox.Options{At: "/opt/it", Hide: []string{"/opt"}}, "/opt/it/run.sh; ls /opt", "ran\nit"},
		{"/dev/shm is small", sandbox.SmallShared, sandbox.Options{}, fill("/dev/shm", "65"), "No space left"},
		{"but not smaller", sandbox.SmallShared, sandbox.Options{}, fill("/dev/shm", "60"), ""},
		{"/dev/shm is noexec", sandbox.SmallShared, sandbox.Options{SharedMemory: sandbox.Volume{NoExec: true}}, inFolder("/dev/shm"), "126"},
		{"or not", sandbox.SmallShared, sandbox.Options{}, inFolder("/dev/shm"), "ran\n0"},
		{"/dev/shm is larger", sandbox.SmallShared, sandbox.Options{SharedMemory: sandbox.Volume{Bytes: 80 * mib}}, fill("/dev/shm", "70"), ""},
		{"/tmp is small", sandbox.SmallTemp, sandbox.Options{Temp: sandbox.Volume{Bytes: 2 * mib}}, fill("/tmp", "3"), "No space left"},
		{"/var/tmp too", sandbox.SmallTemp, sandbox.Options{Temp: sandbox.Volume{Bytes: 2 * mib}}, fill("/var/tmp", "3"), "No space left"},
		{"or not", sandbox.SmallTemp, sandbox.Options{}, fill("/tmp", "3"), ""},
		{"/tmp is noexec", sandbox.SmallTemp, sandbox.Options{Temp: sandbox.Volume{NoExec: true}}, inFolder("/tmp"), "126"},
		{"or not", sandbox.SmallTemp, sandbox.Options{}, inFolder("/tmp"), "ran\n0"},
		{"/tmp is read-only", sandbox.SmallTemp, sandbox.Options{Temp: sandbox.Volume{ReadOnly: true}}, "echo x 2>/dev/null >/tmp/x || echo refused", "refused"},
		{"the environment is what was given", sandbox.CleanEnvironment, sandbox.Options{}, "cat /proc/self/environ | tr '\\0' '\\n' | grep -v '^PWD=' | sort", "A=b c\nHOME=/tmp/home\nPATH=/usr/local/bin:/usr/bin:/bin"},
		{"HOME is there and empty", sandbox.CleanEnvironment, sandbox.Options{User: 12345}, "cd && pwd && ls -A && echo x >x && cat x", "/tmp/home\nx"},
		{"who has a name", sandbox.AnotherUser, sandbox.Options{User: 12345}, "id -un; id -gn; grep -c '^root:' /etc/passwd", "submission\nsubmission\n1"},
		{"another user", sandbox.AnotherUser, sandbox.Options{User: 12345}, "id -u; id -g; id -G", "12345\n12345\n12345"},
		{"or root", sandbox.CleanEnvironment, sandbox.Options{}, "id -u", "0"},
		{"no mount", sandbox.NoPrivilege, sandbox.Options{}, "mount -t tmpfs x /tmp 2>/dev/null || echo refused; unshare -Ur true 2>/dev/null || echo refused", "refused\nrefused"},
		{"no writes to the machine's settings", sandbox.ConfinedWrites, sandbox.Options{}, "echo 1 2>/dev/null >/proc/sys/vm/overcommit_memory || echo refused; echo h 2>/dev/null >/proc/sysrq-trigger || echo refused", "refused\nrefused"},
		{"no writes to the machine", sandbox.ConfinedWrites, sandbox.Options{}, "for d in / /etc /usr /var /sys/kernel; do echo x 2>/dev/null >$d/x && echo written; done; echo done", "done"},
		{"writes in memory", sandbox.ConfinedWrites, sandbox.Options{}, "for d in /tmp /var/tmp /run /dev/shm; do echo x >$d/x && mkdir $d/y && mv $d/x $d/y/z || echo refused; done; cat /tmp/y/z", "x"},
		{"no network", sandbox.OwnNetwork, sandbox.Options{}, "bash -c 'echo >/dev/tcp/198.51.100.1/80' 2>&1 | grep -o 'Network is unreachable' | sort -u; bash -c 'echo >/dev/tcp/127.0.0.1/1' 2>&1 | grep -o 'Connection refused' | sort -u; ls /sys/class/net >/dev/null; cat /proc/net/dev | grep -c :", "Network is unreachable\nConnection refused\n1"},
		{"a hidden folder is empty", sandbox.ConfinedWrites, sandbox.Options{Hide: []string{"/opt", "/home", "/not/there"}}, "ls -A /opt /home 2>&1; echo x 2>/dev/null >/opt/x || echo refused", "/home:\n\n/opt:\nrefused"},
		{"what this machine has gathered is not there", sandbox.ConfinedWrites, sandbox.Options{}, "for d in /var/cache /var/log /var/spool /var/backups /srv /mnt /media; do [ -e $d ] && ls -A $d && echo x 2>/dev/null >$d/x && echo written; done; [ -e /var/lib ] && echo rest", "rest"},
		{"which may hold the submission", sandbox.ReadOnlySubmission, sandbox.Options{At: "/srv/other name"}, "'/srv/other name/run.sh'; ls /srv", "ran\nother name"},
		{"its secrets are not there, even for root", sandbox.CleanEnvironment, sandbox.Options{}, "for f in /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/ssh/ssh_host_*_key; do [ ! -e $f ] || cat $f; done; [ -s /etc/passwd ] && echo accounts", "accounts"},
		{"its own processes only", sandbox.ConfinedWrites, sandbox.Options{}, "ls /proc | grep -c '^[0-9]' | grep -qx '[2-5]' && echo few", "few"},
		{"devices", sandbox.ConfinedWrites, sandbox.Options{User: 12345}, "echo x >/dev/null; head -c 3 /dev/zero | wc -c; echo in | cat /dev/stdin; [ -r /dev/urandom ] && ls /dev/sda /dev/vda /dev/kmsg 2>/dev/null; echo done", "3\nin\ndone"},
		{"nothing of ours is open", sandbox.CleanEnvironment, sandbox.Options{}, "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3"},
		{"signals are at their defaults", sandbox.CleanEnvironment, sandbox.Options{}, "grep -E 'SigIgn|SigBlk' /proc/self/status | cut -f2", "0000000000000000\n0000000000000000"},
		{"new privileges are not to be had", sandbox.NoPrivilege, sandbox.Options{User: 12345}, "grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status | grep -v CapBnd | cut -f2", "0000000000000000\n1"},
		{"the first to go where memory is short", sandbox.CleanEnvironment, sandbox.Options{}, "cat /proc/self/oom_score_adj", "1000"},
		{"not all the processes that this machine could have", sandbox.CleanEnvironment, sandbox.Options{}, "[ $(bash -c 'ulimit -u') -le 16384 ] && echo fewer", "fewer"},
		{"root is a container's root", sandbox.NoPrivilege, sandbox.Options{}, "grep -E 'CapEff' /proc/self/status | cut -f2", "00000000000005fb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.options.Submission = submission(t, program)
			s := open(t, tc.options)
			needs(t, s, tc.condition)
			got, err := script(t, s, tc.script, "HOME=/tmp/home", "A=b c")
			if got != tc.want {
				t.Errorf("%s\ngot  %q (%v)\nwant %q", tc.script, got, err, tc.want)
			}
		})
	}
}

// What a filter of system calls by number and plain argument would miss.
func TestCallsByTheBackDoor(t *testing.T) {
	program := testProgram(t)
	s := open(t, sandbox.Options{Submission: filepath.Dir(program), User: 12345})
	needs(t, s, sandbox.NoPrivilege)
	var output strings.Builder
	p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}, Env: []string{partVariable + "=calls"}, Output: &output})
	if err != nil {
		t.Fatal(err)
	}
	if got := ended(t, p); got != "" || output.String() != "function not implemented operation not permitted <nil>\n" {
		t.Errorf("%s %s", got, output.String())
	}
}

// A program of i386 would make its calls past the filter and the trace.
func TestProgramOfAnotherProcessor(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("this processor runs no other's programs")
	}
	folder := submission(t, map[string]string{"program": string(exitOf386(7))})
	if err := os.Chmod(filepath.Join(folder, "program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(filepath.Join(folder, "program")).Run(); err == nil || err.Error() != "exit status 7" {
		t.Skip("this system runs no program of i386: ", err)
	}
	s := open(t, sandbox.Options{Submission: folder})
	needs(t, s, sandbox.NoPrivilege)
	p, err := s.Start(sandbox.Command{Argv: []string{"/submission/program"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := ended(t, p); got != "signal: segmentation fault" {
		t.Errorf("ended with %q: its calls are made", got)
	}
}

// exitOf386 is a program of i386 that exits with a status, and dies of a signal
// where that call is not made.
func exitOf386(status byte) []byte {
	const base, headers = 0x08048000, 52 + 32
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, status, 0, 0, 0, 0xcd, 0x80, 0xf4} // mov eax, 1; mov ebx, status; int 0x80; hlt
	size := uint32(headers + len(code))
	program := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	program = binary.LittleEndian.AppendUint16(program, 2) // an executable
	program = binary.LittleEndian.AppendUint16(program, 3) // of i386
	for _, word := range []uint32{1, base + headers, 52, 0, 0} {
		program = binary.LittleEndian.AppendUint32(program, word)
	}
	for _, half := range []uint16{52, 32, 1, 0, 0, 0} {
		program = binary.LittleEndian.AppendUint16(program, half)
	}
	for _, word := range []uint32{1, 0, base, base, size, size, 5, 0x1000} { // loaded, readable and executable
		program = binary.LittleEndian.AppendUint32(program, word)
	}
	return append(program, code...)
}

func TestWritesAreLost(t *testing.T) {
	machine := filepath.Join(t.TempDir(), "x")
	s := open(t, sandbox.Options{})
	if got, err := script(t, s, "mkdir -p "+filepath.Dir(machine)+" && echo x >"+machine+" && cat "+machine); got != "x" {
		t.Fatalf("wrote in /tmp: %q, %v", got, err)
	}
	if _, err := os.Stat(machine); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was written inside is on this machine: %v", err)
	}
}

func TestAnotherRoot(t *testing.T) {
	root := submission(t, map[string]string{"here": "it is"})
	for _, folder := range []string{"bin", "lib", "usr", "var/tmp", "opt"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "bin/program"), mustRead(t, "/proc/self/exe"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyLibraries(t, root)
	s := open(t, sandbox.Options{Root: root, At: "/opt/deep/it", Submission: submission(t, map[string]string{"file": ""})})
	var output strings.Builder
	p, err := s.Start(sandbox.Command{Argv: []string{"/bin/program"}, Env: []string{partVariable + "=list"}, Output: &output})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err, output.String())
	}
	for _, want := range []string{"/here\n", "/opt/deep/it/file\n", "/dev/null\n"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("no %q in\n%s", want, output.String())
		}
	}
	if strings.Contains(output.String(), "/etc/passwd") {
		t.Error("the machine's root is there as well")
	}
	if _, err := os.Stat(filepath.Join(root, "opt/deep")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the root was written: %v", err)
	}
}

// copyLibraries copies what this program is linked against, if it is.
func copyLibraries(t *testing.T, root string) {
	t.Helper()
	for line := range strings.Lines(string(mustRead(t, "/proc/self/maps"))) {
		fields := strings.Fields(line)
		path := fields[len(fields)-1]
		if !strings.Contains(path, ".so") {
			continue
		}
		copyTo(t, path, filepath.Join(root, path))
		if strings.Contains(path, "/ld-linux") { // programs name it by another path
			copyTo(t, path, filepath.Join(root, "lib64", filepath.Base(path)))
		}
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, mustRead(t, from), 0o755); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOptionsThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		options sandbox.Options
		want    string
	}{
		{"no submission", sandbox.Options{}, "no submission"},
		{"a missing one", sandbox.Options{Submission: "/not/there"}, "/not/there"},
		{"a file", sandbox.Options{Submission: file}, "not a folder"},
		{"a missing root", sandbox.Options{Submission: t.TempDir(), Root: "/not/there"}, "/not/there"},
		{"memory for no program", sandbox.Options{Submission: t.TempDir(), Memory: 4096}, "4096 bytes of memory"},
		{"at the root", sandbox.Options{Submission: t.TempDir(), At: "/"}, `at "/"`},
		{"at a relative path", sandbox.Options{Submission: t.TempDir(), At: "here"}, `at "here"`},
		{"in /proc", sandbox.Options{Submission: t.TempDir(), At: "/proc/1"}, `at "/proc/1"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := sandbox.Open(context.Background(), tc.options)
			if err == nil || errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
