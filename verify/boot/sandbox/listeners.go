package sandbox

import (
	"strconv"
	"strings"
)

// Listener is a listening TCP socket.
type Listener struct {
	Port  int
	Inode string // by which the links of /proc/PID/fd name the socket
}

// ReadListeners reads a table of /proc/net, as proc(5) describes it: sl, local
// address as hex IP:PORT, remote address, state (0A is LISTEN), queues, timer,
// retransmissions, uid, timeout, inode.
func ReadListeners(table string) []Listener {
	var all []Listener
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" {
			continue
		}
		_, text, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(text, 16, 16)
		if err != nil {
			continue
		}
		l := Listener{Port: int(port)}
		if len(fields) > 9 {
			l.Inode = fields[9]
		}
		all = append(all, l)
	}
	return all
}
