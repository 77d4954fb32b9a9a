// Package cli wires the commands: it reads arguments, calls the packages that
// do the work, and prints. Progress bars, tables and colour live here and
// nowhere else. It never reads the environment; main passes what it needs.
package cli

import (
	"io"
	"io/fs"
	"net/http"
	"net/url"
)

// Environment is everything the commands take from the world around them.
type Environment struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	CacheDir     string                                // of digests and unfinished uploads; "" for none
	DockerConfig string                                // folder of docker's config.json; "" for anonymous
	TempDir      string                                // for rehearsals; "" for the system's
	Proxy        func(*http.Request) (*url.URL, error) // of registry requests; nil for none
	Version      string
	Source       fs.FS    // what the runtime is built from; nil: this program bundles none
	Runtimes     fs.FS    // runtimes that a release carries, serve-DEVICE each; nil: none
	GoCommand    string   // the go command that builds it; "" for none
	GCC          string   // the C compiler that takes part where it is for CUDA; "" for none
	Variables    []string // NAME=value of the machine, for that command
	Path         string   // PATH of what is started
	Platform     string   // system/processor of this machine; "": those that this program is for
	Terminal     bool     // Stderr is a terminal: bars may be drawn
	Colour       bool     // Stdout is a terminal whose user has not refused colours
}

// The exit codes are documented API.
const (
	ExitDone        = 0
	ExitCannotRun   = 1
	ExitUsage       = 2
	ExitFindings    = 3
	ExitInterrupted = 130
)
