package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A line that nobody reads holds up neither who writes it nor later ones.
func TestLogWithoutReader(t *testing.T) {
	reader, writer := io.Pipe()
	log := newLineLog(writer)
	const lines = 3 * logLines
	for i := range lines {
		log.print(fmt.Sprintf("line\n%d\n", i))
	}
	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(reader)
		read <- string(all)
	}()
	log.close()
	writer.Close()
	got := strings.Split(strings.TrimSpace(<-read), "\n")
	if got[0] != "runtime: line 0" {
		t.Errorf("first %q", got[0])
	}
	kept, dropped := 0, 0
	for _, line := range got {
		if strings.HasPrefix(line, "runtime: line ") {
			kept++
		} else if n, err := fmt.Sscanf(line, "runtime: %d lines were left out here", &dropped); n != 1 || err != nil {
			t.Errorf("line %q", line)
		}
	}
	if kept < logLines || kept+dropped != lines {
		t.Errorf("%d lines were written and %d counted as left out, of %d", kept, dropped, lines)
	}
}

// The runtime stops when it is told to, also where nobody reads its lines.
func TestStopWithoutReader(t *testing.T) {
	_, writer := io.Pipe()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	if code := run([]string{"--host", "127.0.0.1", "--port", "0", "--weights", ternary}, io.Discard, writer, signals); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	writer.Close()
}

// A connection that never sent a request is no request that was cut.
func TestStopWithIdleConnection(t *testing.T) {
	for _, deadline := range []string{"0s", "1h"} {
		p := launch(t, "--weights", ternary, "--drain", deadline)
		connection, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		p.post(t, "/v1/completions", map[string]any{"prompt": "1", "max_tokens": 1}, &struct{}{}) // accepted later than it
		p.signals <- syscall.SIGTERM
		if code := <-p.code; code != exitDone {
			t.Errorf("--drain %s: exit code %d: %q", deadline, code, p.log())
		}
		if n, err := connection.Read(make([]byte, 1)); err == nil {
			t.Errorf("--drain %s: read %d bytes", deadline, n)
		}
		connection.Close()
	}
}
