// Runtime is the server that is vendored into bundles: it loads a folder of
// weights and answers over HTTP.
//
// It listens at once; /health says how far the start is and is 200 only after
// the model has run a step and, where known answers are given, reproduced them.
// SIGTERM, SIGINT or SIGHUP stops it: the port closes, requests in flight finish up to a
// deadline. A second signal ends it there and then. Standard error gets one line
// an event. Exit codes: 0 stopped as asked, 1 could not start or finish, 2 usage,
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
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, signals))
}

// run is the program. Signals come by channel, so that tests can send them.
func run(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	if len(args) == 1 && args[0] == "--version" { // serve.sh asks so whether the program can be executed
		fmt.Fprintf(stdout, "slipway runtime, cpu, %s\n", goruntime.Version())
		return exitDone
	}
	options, help, err := parseOptions(args)
	switch {
	case help:
		fmt.Fprint(stdout, usage)
		return exitDone
	case err != nil:
		fmt.Fprintf(stderr, "runtime: %v\n%s", err, usage)
		return exitUsage
	}
	log := newLineLog(stderr)
	defer log.close()
	code, err := serve(options, log, signals)
	if err != nil {
		log.print(err.Error())
		if hint := manifest.Hint(err); hint != "" {
			log.print(hint)
		}
	}
	return code
}
