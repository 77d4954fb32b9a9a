package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// sample builds the header of a file of two tensors and 12 bytes of data;
// every vector changes one thing in it.
type sample struct {
	first, second string // entries, with their names
	before, after string // around the JSON object
	extra         string // further entries, with a leading comma
	data          int64  // bytes after the header
	raw           func(json string) []byte
}

func clean() sample {
	return sample{
		first:  `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`,
		second: `"b":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}`,
		data:   12,
		raw:    withLength,
	}
}

func (s sample) read() error {
	raw := s.raw(s.before + "{" + s.first + "," + s.second + s.extra + "}" + s.after)
	_, err := ReadHeader(bytes.NewReader(raw), int64(len(raw))+s.data)
	return err
}

func withClaim(claim uint64) func(string) []byte {
	return func(json string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, claim), json...)
	}
}

func ones(n int) string { return strings.Join(make([]string, n+1), "1,")[:2*n-1] }

// Each fault is one change to the clean file; twin, where given, is the
// nearest legal change, so that a rule which refuses everything fails too.
var vectors = []struct {
	id, what, rule, tensor string
	fault, twin            func(*sample)
}{
	{"A01", "length one beyond the file", "S1", "",
		func(s *sample) { s.data = 0; s.raw = func(j string) []byte { return withClaim(uint64(len(j) + 1))(j) } },
		nil},
	{"A01", "length 2^63", "S1", "", func(s *sample) { s.raw = withClaim(1 << 63) }, nil},
	{"A01", "length 2^64-1", "S1", "", func(s *sample) { s.raw = withClaim(1<<64 - 1) }, nil},
	{"A01", "no length", "S1", "", func(s *sample) { s.raw = func(string) []byte { return nil }; s.data = 7 }, nil},
	{"A02", "length 100,000,001", "S1", "", func(s *sample) { s.raw = withClaim(100_000_001); s.data = 1 << 30 }, nil},
	{"A03", "overlap", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[5],"data_offsets":[7,12]}` },
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}` }},
	{"A03", "two names on one range", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}`; s.data = 8 },
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[8,0],"data_offsets":[0,0]}`; s.data = 8 }},
	{"A03", "empty tensor inside another", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}`; s.data = 8 },
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}`; s.data = 8 }},
	{"A04", "hole between", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[3],"data_offsets":[9,12]}` }, nil},
	{"A04", "hole in front", "S5", "a",
		func(s *sample) {
			s.first = `"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}`
		}, nil},
	{"A04", "tail", "S5", "", func(s *sample) { s.data = 13 }, nil},
	{"A04", "file cut short", "S5", "b", func(s *sample) { s.data = 11 }, nil},
	{"A05", "offsets do not match shape", "S5", "a",
		func(s *sample) { s.first = `"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}` },
		func(s *sample) { s.first = `"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}` }},
	{"A05", "reversed offsets", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4],"data_offsets":[12,8]}` }, nil},
	{"A05", "three offsets", "S3", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4],"data_offsets":[8,12,12]}` }, nil},
	{"A05", "one offset", "S3", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4],"data_offsets":[8]}` }, nil},
	{"A06", "shape product overflows before its zero", "S4", "b",
		func(s *sample) {
			s.second = `"b":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[8,8]}`
			s.data = 8
		},
		func(s *sample) {
			s.second = `"b":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[8,8]}`
			s.data = 8
		}},
	{"A06", "bits overflow to the right length", "S4", "b",
		func(s *sample) {
			s.second = `"b":{"dtype":"F64","shape":[288230376151711744],"data_offsets":[8,8]}`
			s.data = 8
		}, nil},
	{"A06", "negative number", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[-4],"data_offsets":[8,12]}` }, nil},
	{"A06", "minus zero", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[-0],"data_offsets":[8,8]}`; s.data = 8 },
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}`; s.data = 8 }},
	{"A06", "fraction", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4.0],"data_offsets":[8,12]}` }, nil},
	{"A06", "exponent", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4e0],"data_offsets":[8,12]}` }, nil},
	{"A06", "leading zero", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[04],"data_offsets":[8,12]}` }, nil},
	{"A06", "string number", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":["4"],"data_offsets":[8,12]}` }, nil},
	{"A06", "fraction in an offset", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4],"data_offsets":[8,12.0]}` }, nil},
	{"A06", "offset above 2^63-1", "S5", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":[4],"data_offsets":[8,18446744073709551628]}` }, nil},
	{"A06", "shape null", "S3", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U8","shape":null,"data_offsets":[8,12]}` }, nil},
	{"A06", "too many dimensions", "S4", "b",
		func(s *sample) {
			s.second = `"b":{"dtype":"U8","shape":[4,` + ones(MaxRank) + `],"data_offsets":[8,12]}`
		},
		func(s *sample) {
			s.second = `"b":{"dtype":"U8","shape":[4,` + ones(MaxRank-1) + `],"data_offsets":[8,12]}`
		}},
	{"A07", "duplicate name", "S3", "a",
		func(s *sample) { s.extra = `,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}` },
		func(s *sample) { s.extra = `,"A":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}` }},
	{"A07", "duplicate name, escaped", "S3", "a",
		func(s *sample) { s.extra = `,"\u0061":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}` },
		func(s *sample) { s.extra = `,"\u0062\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}` }},
	{"A07", "duplicate inner key", "S3", "a",
		func(s *sample) { s.first = `"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}` }, nil},
	{"A07", "DTYPE beside dtype", "S3", "a",
		func(s *sample) { s.first = `"a":{"dtype":"F32","DTYPE":"F32","shape":[2],"data_offsets":[0,8]}` },
		func(s *sample) { s.first = `"a":{"\u0064type":"F32","shape":[2],"data_offsets":[0,8]}` }},
	{"A07", "DTYPE for dtype", "S3", "a",
		func(s *sample) { s.first = `"a":{"DTYPE":"F32","shape":[2],"data_offsets":[0,8]}` }, nil},
	{"A07", "missing key", "S3", "a",
		func(s *sample) { s.first = `"a":{"shape":[2],"data_offsets":[0,8]}` }, nil},
	{"A07", "duplicate metadata key", "S3", "",
		func(s *sample) { s.extra = `,"__metadata__":{"k":"1","k":"1"}` },
		func(s *sample) { s.extra = `,"__metadata__":{"k":"1","K":"1"}` }},
	{"A07", "metadata twice", "S3", "",
		func(s *sample) { s.extra = `,"__metadata__":{},"__metadata__":{}` },
		func(s *sample) { s.extra = `,"__metadata__":{}` }},
	{"A07", "metadata null", "S3", "", func(s *sample) { s.extra = `,"__metadata__":null` }, nil},
	{"A07", "metadata number", "S3", "",
		func(s *sample) { s.extra = `,"__metadata__":{"k":1}` },
		func(s *sample) { s.extra = `,"__metadata__":{"k":"1"}` }},
	{"A08", "unknown dtype", "S6", "b",
		func(s *sample) { s.second = `"b":{"dtype":"U4","shape":[8],"data_offsets":[8,12]}` },
		func(s *sample) { s.second = `"b":{"dtype":"F4","shape":[8],"data_offsets":[8,12]}` }},
	{"A08", "dtype in lower case", "S6", "b",
		func(s *sample) { s.second = `"b":{"dtype":"u8","shape":[4],"data_offsets":[8,12]}` }, nil},
	{"A08", "dtype null", "S3", "b",
		func(s *sample) { s.second = `"b":{"dtype":null,"shape":[4],"data_offsets":[8,12]}` }, nil},
	{"A08", "odd element count in F4", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"F4","shape":[7],"data_offsets":[8,12]}` }, nil},
	{"A08", "F6 not a whole number of bytes", "S4", "b",
		func(s *sample) { s.second = `"b":{"dtype":"F6_E2M3","shape":[6],"data_offsets":[8,12]}` },
		func(s *sample) { s.second = `"b":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[8,11]}`; s.data = 11 }},
	{"A09", "invalid UTF-8 in a name", "S2", "",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, "\"b\xff\"", 1) },
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, "\"b\u00ff\"", 1) }},
	{"A09", "UTF-8 of a surrogate", "S2", "",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, "\"b\xed\xa0\x80\"", 1) }, nil},
	{"A09", "lone high surrogate", "S3", "",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\ud83d"`, 1) },
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\ud83d\ude00"`, 1) }},
	{"A09", "lone low surrogate", "S3", "",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\ude00\ud83d"`, 1) }, nil},
	{"A09", "unknown escape", "S3", "",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\x41"`, 1) },
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\u0041"`, 1) }},
	{"A09", "byte order mark", "S2", "", func(s *sample) { s.before = "\ufeff" }, nil},
	{"A09", "leading space", "S2", "",
		func(s *sample) { s.before = " " },
		func(s *sample) { s.after = " " }},
	{"A09", "empty header", "S2", "", func(s *sample) { s.raw = func(string) []byte { return withLength("") } }, nil},
	{"A09", "array", "S2", "", func(s *sample) { s.before, s.after = "[", "]" }, nil},
	{"A09", "newline after the JSON", "S2", "", func(s *sample) { s.after = "\n" }, nil},
	{"A09", "NUL after the JSON", "S2", "", func(s *sample) { s.after = "\x00" }, nil},
	{"A09", "second object after the JSON", "S2", "", func(s *sample) { s.after = "{}" }, nil},
	{"A09", "NUL between tokens", "S3", "", func(s *sample) { s.extra = "\x00" }, func(s *sample) { s.extra = "\t" }},
	{"A09", "trailing comma", "S3", "", func(s *sample) { s.extra = "," }, nil},
	{"A09", "JSON cut short", "S3", "b", func(s *sample) { s.raw = func(j string) []byte { return withLength(j[:len(j)-3]) } }, nil},
	{"A10", "data in metadata", "S3", "",
		func(s *sample) { s.extra = `,"__metadata__":{"k":"` + strings.Repeat("x", MaxMetadata) + `"}` },
		func(s *sample) { s.extra = `,"__metadata__":{"k":"` + strings.Repeat("x", MaxMetadata-1) + `"}` }},
	{"A10", "long padding", "S2", "",
		func(s *sample) { s.after = strings.Repeat(" ", MaxPadding+1) },
		func(s *sample) { s.after = strings.Repeat(" ", MaxPadding) }},
	{"A10", "data in white space between tokens", "S2", "",
		func(s *sample) { s.extra = strings.Repeat("\t ", MaxPadding/2+257) },
		func(s *sample) { s.extra = strings.Repeat("\t ", MaxPadding/2+256) }},
	{"S8", "control character in a name", "S8", "b\n",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\n"`, 1) },
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"b\\n"`, 1) }},
	{"S8", "NUL in a name", "S8", "\x00b",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, `"\u0000b"`, 1) }, nil},
	{"S8", "C1 control in a name", "S8", "b\u0085",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, "\"b\u0085\"", 1) },
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, "\"b\u00a0\"", 1) }},
	{"S3", "raw control character in a string", "S3", "",
		func(s *sample) { s.second = strings.Replace(s.second, `"b"`, "\"b\n\"", 1) }, nil},
}

func TestRules(t *testing.T) {
	if err := clean().read(); err != nil {
		t.Fatalf("the clean file is refused: %v", err)
	}
	for _, v := range vectors {
		t.Run(v.id+" "+v.what, func(t *testing.T) {
			bad := clean()
			v.fault(&bad)
			err := bad.read()
			var violation *Error
			if !errors.As(err, &violation) {
				t.Fatalf("error %v, want rule %s", err, v.rule)
			}
			if violation.Rule != v.rule || violation.Tensor != v.tensor {
				t.Errorf("rule %s, tensor %q, want %s, %q: %v", violation.Rule, violation.Tensor, v.rule, v.tensor, err)
			}
			if text := err.Error(); strings.Contains(text, "%!") || len(text) > 600 {
				t.Errorf("message %s", text)
			}
			if v.twin == nil {
				return
			}
			good := clean()
			v.twin(&good)
			if err := good.read(); err != nil {
				t.Errorf("the clean twin is refused: %v", err)
			}
		})
	}
}

// A10: what cannot be a header is not read to its end.
func TestHopelessHeaderIsNotReadWhole(t *testing.T) {
	for name, filler := range map[string]string{"spaces": " ", "one string": "x", "brackets": "[", "numbers": "1,"} {
		text := strings.NewReader(`{"a":` + strings.Repeat(filler, 90_000_000/len(filler)))
		var prefix [8]byte
		binary.LittleEndian.PutUint64(prefix[:], uint64(text.Len()))
		_, raw, err := ReadHeaderRaw(io.MultiReader(bytes.NewReader(prefix[:]), text), 8+text.Size())
		if violation := (*Error)(nil); !errors.As(err, &violation) || violation.Rule != "S2" || raw != nil {
			t.Errorf("%s: error %v", name, err)
		}
		if read := text.Size() - int64(text.Len()); read > 32<<20 {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

// A02: the count of entries is bounded; the bound itself is allowed.
func TestTensorLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("builds headers of 11 MB")
	}
	var json strings.Builder
	separator := byte('{')
	for i := range MaxTensors {
		json.WriteByte(separator)
		separator = ','
		fmt.Fprintf(&json, `"%06d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
	}
	if h, err := read(json.String()+"}", 0); err != nil || len(h.Tensors) != MaxTensors {
		t.Errorf("%d tensors: %v", MaxTensors, err)
	}
	json.WriteString(`,"one more":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`)
	_, err := read(json.String(), 0)
	if violation := (*Error)(nil); !errors.As(err, &violation) || violation.Rule != "S3" {
		t.Errorf("%d tensors: error %v", MaxTensors+1, err)
	}
}
