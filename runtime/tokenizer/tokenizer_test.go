package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// vector is a line of testdata/vectors.ndjson; testdata/vectors.mjs says what
// wrote it.
type vector struct {
	Category   string  `json:"c"`
	Text       string  `json:"s"`
	Hex        string  `json:"hex"`
	IDs        []int32 `json:"ids"`
	Marks      []int32 `json:"marks"`
	Words      []int   `json:"w"`
	MarksWords []int   `json:"wm"`
}

func readVectors(t testing.TB) []vector {
	var all []vector
	readLines(t, "testdata/vectors.ndjson", func(line []byte) {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		if v.Hex != "" {
			raw, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			v.Text = string(raw)
		}
		if v.Marks == nil {
			v.Marks = v.IDs
		}
		if v.MarksWords == nil {
			v.MarksWords = v.Words
		}
		all = append(all, v)
	})
	if len(all) < 2000 {
		t.Fatalf("%d vectors: the file is cut short", len(all))
	}
	return all
}

func readLines(t testing.TB, name string, visit func(line []byte)) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		visit(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

var reducedFile = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/reduced.json") })

// reduced is the part of the published Qwen3 tokenizer that the vectors reach;
// with marks, it splits as Qwen3.5 does.
func reduced(t testing.TB, marks bool) *Tokenizer {
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, data, marks)
}

func parsed(t testing.TB, data []byte, marks bool) *Tokenizer {
	if marks {
		data = exchange(t, data, quoted(patternLetters), quoted(patternMarks))
	}
	tokenizer, err := Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// exchange replaces the one place of old.
func exchange(t testing.TB, data []byte, old, replacement string) []byte {
	if n := bytes.Count(data, []byte(old)); n != 1 {
		t.Fatalf("%q stands %d times in the file", old, n)
	}
	return bytes.Replace(data, []byte(old), []byte(replacement), 1)
}

func TestVectors(t *testing.T) {
	letters, marks := reduced(t, false), reduced(t, true)
	checkVectors(t, letters, marks)
}

// The same against the published file, for whoever has it: the folder of
// tokenizer.json in SLIPWAY_QWEN3_TOKENIZER.
func TestVectorsPublished(t *testing.T) {
	folder := os.Getenv("SLIPWAY_QWEN3_TOKENIZER")
	if folder == "" {
		t.Skip("SLIPWAY_QWEN3_TOKENIZER is not set")
	}
	data, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkVectors(t, parsed(t, data, false), parsed(t, data, true))
}

func checkVectors(t *testing.T, letters, marks *Tokenizer) {
	wrong := 0
	for i, v := range readVectors(t) {
		for _, variant := range []struct {
			name      string
			tokenizer *Tokenizer
			want      []int32
		}{{"letters", letters, v.IDs}, {"marks", marks, v.Marks}} {
			if got := variant.tokenizer.Encode(v.Text); !slices.Equal(got, variant.want) {
				if wrong++; wrong < 10 {
					t.Errorf("line %d, %s, %s: %.60q\ngot  %v\nwant %v", i+1, v.Category, variant.name, v.Text, got, variant.want)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d wrong", wrong)
	}
}

// Words show the split where merging would hide it: Qwen3's merges never join
// what its own pattern keeps apart.
func TestSplitVectors(t *testing.T) {
	letters, marks := newSplitter(false), newSplitter(true)
	differ := 0
	for i, v := range readVectors(t) {
		if v.Words == nil {
			continue
		}
		if !slices.Equal(v.Words, v.MarksWords) {
			differ++
		}
		text := composed(validText(v.Text))
		if got := wordLengths(letters, text); !slices.Equal(got, v.Words) {
			t.Errorf("line %d, letters: %.60q\ngot  %v\nwant %v", i+1, text, got, v.Words)
		}
		if got := wordLengths(marks, text); !slices.Equal(got, v.MarksWords) {
			t.Errorf("line %d, marks: %.60q\ngot  %v\nwant %v", i+1, text, got, v.MarksWords)
		}
	}
	if differ < 100 {
		t.Errorf("the patterns differ on %d texts only", differ)
	}
}

// The reference in Rust takes 'ſ for 's. No merge of Qwen3 shows it, and the
// vectors' reference does not.
func TestLongS(t *testing.T) {
	for text, want := range map[string][]int{"it'ſt": {2, 3, 1}, "'ſ": {3}, "'Ll'vE": {3, 3}, "'lſ": {4}, "'\u212a": {4}} {
		for _, marks := range []bool{false, true} {
			if got := wordLengths(newSplitter(marks), text); !slices.Equal(got, want) {
				t.Errorf("%q, marks %v: got %v, want %v", text, marks, got, want)
			}
		}
	}
}

func wordLengths(s splitter, text string) (lengths []int) {
	for start := 0; start < len(text); {
		end := s.next(text, start)
		lengths = append(lengths, end-start)
		start = end
	}
	return lengths
}

func TestDecodeVectors(t *testing.T) {
	tokenizer := reduced(t, false)
	count := 0
	readLines(t, "testdata/decode.ndjson", func(line []byte) {
		var v struct {
			IDs         []int32
			Text, Plain string
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		count++
		for skip, want := range map[bool]string{false: v.Text, true: v.Plain} {
			if got := tokenizer.Decode(v.IDs, skip); got != want {
				t.Errorf("decode %v: got %q, want %q", v.IDs, got, want)
			}
			if got := streamed(tokenizer, v.IDs, skip); got != want {
				t.Errorf("stream %v: got %q, want %q", v.IDs, got, want)
			}
		}
	})
	if count != 150 {
		t.Errorf("%d lines", count)
	}
}

func streamed(tokenizer *Tokenizer, ids []int32, skipSpecial bool) string {
	var out strings.Builder
	stream := tokenizer.Stream(skipSpecial)
	for _, id := range ids {
		out.WriteString(stream.Next(id))
	}
	out.WriteString(stream.Flush())
	return out.String()
}

// A character spread over tokens comes out whole with its last token.
func TestStreamHoldsBack(t *testing.T) {
	tokenizer := reduced(t, false)
	var ids []int32
	for _, b := range []byte("a\xf0\x9f\x98\x80b\xe4\xb8") {
		id, ok := tokenizer.ID(string([]byte{b}))
		if !ok {
			t.Fatalf("no token for byte %#x", b)
		}
		ids = append(ids, id)
	}
	stream := tokenizer.Stream(false)
	var got []string
	for _, id := range ids {
		got = append(got, stream.Next(id))
	}
	got = append(got, stream.Flush(), stream.Flush())
	want := []string{"a", "", "", "", "😀", "b", "", "", "\uFFFD", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// No text is longer than its tokens may stand for.
func TestLongestText(t *testing.T) {
	tokenizer := reduced(t, false)
	for _, text := range []string{
		strings.Repeat(" ", 1000), strings.Repeat("\u1fbe\u0308\u0301", 100), strings.Repeat("\u1112\u1161\u11ab", 100),
		strings.Repeat("\u212a", 100), strings.Repeat("<|im_start|>", 20), strings.Repeat("\xff", 100),
	} {
		if most := len(tokenizer.Encode(text)) * tokenizer.LongestText(); len(text) > most {
			t.Errorf("%d bytes of %.20q, at most %d", len(text), text, most)
		}
	}
	for r := range rune(utf8.MaxRune) {
		if text := string(r); 4*len(composed(text)) < len(text) {
			t.Errorf("%q composes to %q", text, composed(text))
		}
	}
	if text := "\u1fbe\u0308\u0301"; len(text) != 7 || len(composed(text)) != 2 {
		t.Errorf("%q composes to %q", text, composed(text))
	}
}

func TestLookups(t *testing.T) {
	tokenizer := reduced(t, false)
	if n := tokenizer.VocabularySize(); n != 151669 {
		t.Errorf("VocabularySize = %d", n)
	}
	if _, ok := tokenizer.EndToken(); ok {
		t.Error("an end token without tokenizer_config.json")
	}
	for text, want := range map[string]int32{"<|im_end|>": 151645, "</think>": 151668, "Hello": 9707, " world": 1879} {
		if id, ok := tokenizer.ID(text); !ok || id != want {
			t.Errorf("ID(%q) = %d, %v", text, id, ok)
		}
		if got := tokenizer.Token(want); got != text {
			t.Errorf("Token(%d) = %q", want, got)
		}
	}
	if !tokenizer.special[151645] || tokenizer.special[151668] || tokenizer.special[9707] {
		t.Error("Special: <|im_end|> is, </think> and Hello are not")
	}
	for _, id := range []int32{-1, 151669, 1 << 30} {
		if got := tokenizer.Token(id); got != "" {
			t.Errorf("Token(%d) = %q", id, got)
		}
	}
	if got := tokenizer.Decode([]int32{151935, 9707, -7}, false); got != "Hello" {
		t.Errorf("ids without a token decode to %q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	tokenizer := reduced(t, false)
	vectors := readVectors(t)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := worker * 50; i < len(vectors); i += 2 {
				if got := tokenizer.Encode(vectors[i].Text); !slices.Equal(got, vectors[i].IDs) {
					t.Errorf("line %d differs", i+1)
				}
			}
		})
	}
	group.Wait()
}
