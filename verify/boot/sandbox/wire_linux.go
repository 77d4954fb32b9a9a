package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A wire carries messages between two parts of a sandbox: JSON, one message a
// packet, with file descriptors beside it. A message too long for a packet
// travels in a file in memory, which is then the first of its descriptors.
type wire struct{ conn *net.UnixConn }

// packetBytes is well below the smallest usual socket buffer (208 KiB), and
// leaves a first byte that says where the message is.
const packetBytes = 32 << 10

const (
	inPacket = 'p'
	inFile   = 'f'
)

// newWires returns the two ends of a wire; the second is for a process to be
// started.
func newWires() (*wire, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	far := os.NewFile(uintptr(pair[1]), "wire")
	near, err := wireOf(pair[0])
	if err != nil {
		_ = far.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// wireOf takes over a socket descriptor.
func wireOf(descriptor int) (*wire, error) {
	unix.CloseOnExec(descriptor)
	file := os.NewFile(uintptr(descriptor), "wire")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("not a socket between processes")
	}
	return &wire{unixConn}, nil
}

// send sends a message and descriptors, which stay the caller's.
func (w *wire) send(message any, descriptors ...int) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	packet := append([]byte{inPacket}, data...)
	if len(packet) > packetBytes {
		descriptor, err := memoryFile(data)
		if err != nil {
			return err
		}
		defer unix.Close(descriptor)
		packet, descriptors = []byte{inFile}, append([]int{descriptor}, descriptors...)
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	raw, err := w.conn.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Write(func(socket uintptr) bool {
		_, refused = unix.SendmsgN(int(socket), packet, rights, nil, ownMessage)
		return !errors.Is(refused, unix.EAGAIN)
	})
	return errors.Join(err, refused)
}

// ownMessage are the flags of a wire's messages. A socket between processes
// ignores them all, and no program has a use for them together: the launcher
// hands over the listener while nobody answers it yet, so that its messages must
// be told from those that are traced.
const ownMessage = unix.MSG_CONFIRM | unix.MSG_DONTROUTE | unix.MSG_NOSIGNAL

// receive reads one message into message and returns the descriptors, which are
// the caller's from then on. A closed wire is io.EOF.
func (w *wire) receive(message any) ([]int, error) {
	packet, rights := make([]byte, packetBytes), make([]byte, unix.CmsgSpace(16*4))
	n, rightsBytes, _, _, err := w.conn.ReadMsgUnix(packet, rights)
	if n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	descriptors, err := descriptorsIn(rights[:rightsBytes])
	if err != nil {
		return nil, err
	}
	data := packet[1:n]
	if packet[0] == inFile {
		if len(descriptors) == 0 {
			return nil, errors.New("a long message without its file")
		}
		data, err = readMemoryFile(descriptors[0])
		descriptors = descriptors[1:]
	}
	if err == nil {
		err = json.Unmarshal(data, message)
	}
	if err != nil {
		closeAll(descriptors)
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return descriptors, nil
}

func descriptorsIn(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var descriptors []int
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(descriptors)
			return nil, err
		}
		descriptors = append(descriptors, more...)
	}
	for _, descriptor := range descriptors {
		unix.CloseOnExec(descriptor)
	}
	return descriptors, nil
}

func closeAll(descriptors []int) {
	for _, descriptor := range descriptors {
		_ = unix.Close(descriptor)
	}
}

func memoryFile(data []byte) (int, error) {
	descriptor, err := unix.MemfdCreate("message", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	for offset := 0; offset < len(data); {
		n, err := unix.Pwrite(descriptor, data[offset:], int64(offset))
		if err != nil {
			_ = unix.Close(descriptor)
			return -1, err
		}
		offset += n
	}
	return descriptor, nil
}

func readMemoryFile(descriptor int) ([]byte, error) {
	file := os.NewFile(uintptr(descriptor), "message")
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	_, err = file.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		err = nil // an empty file
	}
	return data, err
}

func (w *wire) close() error { return w.conn.Close() }
