// Runtime is the server that is vendored into bundles: it loads a folder of
// weights and answers over HTTP.
//
// It listens at once; /health says how far the start is and is 200 only after
// the model has run a step and, where known answers are given, reproduced them.
// SIGTERM, SIGINT or SIGHUP stops it: the port closes, requests in flight finish up to a
// deadline. A second signal ends it there and then. A device that is lost, or does
// not answer, is got back by another process: this one fails its requests and
// executes itself again on the same socket, once. Standard error gets one line an
// event. Exit codes: 0 stopped as asked, 1 could not start or finish, 2 usage,
// 130 ended by a second signal. Nothing is read from the environment.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	goruntime "runtime"
	"syscall"

	"slipway/manifest"
	"slipway/runtime/engine"
	"slipway/runtime/kernels"
)

const (
	exitDone        = 0
	exitCannotRun   = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of standard error that went away must not end the server
	os.Exit(execute(&process{args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr, signals: signals, lost: kernels.Sticky}))
}

// process is one run of the program, with what it takes from the system, so that
// tests can give it something else.
type process struct {
	args           []string
	stdout, stderr io.Writer
	signals        <-chan os.Signal
	lost           func(error) bool                    // says of a step's error that the device is lost
	wrap           func(engine.Stepper) engine.Stepper // tests' faults; nil: none
}

// ending is how a run ended: with an exit code, or with a device that is lost and
// the duplicate of the listening socket's descriptor, on which another is to go on.
type ending struct {
	code       int
	err        error
	restart    bool
	descriptor int
}

// execute runs the program and, should it lose its device, replaces the process by
// a fresh one, once. It returns the exit code.
func execute(p *process) int {
	end := p.run()
	if !end.restart {
		return end.code
	}
	err := replaceProcess(p.args, end.descriptor) // returns only if that failed
	fmt.Fprintf(p.stderr, "runtime: %v\n", err)
	return exitCannotRun
}

// run is the program up to its end.
func (p *process) run() ending {
	if len(p.args) == 1 && p.args[0] == "--version" { // serve.sh asks so whether the program can be executed
		fmt.Fprintf(p.stdout, "slipway runtime, %s, %s\n", backend, goruntime.Version())
		return ending{}
	}
	options, help, err := parseOptions(p.args)
	switch {
	case help:
		fmt.Fprint(p.stdout, usage)
		return ending{}
	case err != nil:
		fmt.Fprintf(p.stderr, "runtime: %v\n%s", err, usage)
		return ending{code: exitUsage}
	}
	log := newLineLog(p.stderr)
	defer log.close()
	var end ending
	if options.writeSelftest != "" {
		if end.err = writeSelftest(options); end.err != nil {
			end.code = exitCannotRun
		}
	} else {
		end = p.serve(options, log)
	}
	if end.err != nil {
		log.print(end.err.Error())
		if hint := manifest.Hint(end.err); hint != "" {
			log.print(hint)
		}
	}
	return end
}
