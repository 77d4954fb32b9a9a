package sandbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mountsV1 = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	placesV1 = "5:cpuacct,cpu:/\n4:memory:/a/b\n0::/c\n"
	mountsV2 = "32 23 0:28 /part /sys/fs/c\\040group rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	placesV2 = "0::/part/user.slice/app\n"
)

func TestHierarchies(t *testing.T) {
	for _, tc := range []struct {
		name, mounts, places string
		want                 []string // version, own
	}{
		{"version 1 with an empty version 2", mountsV1, placesV1, []string{"1 /sys/fs/cgroup/memory/a/b", "1 /sys/fs/cgroup/cpu,cpuacct", "2 /sys/fs/cgroup/unified/c"}},
		{"version 2, a part of it mounted", mountsV2, placesV2, []string{"2 /sys/fs/c group/user.slice/app"}},
		{"none", "27 1 254:0 / / rw - ext4 /dev/vda rw\n", "", nil},
		{"a mount without a place", mountsV2, "1:memory:/\n", nil},
		{"lines cut short", "32 23\n - cgroup2\n", "0:\n", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, h := range hierarchiesIn([]byte(tc.mounts), []byte(tc.places)) {
				got = append(got, string(rune('0'+h.version))+" "+h.own)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzHierarchies(f *testing.F) {
	f.Add([]byte(mountsV1), []byte(placesV1))
	f.Add([]byte(mountsV2), []byte(placesV2))
	f.Fuzz(func(t *testing.T, mounts, places []byte) {
		for _, h := range hierarchiesIn(mounts, places) {
			if h.version != 1 && h.version != 2 {
				t.Errorf("version %d", h.version)
			}
		}
	})
}

func TestListeningPorts(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F41 0100007F:0050 01 00000000:00000000
   2: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 0
   3: nonsense 0 0A
`
	if got := listeningIn(table); !slices.Equal(got, []int{8000, 80}) {
		t.Errorf("ports %v", got)
	}
}

func FuzzListeningPorts(f *testing.F) {
	f.Add("   0: 00000000:1F40 00000000:0000 0A\n")
	f.Fuzz(func(t *testing.T, table string) {
		for _, port := range listeningIn(table) {
			if port < 0 || port > 65535 {
				t.Errorf("port %d", port)
			}
		}
	})
}

func sockaddr(family uint16, port uint16, rest ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, family)
	return append(binary.BigEndian.AppendUint16(b, port), rest...)
}

func TestInternetAddress(t *testing.T) {
	six := append(make([]byte, 4), 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	for _, tc := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"version 4", sockaddr(unix.AF_INET, 443, 198, 51, 100, 7, 0, 0), "198.51.100.7:443"},
		{"version 6", sockaddr(unix.AF_INET6, 53, six...), "[2001:db8::1]:53"},
		{"version 6, cut", sockaddr(unix.AF_INET6, 53, six[:10]...), ""},
		{"version 4, cut", sockaddr(unix.AF_INET, 53, 1, 2), ""},
		{"of this machine", sockaddr(unix.AF_UNIX, 0, []byte("/run/socket")...), ""},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := internetAddress(tc.raw); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzInternetAddress(f *testing.F) {
	f.Add(sockaddr(unix.AF_INET, 443, 198, 51, 100, 7))
	f.Add(sockaddr(unix.AF_INET6, 443, make([]byte, 24)...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text := internetAddress(raw); text != "" && !strings.Contains(text, ":") {
			t.Errorf("%q", text)
		}
	})
}

// A long message travels in a file, and takes its descriptors along.
func TestWire(t *testing.T) {
	for _, size := range []int{0, 10, packetBytes - 3, packetBytes, 10 * packetBytes} {
		near, far, err := newWires()
		if err != nil {
			t.Fatal(err)
		}
		end, err := unix.Dup(int(far.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		other, err := wireOf(end)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		sent := strings.Repeat("x", size)
		if err := near.send(sent, int(file.Fd())); err != nil {
			t.Fatal(err)
		}
		var got string
		descriptors, err := other.receive(&got)
		if err != nil || got != sent || len(descriptors) != 1 {
			t.Fatalf("%d bytes of %d, %v, %v", len(got), size, descriptors, err)
		}
		if n, err := unix.Write(descriptors[0], []byte("through")); n != 7 {
			t.Error(err)
		}
		closeAll(descriptors)
		if data, err := os.ReadFile(file.Name()); string(data) != "through" {
			t.Errorf("%q, %v", data, err)
		}
		_, _, _, _ = file.Close(), far.Close(), near.close(), other.close()
	}
}

// A folder whose mount point is missing is made room for without a write to it.
func TestNeedsRoom(t *testing.T) {
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "a/there"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at, path string
		want     bool
	}{
		{"/a/there", "/a", false},
		{"/a/not/there", "/a", true},
		{"/b", "/a", false},
		{"/ab/c", "/a", false},
	} {
		p := rootPlan{At: tc.at, Source: "/"}
		if got := p.needsRoom(filepath.Join(source, tc.path), tc.path); got != tc.want {
			t.Errorf("%s in %s: %v", tc.at, tc.path, got)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{64 << 20: "64 MiB", 3 << 30: "3 GiB", 1000: "1000 bytes", 5 << 10: "5 KiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDefaultTemp(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, tc := range []struct {
		name                 string
		machine, limit, want int64
	}{
		{"much", 64 * gib, 0, gib},
		{"just enough", 2 * gib, 0, gib},
		{"a small machine", 1536*mib + 4096, 0, 768 * mib},
		{"a small limit", 64 * gib, 256 * mib, 128 * mib},
		{"a large limit", 64 * gib, 32 * gib, gib},
		{"both small", 1 * gib, 1536 * mib, 512 * mib},
		{"hardly any", 64 * gib, 1 * mib, 1 * mib},
		{"unknown", 0, 0, gib},
	} {
		if got := defaultTemp(tc.machine, tc.limit); got != tc.want {
			t.Errorf("%s: %d bytes, want %d", tc.name, got, tc.want)
		}
	}
	if got := (Volume{Bytes: gib}).describe(); got != "1 GiB" {
		t.Errorf("described as %q", got)
	}
}

// Long names fill a trace before many do.
func TestTraceIsBounded(t *testing.T) {
	for length, want := range map[int]int{10: mostTraced, 4000: mostTracedBytes / 4000} {
		r := newRecorder(time.Now())
		for i := range want + 7 {
			name := strconv.Itoa(i)
			r.keepOpened(strings.Repeat("/", length-len(name))+name, Opened{}, false)
		}
		if trace := r.snapshot(); len(trace.Opened) != want || trace.Dropped != 7 {
			t.Errorf("names of %d bytes: %d are kept and %d dropped, want %d and 7", length, len(trace.Opened), trace.Dropped, want)
		}
	}
}
