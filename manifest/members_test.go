package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// manyEntries is a quantization manifest of so many float entries.
func manyEntries(n int) []byte {
	var out strings.Builder
	out.WriteString(`{"base_model":null,"base_revision":null,"tensors":{`)
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `"%d":{"kind":"float","shape":[1],"file":"a","tensor":"b"}`, i)
	}
	out.WriteString("}}")
	return []byte(out.String())
}

// A manifest of a million entries is refused without the memory that decoding
// it would take.
func TestTooManyEntriesAreRefusedBeforeDecoding(t *testing.T) {
	data := manyEntries(1_000_000)
	for name, decode := range map[string]func() error{
		"plain":    func() error { _, err := DecodeQuantization(data); return err },
		"renamed":  func() error { _, err := DecodeQuantizationAs(data, FieldNames{"base_model": "base"}); return err },
		"contract": func() error { _, err := DecodeContract(data); return err },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decode()
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes were allocated to refuse it", name, n)
		}
	}
	if _, err := DecodeQuantization(manyEntries(1000)); err != nil {
		t.Error(err)
	}
}

func TestCheckMembers(t *testing.T) {
	long := "[" + strings.Repeat("1,", maxRank) + "1]"
	for _, tc := range []struct{ in, fault string }{
		{`{}`, ""},
		{`{"a":1,"b":2,"c":3}`, ""},
		{`{"a":1,"b":2,"c":3,"d":4}`, "more than 3 members"},
		{`{"a":{"a":1,"b":2,"c":3,"d":4}}`, "more than 3 members"},
		{`{"a":{"a":1,"b":2},"b":{"c":3,"d":4}}`, ""},
		{`{"a":",,,,,,,\",,,"}`, ""},
		{`{"a":"\\","b":[1,2,3,4]}`, ""},
		{`{"shape":` + long + `}`, "an array has more than 64"},
		{`]]]]`, ""},
		{strings.Repeat("[", 1000), ""},
		{`"\`, ""},
	} {
		err := checkMembers([]byte(tc.in), 3)
		if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%.40s: %v, want %q", tc.in, err, tc.fault)
		}
	}
}
