package wheel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// linkMode is a symbolic link among the Unix modes in an entry's attributes.
const (
	typeMask = 0o170000
	linkMode = 0o120000
)

// directory reads the central directory, whose first signature was read at
// begin, and holds it against the members: each once, in any order.
func (w *walk) directory(begin int64, signature uint32) error {
	byOffset := map[int64]string{}
	for name, m := range w.byPath {
		byOffset[m.offset] = name
	}
	entries := 0
	for ; signature == centralSignature; entries++ {
		if entries >= maxMembers*2 {
			return errors.New("its directory has too many entries")
		}
		if err := w.entry(byOffset); err != nil {
			return err
		}
		next, err := w.take(4)
		if err != nil {
			return err
		}
		signature = u32(next, 0)
	}
	for _, name := range byOffset {
		return fmt.Errorf("file %q is not in its directory, or stands there as another", clip(name))
	}
	return w.ending(begin, signature, entries)
}

// entry reads one entry and takes its member off the list.
func (w *walk) entry(left map[int64]string) error {
	fixed, err := w.take(42)
	if err != nil {
		return err
	}
	h := header{flags: u16(fixed, 4), method: u16(fixed, 6), crc: u32(fixed, 12), packed: int64(u32(fixed, 16)), size: int64(u32(fixed, 20))}
	offset := int64(u32(fixed, 38))
	name, extra, err := w.nameAndExtra(int(u16(fixed, 24)), int(u16(fixed, 26)))
	if err != nil {
		return err
	}
	if err := h.widen(extra, &offset); err != nil {
		return fmt.Errorf("%s: %w", clip(name), err)
	}
	if _, err := w.take(int(u16(fixed, 28))); err != nil { // a comment
		return err
	}
	m := w.byPath[name]
	if there, ok := left[offset]; !ok || there != name {
		return fmt.Errorf("its directory lists %q where the file of that name does not lie", clip(name))
	}
	delete(left, offset)
	if got := m.header; h.method != got.method || h.crc != got.crc || h.packed != got.packed || h.size != got.size {
		return fmt.Errorf("%s: directory and local header differ", clip(name))
	}
	if mode := u32(fixed, 34) >> 16; u16(fixed, 0)>>8 == 3 && mode&typeMask == linkMode { // made on Unix
		w.fault(Wrong, name, "is a symbolic link", "", "")
	}
	return nil
}

// ending reads the records that end the archive; nothing may follow them.
func (w *walk) ending(begin int64, signature uint32, entries int) error {
	after := w.at() - 4
	if signature == end64Signature {
		p, err := w.take(8)
		if err != nil {
			return err
		}
		if n := binary.LittleEndian.Uint64(p); n != 44 {
			return fmt.Errorf("its 64-bit end has %d bytes, not 44", n)
		}
		if p, err = w.take(44 + 20 + 4); err != nil { // the rest, the locator, the next signature
			return err
		}
		if u32(p, 44) != locator64Signature {
			return errors.New("its 64-bit end is not followed by a locator")
		}
		if at := binary.LittleEndian.Uint64(p[36:]); at != uint64(begin) {
			return fmt.Errorf("its directory lies at %d, not at %d", begin, at)
		}
		signature = u32(p, 64)
	}
	if signature != endSignature {
		return fmt.Errorf("bytes at offset %d are no part of it", after)
	}
	p, err := w.take(18)
	if err != nil {
		return err
	}
	if n := u16(p, 6); n != 0xffff && int(n) != entries {
		return fmt.Errorf("its end counts %d files, there are %d", n, entries)
	}
	if at := u32(p, 12); at != 0xffffffff && int64(at) != begin {
		return fmt.Errorf("its directory lies at %d, not at %d", begin, at)
	}
	if n := u16(p, 16); n > 0 {
		return fmt.Errorf("%d bytes of a comment stand at its end", n)
	}
	at := w.at()
	if n, err := io.Copy(io.Discard, w.in); err != nil {
		return err
	} else if n > 0 {
		return fmt.Errorf("%d bytes follow its end, at offset %d", n, at)
	}
	return nil
}
