package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"slipway/manifest"
	"slipway/runtime/api"
)

// listen opens the port, or takes over the socket of the process that this one
// replaces.
func listen(o options) (net.Listener, error) {
	if o.listenDescriptor < 0 {
		return net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	}
	file := os.NewFile(uintptr(o.listenDescriptor), "listening socket")
	if file == nil {
		return nil, fmt.Errorf("--listen-descriptor %d is no descriptor", o.listenDescriptor)
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("--listen-descriptor %d: %w", o.listenDescriptor, err)
	}
	return listener, nil
}

// abandon ends a server whose device is lost: the requests in flight have failed
// and their clients get to read so. Clients that come meanwhile wait in the
// socket's queue for the process that replaces this one.
func (p *process) abandon(o options, listener net.Listener, server *api.Server, web *http.Server, events *lineLog, loss error) ending {
	server.Restart()
	descriptor, err := -1, error(nil)
	if o.restarted {
		err = manifest.WithHint(fmt.Errorf("%w, and was lost before", loss), "look at the machine: nvidia-smi, dmesg")
	} else if descriptor, err = duplicate(listener); err != nil {
		err = fmt.Errorf("%w; keep the port open: %w", loss, err)
	}
	grace, cancel := context.WithTimeout(context.Background(), cutGrace)
	defer cancel()
	if web.Shutdown(grace) != nil {
		web.Close()
	}
	if err != nil {
		return ending{code: exitCannotRun, err: err}
	}
	events.print(loss.Error())
	select {
	case received := <-p.signals:
		syscall.Close(descriptor)
		events.print("stopping: " + received.String())
		return ending{code: exitDone}
	default:
	}
	events.print("starting again on the same port")
	return ending{restart: true, descriptor: descriptor}
}

// duplicate returns another descriptor of a listening socket, which stays open
// when the listener closes and when the process executes another program.
func duplicate(listener net.Listener) (descriptor int, err error) {
	socket, ok := listener.(syscall.Conn)
	if !ok {
		return 0, errors.New("it is no socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	if controlled := raw.Control(func(fd uintptr) { descriptor, err = syscall.Dup(int(fd)) }); controlled != nil {
		return 0, controlled
	}
	return descriptor, err
}

// replaceProcess executes this program again in this process's place, with the
// listening socket. It returns only if that fails.
func replaceProcess(args []string, descriptor int) error {
	closeOthers(descriptor)
	again := append([]string{os.Args[0]}, args...)
	again = append(again, "--restarted", "--listen-descriptor", strconv.Itoa(descriptor))
	program := "/proc/self/exe" // also where the file was removed
	if _, err := os.Stat(program); err != nil {
		if program, err = os.Executable(); err != nil {
			return fmt.Errorf("start again: %w", err)
		}
	}
	return fmt.Errorf("start again: %w", syscall.Exec(program, again, os.Environ()))
}

// closeOthers has everything but the standard streams and the socket closed when
// another program is executed: a driver's files would hold on to what it allocated.
func closeOthers(descriptor int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // another system
	}
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && n > 2 && n != descriptor {
			syscall.CloseOnExec(n)
		}
	}
}
