package verify

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/verify/script/python"
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

const noTable = "remove it: what is asked must be answered by the model; public examples have no place in a submission"

// decideLookup looks for tables that answers could be read from. It judges the
// shape of the data, not what code does with it.
func decideLookup(e *evidence) outcome {
	var o outcome
	for _, f := range e.tree.Files {
		if facts := e.facts[f.Path]; facts.Err == nil {
			if what := databaseOf(f.Path, facts.Head); what != "" {
				o.fail(Finding{Path: f.Path, Problem: "is " + what + ", which answers can be looked up in", Hint: noTable})
			}
		}
	}
	read := e.prose()
	for _, f := range read {
		if isDescription(f.path) {
			continue
		}
		switch strings.ToLower(path.Ext(f.path)) {
		case ".json":
			o.table(f.path, tablesOfJSON(f.data))
		case ".jsonl":
			o.table(f.path, tablesOfLines(f.data))
		case ".csv", ".tsv":
			o.table(f.path, tablesOfCSV(f))
		case ".txt", ".md":
			o.table(f.path, tablesOfText(f.data))
		case ".py":
			o.lookupInPython(f)
		}
	}
	o.note("%s looked through for tables of answers", plural(len(read), "text file"))
	for _, p := range e.unread() {
		if slices.Contains([]string{".json", ".jsonl", ".csv", ".tsv", ".py", ".txt"}, strings.ToLower(path.Ext(p))) {
			o.warn(Finding{Path: p, Problem: "is too large to be looked through for answers", Hint: "remove it if no code reads it"})
		}
	}
	return o
}

// isDescription reports whether a file is one whose form the task or a library
// prescribes.
func isDescription(p string) bool {
	names := []string{
		configName, generationName, architecturePath, startingPath, backbonePath, manifest.QuantizationPath, manifest.InventoryPath,
		"preprocessor_config.json", "video_preprocessor_config.json", "processor_config.json", "chat_template.json", "requirements.txt",
	}
	return slices.Contains(names, path.Base(p)) || strings.HasPrefix(path.Base(p), "LICENSE")
}

// databaseOf names the kind of database that a file is, or "".
func databaseOf(p string, head []byte) string {
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

// table judges the counts of a file.
func (o *outcome) table(p string, t tables) {
	records := Finding{Path: p, Problem: fmt.Sprintf("holds %s of %s", plural(t.records, "record"), t.keys), Hint: noTable}
	switch {
	case t.records >= maxRecords:
		o.fail(records)
	case t.records >= someRecords:
		o.warn(records)
	}
	if t.pairs >= maxPairs {
		o.fail(Finding{Path: p, Problem: fmt.Sprintf("maps %s to others", plural(t.pairs, "text")), Hint: noTable})
	}
	if t.numbers >= maxPairs {
		o.fail(Finding{Path: p, Problem: fmt.Sprintf("maps %s to others, as a table of next tokens does", plural(t.numbers, "integer")), Hint: noTable})
	}
	if t.sequences >= maxSequences && t.records < someRecords {
		o.fail(Finding{Path: p, Problem: fmt.Sprintf("holds %s of integers, as token ids are", plural(t.sequences, "list")), Hint: noTable})
	}
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
func tablesOfCSV(f textFile) (t tables) {
	r := csv.NewReader(bytes.NewReader(f.data))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if strings.ToLower(path.Ext(f.path)) == ".tsv" {
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

// hashes are calls that make a key of a text.
var hashes = []string{"hashlib.md5", "hashlib.sha1", "hashlib.sha256", "hashlib.sha512", "hashlib.blake2b", "hashlib.blake2s", "xxhash.xxh64", "xxhash.xxh3_64", "mmh3.hash"}

// asked are names, in source, of what a request asks.
var asked = []string{"prompt", "question", "message", "token", "content", "request", "query"}

// lookupInPython looks for data that is written out in code, and for keys that
// are made of what is asked.
func (o *outcome) lookupInPython(f textFile) {
	m := python.Scan(f.data)
	for _, t := range m.Tables {
		switch {
		case t.Pairs >= maxPairs:
			o.fail(Finding{Path: f.path, Problem: fmt.Sprintf("line %d writes out a table of %s", t.Line, plural(t.Pairs, "pair")), Hint: noTable})
		case t.Numbers >= maxNumbers:
			o.fail(Finding{Path: f.path, Problem: fmt.Sprintf("line %d writes out %s", t.Line, plural(t.Numbers, "number")), Hint: noTable})
		}
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		if !slices.Contains(hashes, c.Name) || len(c.Arguments) == 0 {
			continue
		}
		argument := strings.ToLower(c.Arguments[0].Text)
		if slices.ContainsFunc(asked, func(word string) bool { return strings.Contains(argument, word) }) {
			o.warn(Finding{Path: f.path, Problem: fmt.Sprintf("line %d makes a key of what is asked", c.Line), Got: manifest.Clip(c.Name + "(" + c.Arguments[0].Text + ")"),
				Hint: "a reviewer will ask what is found by it: no stored answer may be"})
			break
		}
	}
	for _, s := range m.Strings {
		if len(s.Text) >= maxStringBytes {
			o.warn(Finding{Path: f.path, Problem: fmt.Sprintf("line %d holds a string of %s", s.Line, plural(len(s.Text), "byte")), Hint: "a reviewer will ask what it encodes: ship it as a file of its own"})
		}
	}
}

// maxStringBytes is more than a prompt or a page of HTML in code has.
const maxStringBytes = 64 << 10
