package wheel

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
)

// entry is a file of a wheel that a test builds.
type entry struct{ path, content string }

const recordPath = "a-1.dist-info/RECORD"

// clean are the files of a wheel without a fault.
func clean() []entry {
	return []entry{{"a/__init__.py", "x = 1\n"}, {"a/data.txt", strings.Repeat("text ", 1000)}, {"a-1.dist-info/METADATA", "Name: a\nVersion: 1\n"}}
}

// recordOf lists entries as a RECORD does.
func recordOf(entries []entry) string {
	var out strings.Builder
	for _, e := range entries {
		sum := sha256.Sum256([]byte(e.content))
		fmt.Fprintf(&out, "%s,sha256=%s,%d\n", e.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.content))
	}
	return out.String() + recordPath + ",,\n"
}

// archive zips entries in order, as a stream (sizes after the data) or as
// stored bytes.
func archive(t testing.TB, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		f, err := w.Create(e.path)
		if err == nil {
			_, err = f.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func stored(t testing.TB, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.path, CRC32: crc32.ChecksumIEEE([]byte(e.content)), CompressedSize64: uint64(len(e.content)), UncompressedSize64: uint64(len(e.content))}
		f, err := w.CreateRaw(h)
		if err == nil {
			_, err = f.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func withRecord(entries []entry) []entry {
	return append(slices.Clone(entries), entry{recordPath, recordOf(entries)})
}

func modelExtension(p string, _ int64, head []byte) string {
	if strings.HasSuffix(p, ".gguf") || strings.HasPrefix(string(head), "GGUF") {
		return "is a model"
	}
	return ""
}

func read(data []byte) *Facts {
	return Read(context.Background(), bytes.NewReader(data), int64(len(data)), Options{Weights: modelExtension})
}

func TestCleanWheels(t *testing.T) {
	for name, data := range map[string][]byte{"streamed": archive(t, withRecord(clean())), "stored": stored(t, withRecord(clean()))} {
		f := read(data)
		if f.Err != nil || len(f.Faults) > 0 || f.Members != 4 || f.Digest != manifest.DigestBytes(data) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// An empty member may be stored with its sizes after it, as streams are.
func TestEmptyStoredMember(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range withRecord(append(clean(), entry{"a/py.typed", ""})) {
		h := &zip.FileHeader{Name: e.path, Method: zip.Deflate}
		if e.content == "" {
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if f := read(out.Bytes()); f.Err != nil || len(f.Faults) > 0 || f.Members != 5 {
		t.Errorf("%+v", f)
	}
}

// Each fault of the content is the only one of its wheel.
func TestContentFaults(t *testing.T) {
	add := func(path, content string) []entry { return withRecord(append(clean(), entry{path, content})) }
	other := func(from, to string) []entry {
		return append(clean(), entry{recordPath, strings.Replace(recordOf(clean()), from, to, 1)})
	}
	for _, tc := range []struct {
		name     string
		entries  []entry
		severity Severity
		member   string
		says     string
	}{
		{"changed member", append([]entry{{"a/__init__.py", "x = 2\n"}}, withRecord(clean())[1:]...), Wrong, "a/__init__.py", "other bytes"},
		{"size", other(",6\n", ",7\n"), Wrong, "a/__init__.py", "another size"},
		{"extra member", append(withRecord(clean()), entry{"b.py", ""}), Wrong, "b.py", "not in RECORD"},
		{"member that is gone", withRecord(clean())[1:], Wrong, "a/__init__.py", "not in the wheel"},
		{"weak digest", other("sha256=", "md5="), Wrong, "a/__init__.py", "no sha256"},
		{"no digest", other("a/data.txt,sha256=", "a/data.txt,"), Wrong, "a/data.txt", "no sha256"},
		{"no RECORD", clean(), Wrong, "", "has no RECORD"},
		{"second RECORD", append(withRecord(clean()), entry{"b-1.dist-info/RECORD", ""}), Wrong, "b-1.dist-info/RECORD", "second RECORD"},
		{"row twice", append(clean(), entry{recordPath, recordOf(clean()) + recordOf(clean())}), Wrong, recordPath, "twice"},
		{"no table", append(clean(), entry{recordPath, "a\"b\n"}), Wrong, recordPath, "is not a table"},
		{"hook", add("a.pth", "import os; os.system('x')\n"), Runs, "a.pth", "runs code"},
		{"hook by carriage return", add("a.pth", "lib\rimport\tos\n"), Runs, "a.pth", "runs code"},
		{"hook in the data folder", add("a-1.data/purelib/a.pth", "import os\n"), Runs, "a-1.data/purelib/a.pth", "runs code"},
		{"path list", add("a.pth", "lib\n"), Doubtful, "a.pth", "changes where"},
		{"sitecustomize", add("sitecustomize.py", ""), Wrong, "sitecustomize.py", "every Python that starts"},
		{"sitecustomize as a package", add("sitecustomize/__init__.py", ""), Wrong, "sitecustomize/__init__.py", "every Python that starts"},
		{"usercustomize compiled", add("a-1.data/platlib/usercustomize.cpython-312.so", ""), Wrong, "a-1.data/platlib/usercustomize.cpython-312.so", "every Python that starts"},
		{"weights by name", add("a/m.gguf", "x"), Wrong, "a/m.gguf", "is a model"},
		{"weights by content", add("a/m.txt", "GGUF"), Wrong, "a/m.txt", "is a model"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := read(archive(t, tc.entries))
			if f.Err != nil || len(f.Faults) != 1 {
				t.Fatalf("%+v", f)
			}
			if got := f.Faults[0]; got.Severity != tc.severity || got.Member != tc.member || !strings.Contains(got.Problem, tc.says) {
				t.Errorf("%+v", got)
			}
		})
	}
	for _, harmless := range []string{"a/sitecustomize.py", "a/b.pth", "sitecustomizer.py"} {
		if f := read(archive(t, add(harmless, "import os\n"))); f.Err != nil || len(f.Faults) > 0 {
			t.Errorf("%s: %+v", harmless, f)
		}
	}
}

// Each fault of the archive ends the reading, and says where.
func TestArchiveFaults(t *testing.T) {
	good := archive(t, withRecord(clean()))
	plain := stored(t, withRecord(clean()))
	central := bytes.LastIndex(good, []byte("PK\x01\x02"))
	set := func(data []byte, at int, b ...byte) []byte {
		data = slices.Clone(data)
		copy(data[at:], b)
		return data
	}
	for _, tc := range []struct {
		name string
		data []byte
		says string
	}{
		{"empty", nil, "ends early"},
		{"no archive", []byte("hello, world"), "neither a file's header"},
		{"no file", archive(t, nil), "neither a file's header"},
		{"cut off", good[:len(good)-1], "ends early"},
		{"cut off in a member", good[:60], "ends early"},
		{"bytes before", append([]byte("#!/bin/sh\n"), good...), "neither a file's header"},
		{"bytes after", append(slices.Clone(good), 0), "follow its end"},
		{"bytes between", slices.Concat(good[:bytes.Index(good, []byte("PK\x01\x02"))], []byte{1, 2, 3, 4}, good[bytes.Index(good, []byte("PK\x01\x02")):]), "neither a file's header"},
		{"comment", set(append(slices.Clone(good), 'x'), len(good)-2, 1), "comment"},
		{"encrypted", set(good, 6, 9), "encrypted"},
		{"method", set(plain, 8, 12), "method 12"},
		{"bytes changed", set(plain, 30+len("a/__init__.py"), 'y'), "checksum"},
		{"length without an end", set(set(plain, 6, 8), 18, 0, 0, 0, 0, 0, 0, 0, 0), "how long"},
		{"directory differs", set(good, central+16, 1), "differ"},
		{"directory names another", set(good, central+46, 'b'), "does not lie"},
		{"two files of one name", archive(t, append(withRecord(clean()), clean()[0])), "does not lie"},
		{"leaves the wheel", archive(t, []entry{{"../a", ""}}), "leaves the wheel"},
		{"absolute", archive(t, []entry{{"/a", ""}}), "leaves the wheel"},
		{"roundabout", archive(t, []entry{{"a//b", ""}}), "roundabout"},
		{"backslash", archive(t, []entry{{`a\b`, ""}}), "backslash"},
		{"control", archive(t, []entry{{"a\x00b", ""}}), "control character"},
		{"bomb", archive(t, []entry{{"a", strings.Repeat("\x00", 160<<20)}}), "inflate"},
		{"another count", set(good, len(good)-12, 9), "counts 9 files"},
		{"another place", set(good, len(good)-6, 1), "its directory lies at"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if f := read(tc.data); f.Err == nil || !strings.Contains(f.Err.Error(), tc.says) {
				t.Errorf("%v, want %q", f.Err, tc.says)
			}
		})
	}
}

func TestLinkInWheel(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range withRecord(append(clean(), entry{"link", "/etc/passwd"})) {
		h := &zip.FileHeader{Name: e.path, Method: zip.Deflate}
		if e.path == "link" {
			h.CreatorVersion, h.ExternalAttrs = 3<<8, linkMode<<16
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if f := read(out.Bytes()); f.Err != nil || len(f.Faults) != 1 || f.Faults[0].Member != "link" {
		t.Errorf("%+v", f)
	}
}

// The 64-bit forms, which large wheels have: sizes in the extra field, and the
// longer end.
func TestWideSizes(t *testing.T) {
	le := binary.LittleEndian
	content, name := []byte("GGUF"), "a/m.bin"
	var out []byte
	field := func() []byte {
		f := le.AppendUint16(le.AppendUint16(nil, zip64Field), 16)
		f = le.AppendUint64(le.AppendUint64(f, uint64(len(content))), uint64(len(content)))
		return f
	}()
	fixed := func(out []byte) []byte { // method to the lengths
		out = append(out, 0, 0, 0, 0, 0, 0)
		out = le.AppendUint32(out, crc32.ChecksumIEEE(content))
		out = append(out, bytes.Repeat([]byte{0xff}, 8)...)
		return le.AppendUint16(le.AppendUint16(out, uint16(len(name))), uint16(len(field)))
	}
	out = le.AppendUint32(out, localSignature)
	out = fixed(append(out, 45, 0, 0, 0))
	out = append(append(append(out, name...), field...), content...)
	directory := len(out)
	out = le.AppendUint32(out, centralSignature)
	out = fixed(append(out, 45, 0, 45, 0, 0, 0))
	out = append(out, make([]byte, 14)...)
	out = append(append(out, name...), field...)
	end := len(out)
	out = le.AppendUint64(le.AppendUint32(out, end64Signature), 44)
	out = append(out, make([]byte, 12)...)
	out = le.AppendUint64(le.AppendUint64(out, 1), 1)
	out = le.AppendUint64(le.AppendUint64(out, uint64(end-directory)), uint64(directory))
	out = le.AppendUint32(out, locator64Signature)
	out = le.AppendUint64(append(out, 0, 0, 0, 0), uint64(end))
	out = append(out, 1, 0, 0, 0)
	out = le.AppendUint32(out, endSignature)
	out = append(out, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	out = append(out, bytes.Repeat([]byte{0xff}, 8)...)
	out = append(out, 0, 0)
	f := read(out)
	if f.Err != nil || f.Bytes != 4 || len(f.Faults) != 2 { // a model, and no RECORD
		t.Errorf("%+v", f)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(archive(f, withRecord(clean())))
	f.Add(stored(f, withRecord(append(clean(), entry{"a.pth", "import os\n"}))))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		facts := read(data)
		if facts.Err == nil && facts.Digest != manifest.DigestBytes(data) {
			t.Error("read to the end, and not all of it")
		}
		if facts.Bytes > maxInflation*int64(len(data))+spareInflation+64<<10 {
			t.Errorf("%d bytes inflated to %d", len(data), facts.Bytes)
		}
		if facts.Err == nil { // the standard reader finds the same files
			r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				return
			}
			for _, member := range r.File {
				if !strings.HasSuffix(member.Name, "/") && member.UncompressedSize64 > uint64(facts.Bytes) {
					t.Errorf("%q has more bytes than were read", member.Name)
				}
			}
		}
	})
}
