package safetensors

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// mapped skips a test on a system where no memory can be mapped.
func mapped(t *testing.T, size int64) {
	t.Helper()
	_, release, err := mapAnonymous(size)
	if err != nil {
		t.Skipf("cannot map %d bytes: %v", size, err)
	}
	release()
}

func TestSecondOpinion(t *testing.T) {
	mapped(t, 1<<20)
	golden, goldenSize := golden(t, "abacus-ternary.header")
	many, manySize := manyTensors(t, maxOpinionTensors+1)
	entry := func(dtype string, bytes int) []byte {
		return withLength(fmt.Sprintf(`{"w":{"dtype":%q,"shape":[8],"data_offsets":[0,%d]}}`, dtype, bytes))
	}
	tests := []struct {
		what string
		raw  []byte
		size int64 // of the file; 0: the header and 8 bytes
		want Verdict
	}{
		{"golden", golden, goldenSize, Accepted},
		{"golden, tail", golden, goldenSize + 1, Refused},
		{"small", entry("U8", 8), 0, Accepted},
		{"wrong length", entry("U8", 7), 0, Refused},
		{"FP8", entry("F8_E4M3", 8), 0, CannotRead},
		{"FP8, wrong length", entry("F8_E4M3", 7), 0, Refused},
		{"many tensors", many, manySize, TooLarge},
		{"long header", withLength("{}" + strings.Repeat(" ", maxOpinionHeader)), 0, TooLarge},
		{"header longer than the file", entry("U8", 8), 20, Refused},
		{"no header", nil, 100, Refused},
		{"more than can be mapped", entry("U8", 8), 1 << 62, NotAvailable},
	}
	for _, test := range tests {
		if test.size == 0 {
			test.size = int64(len(test.raw)) + 8
		}
		got, err := SecondOpinion(test.raw, test.size)
		if got != test.want {
			t.Errorf("%s: %v (%v), want %v", test.what, got, err, test.want)
		}
		if wantErr := test.want == Refused || test.want == NotAvailable; (err != nil) != wantErr {
			t.Errorf("%s: %v with error %v", test.what, got, err)
		}
	}
}

// A file of 8 GiB is judged without touching its pages.
func TestSecondOpinionTouchesNoData(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/self/status")
	}
	const data = 8 << 30
	mapped(t, data)
	raw := withLength(fmt.Sprintf(`{"a":{"dtype":"BF16","shape":[%d],"data_offsets":[0,%d]},"b":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}}`,
		data/4, data/2, data/2, data/2, data))
	before := peakResident(t)
	verdict, err := SecondOpinion(raw, int64(len(raw))+data)
	if verdict != Accepted {
		t.Fatalf("%v, %v", verdict, err)
	}
	if grown := peakResident(t) - before; grown > 64<<10 {
		t.Errorf("peak resident memory grew by %d KiB", grown)
	}
}

// peakResident returns the largest resident size of this process so far, KiB.
func peakResident(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(line, &kib); err != nil {
		t.Skip("no VmHWM in /proc/self/status")
	}
	return kib
}
