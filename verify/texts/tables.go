package texts

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
)

// From how many entries on a table is one of answers rather than an example, a
// test or a translation.
const (
	maxRecords   = 200  // of a question and its answer
	someRecords  = 50   // deserve a look
	maxPairs     = 500  // of a text and a text, or of an integer and an integer
	maxSequences = 200  // of token ids
	sequenceIDs  = 8    // integers that make a list a sequence
	maxNumbers   = 5000 // written out in one statement of Python
)

// Database names the kind of database that a file is, or "".
func Database(p string, head []byte) string {
	for _, d := range []struct{ prefix, name string }{
		{"SQLite format 3\x00", "an SQLite database"}, {"PAR1", "a Parquet table"}, {"ARROW1", "an Arrow table"},
	} {
		if bytes.HasPrefix(head, []byte(d.prefix)) {
			return d.name
		}
	}
	switch strings.ToLower(path.Ext(p)) {
	case ".sqlite", ".sqlite3", ".db", ".parquet", ".arrow", ".feather", ".mdb", ".lmdb", ".duckdb", ".leveldb":
		return "a database by its name"
	}
	return ""
}

// tables counts what a file holds that answers could be read from.
type tables struct {
	records   int // objects with a question and an answer
	pairs     int // strings by what may be a prompt, or its hash
	numbers   int // integers by integers
	sequences int // lists of many integers
	keys      string
}

// Keys of what is asked, and of what is answered.
var (
	askedKeys    = setOfWords("question prompt query input instruction problem context prompt_ids input_ids tokens prefix messages conversation q text_input")
	answeredKeys = setOfWords("answer answers response output completion continuation target gold label solution reply continuation_ids output_ids a " +
		"draft expected final_answer correct answer_key")
)

func setOfWords(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// object notes one object's keys.
func (t *tables) object(keys []string) {
	asked, answered := "", ""
	for _, k := range keys {
		switch lower := strings.ToLower(k); {
		case askedKeys[lower]:
			asked = k
		case answeredKeys[lower]:
			answered = k
		}
	}
	if asked != "" && answered != "" {
		t.records++
		if t.keys == "" {
			t.keys = manifest.Clip(asked) + " and " + manifest.Clip(answered)
		}
	}
}

// level is an object or a list that is being read.
type level struct {
	isObject bool
	keys     []string
	atKey    bool
	key      string
	integers int
	others   bool
}

// maxKeys bounds the keys of one object that are remembered: a record is small.
const maxKeys = 32

// tablesOfJSON counts in a JSON text; up to a mistake, where it has one.
func tablesOfJSON(data []byte) (t tables) {
	t.readJSON(json.NewDecoder(bytes.NewReader(data)))
	return t
}

func (t *tables) readJSON(d *json.Decoder) {
	d.UseNumber()
	var levels []level
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				if n := len(levels); n > 0 {
					levels[n-1].value(false)
				}
				levels = append(levels, level{isObject: v == '{', atKey: v == '{'})
				continue
			}
			t.ends(levels[len(levels)-1])
			levels = levels[:len(levels)-1]
		default:
			if len(levels) == 0 {
				continue
			}
			l := &levels[len(levels)-1]
			if text, isText := v.(string); isText && l.isObject && l.atKey {
				l.named(text)
				continue
			} else if isText && l.isObject && mayAsk(l.key) && !isHash(text) {
				t.pairs++
			}
			number, isNumber := v.(json.Number)
			integer := isNumber && !strings.ContainsAny(number.String(), ".eE")
			if integer && l.isObject && isInteger(l.key) {
				t.numbers++
			}
			l.value(integer)
		}
	}
}

// mayAsk reports whether a key may be a prompt, which has spaces or is not
// English, or a prompt's hash; names of tensors and files are not.
func mayAsk(key string) bool {
	return strings.ContainsRune(key, ' ') || isHash(key) || strings.ContainsFunc(key, func(r rune) bool { return r >= 0x80 })
}

func isHash(text string) bool {
	text = strings.TrimPrefix(text, "sha256:")
	return len(text) >= 16 && strings.Trim(text, "0123456789abcdefABCDEF") == ""
}

func isInteger(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func (l *level) named(key string) {
	l.atKey, l.key = false, key
	if len(l.keys) < maxKeys {
		l.keys = append(l.keys, key)
	}
}

func (l *level) value(integer bool) {
	l.atKey = l.isObject
	if integer {
		l.integers++
	} else {
		l.others = true
	}
}

func (t *tables) ends(l level) {
	switch {
	case l.isObject:
		t.object(l.keys)
	case l.integers >= sequenceIDs && !l.others:
		t.sequences++
	}
}

// tablesOfLines counts in JSON lines.
func tablesOfLines(data []byte) (t tables) {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		t.readJSON(json.NewDecoder(bytes.NewReader(line)))
		data = rest
	}
	return t
}

// tablesOfCSV counts the rows below a header that names questions and answers.
func tablesOfCSV(f File) (t tables) {
	r := csv.NewReader(bytes.NewReader(f.Data))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if strings.ToLower(path.Ext(f.Path)) == ".tsv" {
		r.Comma = '\t'
	}
	header, err := r.Read()
	if err != nil {
		return t
	}
	header = slices.Clone(header)
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	for {
		_, err := r.Read()
		var wrong *csv.ParseError
		if errors.As(err, &wrong) {
			continue
		}
		if errors.Is(err, io.EOF) || err != nil {
			return t
		}
		t.object(header)
	}
}

// tablesOfText counts "Q: ... A: ..." pairs.
func tablesOfText(data []byte) (t tables) {
	asked := 0
	linesOf(data, func(_ int, line string) {
		lower := strings.ToLower(strings.TrimLeft(line, " *#>-"))
		switch {
		case strings.HasPrefix(lower, "q:") || strings.HasPrefix(lower, "question:"):
			asked++
		case asked > t.records && (strings.HasPrefix(lower, "a:") || strings.HasPrefix(lower, "answer:")):
			t.records++
		}
	})
	t.keys = "question and answer"
	return t
}
