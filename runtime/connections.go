package main

import (
	"net"
	"net/http"
	"sync"
)

// connections knows which connections have yet to send a request and which have
// one running. A server that shuts down would wait five seconds for the former.
type connections struct {
	mutex  sync.Mutex
	states map[net.Conn]http.ConnState // StateNew and StateActive only
}

// track is for http.Server.ConnState.
func (c *connections) track(connection net.Conn, state http.ConnState) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch state {
	case http.StateNew, http.StateActive:
		if c.states == nil {
			c.states = map[net.Conn]http.ConnState{}
		}
		c.states[connection] = state
	default:
		delete(c.states, connection)
	}
}

// running counts the connections with a request.
func (c *connections) running() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	n := 0
	for _, state := range c.states {
		if state == http.StateActive {
			n++
		}
	}
	return n
}

// closeNew closes those that have sent no request.
func (c *connections) closeNew() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for connection, state := range c.states {
		if state == http.StateNew {
			connection.Close()
		}
	}
}
