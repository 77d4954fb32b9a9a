// Package tokenizer turns text into a checkpoint's token ids and back: the
// byte-level BPE that tokenizer.json describes, for the two split patterns of
// the Qwen families.
//
// It promises the ids of the published tokenizers, id for id, or a clear error
// when the file is loaded: a part of tokenizer.json that would change ids and
// is not implemented here is refused, never skipped.
//
// The order is that of the reference: added tokens are cut out of the text as
// it came (the longest at the leftmost place), what lies between is normalised
// to NFC, added tokens marked normalized are cut out of that, the rest is split
// into words by the pattern, and the bytes of each word are merged, lowest rank
// first.
//
// Text that is not valid UTF-8 is encoded as if U+FFFD stood for each maximal
// invalid part; decoding writes U+FFFD by the same rule (Unicode 15, section
// 3.9, "U+FFFD Substitution of Maximal Subparts").
//
// What is a letter, a mark or a number is as in the Unicode version of Go's
// tables (15.0). Characters that were assigned later count as symbols, and their
// neighbours may be split from them where a reference with newer tables does
// not.
//
// A Tokenizer is immutable and may be used by many goroutines at once.
package tokenizer

import "sync/atomic"

// Tokenizer encodes and decodes for one checkpoint.
type Tokenizer struct {
	vocabulary
	splitter   splitter
	compose    bool    // NFC
	verbatim   matcher // added tokens matched in the text as it came
	normalized matcher // added tokens matched after normalisation
	added      map[string]int32
	special    map[int32]bool
	end        int32 // the eos_token of tokenizer_config.json, -1 for none

	// whole remembers by id whether the bytes of a token merge into that token
	// alone: 0 not tried yet, 1 yes, -1 no. Most words of a text are tokens, so
	// most merging is done once. Every goroutine computes the same answer.
	whole []atomic.Int32
}

// Encode returns the ids of text. Added tokens that stand in it become their
// ids; nothing is put before or after.
func (t *Tokenizer) Encode(text string) []int32 {
	text = validText(text)
	ids := make([]int32, 0, len(text)/3+1)
	work := workspaces.Get().(*workspace)
	defer work.release()
	return t.verbatim.cut(ids, text, func(ids []int32, between string) []int32 {
		if t.compose {
			between = composed(between)
		}
		return t.normalized.cut(ids, between, func(ids []int32, plain string) []int32 {
			return t.appendText(ids, plain, work)
		})
	})
}

// appendText appends the ids of text without added tokens.
func (t *Tokenizer) appendText(ids []int32, text string, work *workspace) []int32 {
	for start := 0; start < len(text); {
		end := t.splitter.next(text, start)
		ids = t.appendWord(ids, text[start:end], work)
		start = end
	}
	return ids
}

func (t *Tokenizer) appendWord(ids []int32, word string, work *workspace) []int32 {
	if len(word) > t.longest {
		return work.merge(ids, word, &t.vocabulary)
	}
	id, ok := t.ids[word]
	if !ok {
		return work.merge(ids, word, &t.vocabulary)
	}
	switch t.whole[id].Load() {
	case 1:
		return append(ids, id)
	case -1:
		return work.merge(ids, word, &t.vocabulary)
	}
	before := len(ids)
	ids = work.merge(ids, word, &t.vocabulary)
	if len(ids) == before+1 && ids[before] == id {
		t.whole[id].Store(1)
	} else {
		t.whole[id].Store(-1)
	}
	return ids
}

// Decode returns the text of ids. With skipSpecial, added tokens marked special
// are left out. Ids that no token has (the padding rows of an embedding) add
// nothing.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var text []byte
	for _, id := range ids {
		if !skipSpecial || !t.special[id] {
			text = append(text, t.Token(id)...)
		}
	}
	return validText(string(text))
}

// Token returns the bytes of one token, which may end inside a character, or
// "" where id has none.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.texts) {
		return ""
	}
	return t.texts[id]
}

// ID returns the id of the token, added or not, whose bytes are exactly text.
func (t *Tokenizer) ID(text string) (id int32, ok bool) {
	if id, ok = t.added[text]; !ok {
		id, ok = t.ids[text]
	}
	return id, ok
}

// EndToken returns the id of tokenizer_config.json's eos_token.
func (t *Tokenizer) EndToken() (id int32, ok bool) { return t.end, t.end >= 0 }

// LongestText is the most bytes of text that one token may stand for. NFC makes
// of a text at least a quarter of its bytes: the most are three characters of
// together seven that become one of two.
func (t *Tokenizer) LongestText() int {
	if t.compose {
		return 4 * t.longest
	}
	return t.longest
}

// VocabularySize is the highest id of any token plus one. Models have more
// rows; those beyond are padding and must not be sampled.
func (t *Tokenizer) VocabularySize() int { return len(t.texts) }
