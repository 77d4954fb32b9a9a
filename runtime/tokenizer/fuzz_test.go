package tokenizer

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text that is valid and normalised comes back as it was, whichever the pattern.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "Hello world", "it'ſ 'LL", " \r\n\u3000x", "e\u0301e", "<|im_end|>", "<|im_<think>", "漢字\u0301", "👨‍👩‍👧", "\xff\xe4\xb8"} {
		f.Add(seed)
	}
	letters, marks := reduced(f, false), reduced(f, true)
	f.Fuzz(func(t *testing.T, text string) {
		for _, tokenizer := range []*Tokenizer{letters, marks} {
			ids := tokenizer.Encode(text)
			got := tokenizer.Decode(ids, false)
			if again := streamed(tokenizer, ids, false); again != got {
				t.Errorf("streamed %q, decoded %q", again, got)
			}
			plain := tokenizer.Decode(ids, true)
			if again := streamed(tokenizer, ids, true); again != plain {
				t.Errorf("without special: streamed %q, decoded %q", again, plain)
			}
			if want := norm.NFC.String(text); utf8.ValidString(text) && text == want && got != text {
				t.Errorf("%q came back as %q", text, got)
			}
		}
	})
}

// Any sequence of ids streams to what it decodes to, all of it valid.
func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 0, 0, 100, 0, 1, 2, 3})
	tokenizer := reduced(f, false)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ids []int32
		for ; len(raw) >= 2; raw = raw[2:] {
			id := int32(binary.BigEndian.Uint16(raw))
			if id >= 256 { // half of them bytes, the rest spread over the vocabulary
				id *= 3
			}
			ids = append(ids, id)
		}
		for _, skip := range []bool{false, true} {
			stream := tokenizer.Stream(skip)
			var joined strings.Builder
			for _, id := range ids {
				part := stream.Next(id)
				if !utf8.ValidString(part) {
					t.Fatalf("part %q", part)
				}
				joined.WriteString(part)
			}
			joined.WriteString(stream.Flush())
			if want := tokenizer.Decode(ids, skip); joined.String() != want {
				t.Errorf("streamed %q, decoded %q", joined.String(), want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/abacus/tokenizer.json")
	if err != nil {
		f.Fatal(err)
	}
	config, err := os.ReadFile("testdata/abacus/tokenizer_config.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, config)
	f.Add([]byte(`{"added_tokens":[{"id":1,"content":"<a>"}],"model":{"type":"BPE","vocab":{"a":0,"\u0120":1},"merges":[["a","b"],"a b"]}}`), []byte(`{"eos_token":{"content":"a"}}`))
	f.Fuzz(func(t *testing.T, data, config []byte) {
		tokenizer, err := Parse(data, config)
		if err != nil {
			return
		}
		tokenizer.Decode(tokenizer.Encode("It's 12 naïve\r\n  tokens <|im_end|>"), true)
	})
}
