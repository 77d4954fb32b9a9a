package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"slipway/verify/boot/sandbox"
)

// TestMain lets scripts start the commands of this package as a process of
// their own, with signals and environment wired as in main.
func TestMain(m *testing.M) {
	sandbox.Main() // this process may be a part of a sandbox
	testscript.Main(m, map[string]func(){
		"slipway": func() { os.Exit(runAsProgram()) },
		"answers": func() { os.Exit(answers()) },
	})
}

func runAsProgram() int {
	limitFileSize()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel(errors.New("interrupted"))
	}()
	return Run(ctx, Environment{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		CacheDir: os.Getenv("SLIPWAY_CACHE"), DockerConfig: os.Getenv("DOCKER_CONFIG"), TempDir: os.Getenv("TMPDIR"),
		Version: "test", Variables: os.Environ(), GoCommand: os.Getenv("GO_COMMAND"),
		Path: os.Getenv("PATH"),
	})
}

// limitFileSize makes every write beyond FILE_SIZE_LIMIT bytes of a file fail,
// as on a full disk but without privileges.
func limitFileSize() {
	limit, err := strconv.ParseUint(os.Getenv("FILE_SIZE_LIMIT"), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // else the system ends the process
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
}

// TestScripts runs testdata/script. Beside testscript's own, the scripts use
// the commands of scriptCommands and these variables:
//
//	REGISTRY       host of the registry that `registry` started
//	SLIPWAY_CACHE  digest cache and unfinished uploads
//	DOCKER_CONFIG  docker's configuration
//	ESC            the control character
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), Cmds: scriptCommands, Condition: scriptCondition,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SLIPWAY_CACHE", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("DOCKER_CONFIG", filepath.Join(env.WorkDir, "docker"))
			env.Setenv("ESC", "\x1b")
			env.Values[registryKey{}] = &scriptRegistry{}
			env.Values[snapshotKey{}] = map[string][]string{}
			return nil
		},
	})
}

// scriptCondition knows [root], and [tmpfs] where a small file system of one's
// own can be mounted.
func scriptCondition(condition string) (bool, error) {
	switch condition {
	case "root":
		return os.Geteuid() == 0, nil
	case "tmpfs":
		return canMount(), nil
	}
	return false, errors.New("unknown condition " + condition)
}

var canMount = sync.OnceValue(func() bool {
	if runtime.GOOS != "linux" {
		return false
	}
	return exec.Command("unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /tmp").Run() == nil
})
