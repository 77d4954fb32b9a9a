package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupt WHEN slipway ARG... starts slipway, sends it SIGINT when WHEN has
// come, and demands exit code 130, the one line that says so, and nothing left
// behind. WHEN is
//
//	held        a request meets the registry's fault `hold`
//	reads:FILE  somebody reads from FILE
//	makes:DIR   something appears in DIR
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
}

func occasion(ts *testscript.TestScript, when string) (moment, error) {
	if when == "held" {
		return moment{scriptRegistryOf(ts).holdAgain(), func() {}}, nil
	}
	for _, kind := range []string{"reads:", "makes:"} {
		if len(when) > len(kind) && when[:len(kind)] == kind {
			return watch(ts.MkAbs(filepath.FromSlash(when[len(kind):])), kind == "reads:")
		}
	}
	return moment{}, fmt.Errorf("unknown occasion %q", when)
}
