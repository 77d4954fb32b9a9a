package verify

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/verify/report"
)

// A02: a header of ten million entries is longer than the format allows. It is
// refused by its first eight bytes; nothing of it is held in memory.
func TestHeaderOfTenMillionEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes 570 MB of zeros")
	}
	const entry = `"1234567":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`
	const length = 10_000_000 * int64(len(entry))
	root := writeFiles(t, readFiles(t, filepath.Join(vectorFolder, "clean")))
	name := filepath.Join(root, "weights/bad.safetensors")
	if err := os.WriteFile(name, append(binary.LittleEndian.AppendUint64(nil, uint64(length)), "{"+entry...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 8+length); err != nil { // a hole, which takes no room
		t.Skip(err)
	}
	options := vectorOptions(t, map[string]string{}, vectorContract(t))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := run(t, root, options)
	runtime.ReadMemStats(&after)
	if got := r.Failed(); !slices.Equal(got, []string{"safetensors"}) {
		t.Errorf("gates %v fail\n%s", got, text(t, r))
	}
	only(t, r, "safetensors", "weights/bad.safetensors", fmt.Sprintf("header length %d exceeds 100000000", length))
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// A16: what is hashed is what is looked into. A shard that is swapped while it is
// verified, for one of the same size with a fault, is judged by the bytes whose
// digest the report has, or is said to have changed.
func TestFileThatIsSwapped(t *testing.T) {
	bad := newFixture()
	bad.codes(gate0).data[9] |= 3
	faulty := encodeShard(bad.shards[ternaryShard])
	// Progress is told of blocks: when this many bytes were looked into at once.
	const first = 128 << 10 // of the shard's two blocks; what follows them is not yet read
	last := (int64(len(faulty)) - 8 - int64(binary.LittleEndian.Uint64(faulty))) % first
	inPlace := func(_, file string) error { return os.WriteFile(file, faulty, 0o644) }
	for _, tc := range []struct {
		name  string
		after int64 // bytes; 0: at once
		swap  func(other, file string) error
		wants []string // verdicts that are consistent here
	}{
		{"by another file, before it is opened", 0, os.Rename, []string{"the new one"}},
		{"by another file, while it is read", first, os.Rename, []string{"the old one", "changed"}},
		{"by another file, when its last block was looked into", last, os.Rename, []string{"the old one", "changed"}},
		{"in place, before it is opened", 0, inPlace, []string{"the new one"}},
		{"in place, while it is read", first, inPlace, []string{"changed"}},
		{"in place, when its last block was looked into", last, inPlace, []string{"the old one", "changed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := newFixture().write(t)
			shard, other := filepath.Join(root, ternaryShard), filepath.Join(t.TempDir(), "other")
			if err := os.WriteFile(other, faulty, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(shard, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
			profile := toyProfile()
			profile.Gates = slices.DeleteFunc(slices.Clone(profile.Gates), func(id string) bool { return id == "declared" })
			sound := run(t, root, Options{Profile: profile})
			swapped, before := false, int64(0)
			tree := openFolder(t, root)
			r, err := Run(t.Context(), tree, Options{Profile: profile, Workers: 1, Progress: func(done, _ int64) {
				read := done - before
				before = done
				if swapped || tc.after > 0 && read != tc.after {
					return
				}
				if swapped = true; tc.swap(other, shard) != nil {
					t.Error("cannot swap the file")
				}
			}})
			if err != nil || !swapped {
				t.Fatalf("swapped %t: %v", swapped, err)
			}
			if got := verdictOf(t, r, sound); !slices.Contains(tc.wants, got) {
				t.Errorf("judged as %s, want one of %q\n%s", got, tc.wants, text(t, r))
			}
		})
	}
}

// verdictOf says which file a report is about.
func verdictOf(t *testing.T, r, sound *report.Report) string {
	t.Helper()
	digests, _ := r.Gate("digests")
	switch failed := r.Failed(); {
	case r.Set == sound.Set && len(failed) == 0:
		return "the old one"
	case r.Set != "" && r.Set != sound.Set && slices.Equal(failed, []string{"ternary"}):
		return "the new one"
	case r.Set == "" && slices.Equal(failed, []string{"digests"}) && strings.Contains(digests.Findings[0].Problem, "changed while it was read"):
		return "changed"
	}
	return "a mixture"
}
