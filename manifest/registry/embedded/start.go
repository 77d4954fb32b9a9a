package embedded

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// Start serves a registry in dir on a free port of the loopback interface.
// address is "127.0.0.1:PORT"; stop ends it, running requests included.
func Start(dir string, options Options) (address string, stop func(), err error) {
	registry, err := New(dir, options)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = registry.Close() // nothing was stored
		return "", nil, fmt.Errorf("start registry: %w", err)
	}
	server := &http.Server{Handler: registry, ReadHeaderTimeout: 30 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with ErrServerClosed when stop is called
	}()
	stop = func() {
		_ = server.Close() // nothing to do about a connection that closes badly
		<-done
		_ = registry.Close()
	}
	return listener.Addr().String(), stop, nil
}
