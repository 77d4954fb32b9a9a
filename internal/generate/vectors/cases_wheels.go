package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"
)

const (
	wheelPath  = "wheels/a-1-py3-none-any.whl"
	recordName = "a-1.dist-info/RECORD"
	modulePath = "a/__init__.py"
	lockPath   = "pylock.toml"
)

// wheel is one to be altered: members in their order, and what RECORD lists.
type wheel struct {
	members []wheelMember
	listed  []wheelMember
	after   string // bytes after the end of the archive
}

type wheelMember struct{ path, content string }

// newWheel makes a clean one.
func newWheel() *wheel {
	w := &wheel{}
	w.add(modulePath, "answer = 1\n")
	w.add("a-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: a\nVersion: 1\n")
	w.add("a-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	return w
}

// add puts a member into the wheel and into RECORD.
func (w *wheel) add(path, content string) {
	w.members = append(w.members, wheelMember{path, content})
	w.listed = append(w.listed, wheelMember{path, content})
}

// bytes writes the archive, nothing in it compressed.
func (w *wheel) bytes() []byte {
	var record strings.Builder
	for _, m := range w.listed {
		sum := sha256.Sum256([]byte(m.content))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", m.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(m.content))
	}
	fmt.Fprintf(&record, "%s,,\n", recordName)
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, m := range append(w.members, wheelMember{recordName, record.String()}) {
		size := uint64(len(m.content))
		f, err := archive.CreateRaw(&zip.FileHeader{Name: m.path, CRC32: crc32.ChecksumIEEE([]byte(m.content)), CompressedSize64: size, UncompressedSize64: size})
		if err == nil {
			_, err = f.Write([]byte(m.content))
		}
		if err != nil {
			panic(err) // nothing fails in memory
		}
	}
	if err := archive.Close(); err != nil {
		panic(err)
	}
	out.WriteString(w.after)
	return out.Bytes()
}

// lockOf is a lock that names the wheel with a digest.
func lockOf(digest string) string {
	return fmt.Sprintf("lock-version = \"1.0\"\ncreated-by = \"pip\"\n\n[[packages]]\nname = \"a\"\nversion = \"1\"\n\n[[packages.wheels]]\n"+
		"name = %q\nurl = \"https://files.example/%s\"\n\n[packages.wheels.hashes]\nsha256 = %q\n", "a-1-py3-none-any.whl", "a-1-py3-none-any.whl", digest)
}

// wheels are wheels that are not what upstream published, run code that nobody
// asked for, or carry weights.
func wheels() []vector {
	of := func(id, fault, says string, alter func(*wheel)) vector {
		return vector{
			id: id, fault: fault, gate: "files", names: wheelPath, says: says, twinText: "the wheel as it was built",
			alter: func(s *submission) { w := newWheel(); alter(w); s.raw[wheelPath] = w.bytes() },
			twin:  func(s *submission) { s.raw[wheelPath] = newWheel().bytes() },
		}
	}
	added := func(fault, path, content, says string) vector {
		return of("A67", fault, says, func(w *wheel) { w.add(path, content) })
	}
	locked := of("A67", "a wheel that agrees with itself and not with its upstream digest", "the lock", func(*wheel) {})
	plain := newWheel().bytes()
	sum := sha256.Sum256(plain)
	other := sha256.Sum256([]byte("the upstream wheel"))
	locked.alter = func(s *submission) {
		s.raw[wheelPath], s.texts[lockPath] = plain, lockOf(hex.EncodeToString(other[:]))
	}
	locked.twin = func(s *submission) { s.raw[wheelPath], s.texts[lockPath] = plain, lockOf(hex.EncodeToString(sum[:])) }
	locked.twinText = "the lock has the wheel's digest"
	hook := added("a wheel with a hook that Python runs at its start", "a.pth", "import a; a.load()\n", "a.pth runs code")
	lines := added("a wheel that changes where Python looks for modules", "a.pth", "a/more\n", "a.pth changes where")
	lines.gate, lines.warns = "", "files"
	array := func(bytes int) func(*wheel) {
		return func(w *wheel) { w.add("a/table.npz", "PK\x03\x04"+strings.Repeat("\x00", bytes)) }
	}
	large := of("A60", "a megabyte of arrays in a wheel", "a/table.npz is of a type that weights come in", array(1<<20))
	large.twin = func(s *submission) { w := newWheel(); array(1 << 10)(w); s.raw[wheelPath] = w.bytes() }
	large.twinText = "a kilobyte of them, as tests have"
	return []vector{
		locked,
		of("A67", "a wheel with a member that was changed after it was built", modulePath+" has other bytes", func(w *wheel) { w.members[0].content = "answer = 2\n" }),
		of("A67", "a wheel with a member of another size", modulePath+" has another size", func(w *wheel) { w.members[0].content, w.listed[0].content = "answer = 11\n", "answer = 1\n" }),
		of("A67", "a wheel with a member that RECORD does not list", "a/more.py is not in RECORD", func(w *wheel) { w.members = append(w.members, wheelMember{"a/more.py", "x = 1\n"}) }),
		of("A67", "a wheel without a member that RECORD lists", "a/more.py is in RECORD", func(w *wheel) { w.listed = append(w.listed, wheelMember{"a/more.py", "x = 1\n"}) }),
		of("A67", "a wheel with two members of one name", "cannot be read as a wheel", func(w *wheel) { w.members = append(w.members, w.members[0]) }),
		of("A67", "a wheel with bytes after its end", "follow its end", func(w *wheel) { w.after = "weights" }),
		hook, lines,
		added("a wheel with sitecustomize", "sitecustomize.py", "import a\n", "sitecustomize.py is imported"),
		added("a wheel with usercustomize for site-packages", "a-1.data/purelib/usercustomize.py", "import a\n", "usercustomize.py is imported"),
		of("A60", "safetensors bytes in a wheel", "a/table.txt holds safetensors", func(w *wheel) { w.add("a/table.txt", string(rawShard(goodHeader, 4))) }),
		large,
		of("A60", "a GGUF model in a wheel", "a/model.gguf is a model", func(w *wheel) { w.add("a/model.gguf", "GGUF\x03\x00") }),
	}
}
