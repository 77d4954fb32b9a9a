package sandbox

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// address is the sandbox's own beyond loopback: of the block that RFC 5737 sets
// aside for documentation, so that no real machine has it.
const address = "192.0.2.2"

// raiseNetwork brings loopback up and gives it the further address, with no
// route to anything else: a connection elsewhere is refused with ENETUNREACH.
func raiseNetwork() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if err := setFlags(socket, "lo", unix.IFF_UP|unix.IFF_RUNNING); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	host := netip.MustParseAddr(address).As4()
	for _, step := range []struct {
		request uint
		value   [4]byte
	}{{unix.SIOCSIFADDR, host}, {unix.SIOCSIFNETMASK, [4]byte{255, 255, 255, 255}}} {
		// The label makes it a second address of lo, beside 127.0.0.1.
		request, err := unix.NewIfreq("lo:1")
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(step.value[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(socket, step.request, request); err != nil {
			return fmt.Errorf("give lo the address %s: %w", address, err)
		}
	}
	return nil
}

func setFlags(socket int, device string, flags uint16) error {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	request.SetUint16(flags)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// listening returns the TCP ports that something in this network listens on,
// ascending and each once, from the tables that proc(5) describes.
func listening() ([]int, error) {
	seen := map[int]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			continue // a system without IPv6
		}
		if err != nil {
			return nil, err
		}
		for _, port := range listeningIn(string(data)) {
			seen[port] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// listeningIn reads the ports of one table.
func listeningIn(table string) []int {
	var ports []int
	for _, l := range ReadListeners(table) {
		ports = append(ports, l.Port)
	}
	return ports
}
