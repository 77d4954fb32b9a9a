package main

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connections knows which connections have yet to send a request, for which a
// server that shuts down would wait five seconds, and how many requests are
// being answered.
type connections struct {
	mutex   sync.Mutex
	fresh   map[net.Conn]bool // that have sent no request
	answers atomic.Int64      // running
}

// track is for http.Server.ConnState.
func (c *connections) track(connection net.Conn, state http.ConnState) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch state {
	case http.StateNew:
		if c.fresh == nil {
			c.fresh = map[net.Conn]bool{}
		}
		c.fresh[connection] = true
	default:
		delete(c.fresh, connection)
	}
}

// counted is a handler that counts the requests it is answering. A short answer
// reaches its client after its handler has returned, so that a client that has
// it is not counted as waiting.
func (c *connections) counted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.answers.Add(1)
		defer c.answers.Add(-1)
		handler.ServeHTTP(w, r)
	})
}

// running is how many requests are being answered.
func (c *connections) running() int64 { return c.answers.Load() }

// closeNew closes those that have sent no request.
func (c *connections) closeNew() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for connection := range c.fresh {
		connection.Close()
	}
}
