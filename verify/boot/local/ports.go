package local

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"context"

	"slipway/manifest"
	"slipway/verify/boot/ask"
	"slipway/verify/boot/sandbox"
)

// portsPolls is how many polls of /health lie between two looks at the ports
// that a server listens on, which cost more.
const portsPolls = 25

// checkFree is an error where somebody listens on a port: that one would be
// asked in the submission's place.
func checkFree(port int) error {
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return manifest.WithHint(fmt.Errorf("start the submission: port %d is taken on this machine", port), "end what listens there, or choose another with --port")
	}
	return listener.Close()
}

// listening are the TCP ports, ascending, that the server's processes listen on,
// as proc(5) shows them; nil where the system does not.
func (s *Server) listening() []int {
	sockets := listeningSockets()
	if len(sockets) == 0 {
		return nil
	}
	group := s.command.Process.Pid
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var own []string
	for _, folder := range folders {
		if groupOf(folder) == strconv.Itoa(group) {
			own = append(own, folder)
		}
	}
	for _, pid := range Strays(s.home, group) {
		own = append(own, fmt.Sprintf("/proc/%d", pid))
	}
	seen := map[int]bool{}
	for _, folder := range own {
		names, _ := filepath.Glob(folder + "/fd/*")
		for _, name := range names {
			target, _ := os.Readlink(name) // it may be closed by now
			if port, listens := sockets[target]; listens {
				seen[port] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// listeningSockets are this machine's listening TCP sockets, by what the links
// in /proc/PID/fd say of them, and their ports.
func listeningSockets() map[string]int {
	ports := map[string]int{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(table) // there may be none
		for _, l := range sandbox.ReadListeners(string(data)) {
			ports["socket:["+l.Inode+"]"] = l.Port
		}
	}
	return ports
}

// elsewhere is the URL of another port where the server's own processes answer
// GET /health with 200; "" where there is none.
func (s *Server) elsewhere(ctx context.Context) string {
	for _, port := range s.listening() {
		url := localURL(port)
		if url == s.URL {
			continue
		}
		if status, _ := ask.GetHealth(ctx, ask.Direct, url); status == http.StatusOK {
			return url
		}
	}
	return ""
}

// listeningText says for an error where a server listens, if that is known.
func listeningText(ports []int) string {
	switch {
	case ports == nil:
		return ""
	case len(ports) == 0:
		return "; it listens nowhere"
	}
	return "; it listens on port " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ports)), ", "), "[]")
}

func localURL(port int) string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
