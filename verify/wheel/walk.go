package wheel

import (
	"bufio"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"slipway/manifest"
)

// Signatures, flags and methods of PKWARE's APPNOTE.TXT, section 4.3.
const (
	localSignature      = 0x04034b50
	descriptorSignature = 0x08074b50
	centralSignature    = 0x02014b50
	end64Signature      = 0x06064b50
	locator64Signature  = 0x07064b50
	endSignature        = 0x06054b50

	flagEncrypted  = 1 << 0
	flagDescriptor = 1 << 3 // sizes and checksum follow the data

	methodStored   = 0
	methodDeflated = 8

	zip64Field = 0x0001 // tag of the extra field with 64-bit sizes
)

// header is what a local header, and then the directory, say of a member.
type header struct {
	flags, method uint16
	crc           uint32
	packed, size  int64
	wide          bool // sizes of 64 bits
}

// walk reads a ZIP archive in order.
type walk struct {
	ctx     context.Context
	options Options
	in      *bufio.Reader
	hash    hash.Hash
	size    int64
	read    *counter

	facts   *Facts
	members []*member
	byPath  map[string]*member
	records map[string][]byte
}

// counter counts what was taken out of a reader that reads ahead.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func newWalk(ctx context.Context, r io.Reader, size int64, options Options) *walk {
	w := &walk{ctx: ctx, options: options, hash: manifest.NewHash(), size: size, facts: &Facts{}, byPath: map[string]*member{}, records: map[string][]byte{}}
	w.read = &counter{r: io.TeeReader(r, w.hash)}
	w.in = bufio.NewReaderSize(w.read, 256<<10)
	return w
}

// at is the offset of the next byte.
func (w *walk) at() int64 { return w.read.n - int64(w.in.Buffered()) }

func clip(s string) string { return manifest.Clip(s) }

// take reads so many bytes.
func (w *walk) take(n int) ([]byte, error) {
	p := make([]byte, n)
	_, err := io.ReadFull(w.in, p)
	return p, early(err)
}

// early says what the end of the file means within a structure.
func early(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("ends early: it was cut off, or is no ZIP archive")
	}
	return err
}

// run walks over members, directory and end.
func (w *walk) run() error {
	for {
		begin := w.at()
		head, err := w.take(4)
		if err != nil {
			return err
		}
		switch signature := binary.LittleEndian.Uint32(head); {
		case signature == localSignature:
			if err := w.member(begin); err != nil {
				return err
			}
		case len(w.members) > 0 && (signature == centralSignature || signature == endSignature):
			return w.directory(begin, signature)
		default:
			return fmt.Errorf("bytes at offset %d are neither a file's header nor the directory", begin)
		}
	}
}

// member reads a member whose local header's signature was read at begin.
func (w *walk) member(begin int64) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if len(w.members) >= maxMembers {
		return fmt.Errorf("has more than %d files", maxMembers)
	}
	fixed, err := w.take(26)
	if err != nil {
		return err
	}
	h := header{flags: u16(fixed, 2), method: u16(fixed, 4), crc: u32(fixed, 10), packed: int64(u32(fixed, 14)), size: int64(u32(fixed, 18))}
	name, extra, err := w.nameAndExtra(int(u16(fixed, 22)), int(u16(fixed, 24)))
	if err != nil {
		return err
	}
	if err := h.widen(extra, nil); err != nil {
		return fmt.Errorf("%s: %w", clip(name), err)
	}
	m := &member{path: name, header: h, offset: begin}
	if err := w.content(m); err != nil {
		return fmt.Errorf("%s: %w", clip(name), err)
	}
	if w.byPath[name] != nil {
		w.fault(Wrong, name, "is in the wheel twice: readers differ in which one they take", "", "")
	}
	w.byPath[name] = m
	if !strings.HasSuffix(name, "/") { // folders are nobody's bytes
		w.members = append(w.members, m)
	} else if m.size > 0 {
		w.fault(Wrong, name, "is a folder that holds bytes", "", "")
	}
	return nil
}

func (w *walk) nameAndExtra(nameBytes, extraBytes int) (name string, extra []byte, err error) {
	if nameBytes == 0 || nameBytes > maxNameBytes {
		return "", nil, fmt.Errorf("a file's name has %d bytes", nameBytes)
	}
	p, err := w.take(nameBytes + extraBytes)
	if err != nil {
		return "", nil, err
	}
	name, extra = string(p[:nameBytes]), p[nameBytes:]
	if fault := nameFault(name); fault != "" {
		return "", nil, fmt.Errorf("file %q %s", clip(name), fault)
	}
	return name, extra, nil
}

// nameFault says why a name is none that an installer may follow, or "".
func nameFault(name string) string {
	inner := strings.TrimSuffix(name, "/")
	switch {
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' }):
		return "has a control character or a backslash in its name"
	case inner == "" || path.Clean(inner) != inner || strings.HasPrefix(inner, "/") || inner == ".." || strings.HasPrefix(inner, "../"):
		return "has a name that leaves the wheel, or is spelt in a roundabout way"
	}
	return ""
}

// widen takes 64-bit sizes, and a directory entry's offset, from the extra
// field where the 32-bit ones say so.
func (h *header) widen(extra []byte, offset *int64) error {
	const full = 0xffffffff
	for len(extra) >= 4 {
		tag, n := u16(extra, 0), int(u16(extra, 2))
		if n > len(extra)-4 {
			return errors.New("its extra field is cut off")
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		if tag != zip64Field {
			continue
		}
		h.wide = true
		for _, value := range []*int64{&h.size, &h.packed, offset} {
			if value == nil || *value != full {
				continue
			}
			if len(field) < 8 {
				return errors.New("its extra field lacks a size")
			}
			wide := binary.LittleEndian.Uint64(field)
			if wide > 1<<62 {
				return errors.New("its size is out of range")
			}
			*value, field = int64(wide), field[8:]
		}
	}
	return nil
}

// content reads a member's data, and what follows it.
func (w *walk) content(m *member) error {
	h := &m.header
	if h.flags&flagEncrypted != 0 {
		return errors.New("is encrypted")
	}
	described := h.flags&flagDescriptor != 0
	begin := w.at()
	var data io.Reader
	switch {
	case h.method == methodStored && described && h.packed == 0 && !w.emptyFollows():
		return errors.New("is stored without saying how long it is")
	case h.method == methodStored:
		data = io.LimitReader(w.in, h.packed)
	case h.method == methodDeflated:
		data = flate.NewReader(w.in) // which reads no byte too many from a bufio.Reader
	default:
		return fmt.Errorf("is compressed by method %d, which installers do not know", h.method)
	}
	sum, err := w.consume(m, data)
	if err != nil {
		return err
	}
	packed := w.at() - begin
	if described {
		if err := w.descriptor(h); err != nil {
			return err
		}
	}
	if packed != h.packed || m.size != h.size || sum != h.crc {
		return errors.New("is not what its header says: size or checksum differ")
	}
	return nil
}

// emptyFollows reports whether the sizes that follow are those of no bytes.
func (w *walk) emptyFollows() bool {
	next, err := w.in.Peek(16)
	return err == nil && u32(next, 0) == descriptorSignature && u32(next, 8) == 0 && u32(next, 12) == 0
}

// consume hashes a member's data, keeps what is looked at whole, and returns
// its CRC-32.
func (w *walk) consume(m *member, data io.Reader) (uint32, error) {
	digest, sum := manifest.NewHash(), crc32.NewIEEE()
	var head, kept []byte
	keep := keepBytes(m.path)
	buffer := make([]byte, 64<<10)
	for {
		n, err := data.Read(buffer)
		p := buffer[:n]
		digest.Write(p) // a hash never returns an error
		sum.Write(p)
		head = append(head, p[:min(n, HeadBytes-len(head))]...)
		kept = append(kept, p[:min(n, keep-len(kept))]...)
		m.size += int64(n)
		w.facts.Bytes += int64(n)
		switch {
		case w.facts.Bytes > maxInflation*w.size+spareInflation:
			return 0, fmt.Errorf("the wheel's %d bytes inflate to more than %d times as many", w.size, maxInflation)
		case errors.Is(err, io.EOF):
			m.digest = manifest.FinishHash(digest)
			return sum.Sum32(), w.end(m, head, kept)
		case err != nil:
			return 0, early(err)
		case w.ctx.Err() != nil:
			return 0, w.ctx.Err()
		}
	}
}

// keepBytes is how much of a member is looked at whole.
func keepBytes(p string) int {
	switch {
	case isRecord(p):
		return maxRecordBytes
	case strings.HasSuffix(p, ".pth"):
		return maxHookBytes
	}
	return 0
}

func (w *walk) end(m *member, head, kept []byte) error {
	if isRecord(m.path) {
		if m.size > maxRecordBytes {
			return fmt.Errorf("is longer than %d bytes", maxRecordBytes)
		}
		w.records[m.path] = kept
	}
	if !strings.HasSuffix(m.path, "/") {
		w.look(m, head, kept)
	}
	return nil
}

// descriptor reads sizes and checksum that follow the data.
func (w *walk) descriptor(h *header) error {
	n := 16
	if h.wide {
		n = 24
	}
	p, err := w.take(n)
	if err != nil {
		return err
	}
	if u32(p, 0) != descriptorSignature {
		return errors.New("is not followed by its sizes")
	}
	h.crc = u32(p, 4)
	if h.wide {
		h.packed, h.size = int64(binary.LittleEndian.Uint64(p[8:])), int64(binary.LittleEndian.Uint64(p[16:]))
	} else {
		h.packed, h.size = int64(u32(p, 8)), int64(u32(p, 12))
	}
	return nil
}

func u16(p []byte, at int) uint16 { return binary.LittleEndian.Uint16(p[at:]) }
func u32(p []byte, at int) uint32 { return binary.LittleEndian.Uint32(p[at:]) }
