package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"slipway/verify/boot/sandbox"
)

func init() { parts["mapped"] = mappedPart }

// mappedPart opens a sandbox for another user on two thirds of a processor, and
// tells of it and of who a program inside is.
func mappedPart() int {
	tell := func(l limited) int { _ = json.NewEncoder(os.Stdout).Encode(l); return 0 }
	if os.Getenv(alsoNoMore) != "" {
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return tell(limited{End: err.Error()})
		}
	}
	folder, err := os.MkdirTemp("", "mapped-")
	if err != nil {
		return tell(limited{Error: err.Error()})
	}
	defer os.RemoveAll(folder)
	s, err := sandbox.Open(context.Background(), sandbox.Options{Submission: folder, User: 12345, CPUs: 0.66})
	if err != nil {
		if errors.Is(err, sandbox.ErrUnsupported) {
			return tell(limited{End: err.Error()})
		}
		return tell(limited{Error: err.Error()})
	}
	defer s.Close()
	var output output
	p, err := s.Start(sandbox.Command{Argv: []string{"/bin/sh", "-c", "id -u; grep CapEff /proc/self/status"}, Env: []string{"PATH=/usr/bin:/bin"}, Output: &output})
	if err != nil {
		return tell(limited{Error: err.Error(), Conditions: s.Conditions()})
	}
	if err := p.Err(); err != nil {
		return tell(limited{Error: err.Error()})
	}
	return tell(limited{Conditions: s.Conditions(), End: string(output)})
}

type output []byte

func (o *output) Write(p []byte) (int, error) {
	*o = append(*o, p...)
	return len(p), nil
}

// alsoNoMore makes mappedPart's user namespace one without others below.
const alsoNoMore = "SLIPWAY_TEST_NO_MORE"

// Root of a user namespace that knows one user, as unshare -Ur makes it, can
// become nobody else: what runs inside has another number in a namespace below,
// or, where there can be none, is root, and the sandbox says so.
func TestRootOfAUserNamespace(t *testing.T) {
	t.Run("the number alone", func(t *testing.T) {
		told := asMapped(t)
		if told.Error != "" || told.End != "12345\nCapEff:\t0000000000000000\n" || !anotherUser(t, told.Conditions).Held {
			t.Errorf("%+v", told)
		}
	})
	t.Run("root", func(t *testing.T) {
		told := asMapped(t, alsoNoMore+"=1")
		if told.Error != "" || told.End != "0\nCapEff:\t00000000000005fb\n" || anotherUser(t, told.Conditions).Held {
			t.Errorf("%+v", told)
		}
	})
}

func anotherUser(t *testing.T, all []sandbox.Condition) sandbox.Condition {
	t.Helper()
	for _, c := range all {
		if c.Name == sandbox.AnotherUser {
			return c
		}
	}
	t.Fatalf("no user among %v", all)
	return sandbox.Condition{}
}

// asMapped runs mappedPart as root of a user namespace with one user.
func asMapped(t *testing.T, env ...string) (told limited) {
	t.Helper()
	command := exec.Command(testProgram(t))
	command.Env = append(env, partVariable+"=mapped")
	one := func(host int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: host, Size: 1}}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one(os.Getuid()), GidMappings: one(os.Getgid())}
	data, err := command.Output()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skip("no user namespace: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &told); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if told.Error == "" && told.Conditions == nil {
		t.Skip(told.End)
	}
	return told
}
