package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupt WHEN slipway ARG... starts slipway, sends it SIGINT when WHEN has
// come, and demands exit code 130, the one line that says so, and nothing left
// behind. WHEN is
//
//	held        a request meets the registry's fault `hold`
//	reads:FILE  somebody reads from FILE
//	makes:DIR   something appears in DIR
//	types:FIFO  slipway has read from its standard input, which stays open
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "slipway" {
		ts.Fatalf("usage: interrupt WHEN slipway ARG...")
	}
	when, err := occasion(ts, args[0])
	ts.Check(err)
	defer when.close()

	var stdout, stderr bytes.Buffer
	program, err := exec.LookPath("slipway")
	ts.Check(err)
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &stdout, &stderr
	if when.stdin != nil {
		cmd.Stdin = when.stdin
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SLIPWAY_CACHE", "DOCKER_CONFIG"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-when.come:
		ts.Check(cmd.Process.Signal(os.Interrupt))
		err = <-ended
	case err = <-ended:
		ts.Fatalf("ended before it could be interrupted: %v\n%s%s", err, &stdout, &stderr)
	}
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != ExitInterrupted {
		ts.Fatalf("interrupted program ended with: %v\n%s%s", err, &stdout, &stderr)
	}
	ts.Check(checkMessages(ExitInterrupted, stderr.String()))
	ts.Check(checkNothingLeft(ts.Getenv("WORK")))
}

// moment is when to send the signal.
type moment struct {
	come  <-chan struct{}
	close func()
	stdin *os.File // nil: empty
}

func occasion(ts *testscript.TestScript, when string) (moment, error) {
	if when == "held" {
		return moment{come: scriptRegistryOf(ts).holdAgain(), close: func() {}}, nil
	}
	kind, name, _ := strings.Cut(when, ":")
	path := ts.MkAbs(filepath.FromSlash(name))
	switch kind {
	case "reads":
		return watch(path, true)
	case "makes":
		return watch(path, false)
	case "types":
		return typed(path)
	}
	return moment{}, fmt.Errorf("unknown occasion %q", when)
}

// typed is a standard input that brings a few bytes and then nothing.
func typed(fifo string) (moment, error) {
	stdin, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return moment{}, err
	}
	when, err := watch(fifo, true)
	if err != nil {
		return moment{}, errors.Join(err, stdin.Close())
	}
	stop := when.close
	when.close = func() { stop(); _ = stdin.Close() }
	when.stdin = stdin
	_, err = stdin.WriteString("sec")
	return when, err
}
