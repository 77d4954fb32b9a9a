package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// largestVocabulary bounds ids, which index slices. The largest published
// vocabulary has a quarter of it.
const largestVocabulary = 1 << 20

// vocabulary is the BPE model: tokens as bytes, and merges.
type vocabulary struct {
	texts   []string         // by id, "" where no token has it
	ids     map[string]int32 // of the tokens that merging can make
	bytes   [256]int32       // the token of each byte
	merges  map[uint64]merged
	longest int // bytes of the longest token
}

// merged is what a pair of tokens becomes, and how early.
type merged struct {
	rank uint32
	id   int32
}

// pair is the key of two neighbouring tokens.
func pair(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// alphabet maps the characters that byte-level vocabularies are written in to
// the bytes they stand for, -1 for other characters: printable Latin-1 stands
// for itself, the 68 other bytes, in order, for U+0100 and following.
var alphabet = func() (table [256 + 68]int16) {
	for i := range table {
		table[i] = -1
	}
	shifted := 256
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xFF && b != 0xAD {
			table[b] = int16(b)
		} else {
			table[shifted] = int16(b)
			shifted++
		}
	}
	return table
}()

// appendBytes appends the bytes that text stands for; ok is false, and text
// itself is appended, if it has a character outside the alphabet.
func appendBytes(out, text []byte) (_ []byte, ok bool) {
	before := len(out)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if int(r) >= len(alphabet) || alphabet[r] < 0 {
			return append(out[:before], text...), false
		}
		out = append(out, byte(alphabet[r]))
		i += size
	}
	return out, true
}

// readVocabulary takes the values of model.vocab and model.merges.
func readVocabulary(vocab, merges []byte) (vocabulary, error) {
	v := vocabulary{}
	if err := v.readTokens(vocab); err != nil {
		return v, fmt.Errorf("vocab: %w", err)
	}
	for b := range 256 {
		id, ok := v.ids[string([]byte{byte(b)})]
		if !ok {
			return v, fmt.Errorf("vocab: no token for byte 0x%02x", b)
		}
		v.bytes[b] = id
	}
	if err := v.readMerges(merges); err != nil {
		return v, fmt.Errorf("merges: %w", err)
	}
	return v, nil
}

func (v *vocabulary) readTokens(vocab []byte) error {
	type entry struct {
		id, end   int32 // end in text
		reachable bool
	}
	var entries []entry
	highest := int32(-1)
	text := make([]byte, 0, len(vocab)/2)
	err := members(vocab, func(key, value []byte) error {
		id, err := readID(value)
		if err != nil {
			return fmt.Errorf("token %q: %w", clip(string(key)), err)
		}
		var reachable bool
		text, reachable = appendBytes(text, key)
		entries = append(entries, entry{id, int32(len(text)), reachable})
		highest = max(highest, id)
		return nil
	})
	if err != nil {
		return err
	}
	v.ids = make(map[string]int32, len(entries))
	v.texts = make([]string, 0, min(highest, largestVocabulary)+1)
	all := string(text) // one allocation for every token
	start := int32(0)
	for _, e := range entries {
		token := all[start:e.end]
		start = e.end
		if err := v.put(e.id, token); err != nil {
			return err
		}
		if !e.reachable {
			continue
		}
		if _, twice := v.ids[token]; twice {
			return fmt.Errorf("token %q given twice", clip(token))
		}
		v.ids[token] = e.id
	}
	return nil
}

// put gives id its text.
func (v *vocabulary) put(id int32, text string) error {
	switch {
	case id < 0 || id >= largestVocabulary:
		return fmt.Errorf("token %q: id %d is not between 0 and %d", clip(text), id, largestVocabulary-1)
	case text == "":
		return fmt.Errorf("token %d is empty", id)
	case int(id) < len(v.texts) && v.texts[id] != "":
		return fmt.Errorf("tokens %q and %q both have id %d", clip(v.texts[id]), clip(text), id)
	}
	if missing := int(id) + 1 - len(v.texts); missing > 0 {
		v.texts = append(v.texts, make([]string, missing)...)
	}
	v.texts[id] = text
	v.longest = max(v.longest, len(text))
	return nil
}

func readID(value []byte) (int32, error) {
	id, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("id %s is no integer of 32 bits", clip(string(value)))
	}
	return int32(id), nil
}

// readMerges takes an array of merges, earliest first, each written "a b" or
// ["a", "b"]. A pair given twice has its last place, as in the reference.
func (v *vocabulary) readMerges(merges []byte) error {
	v.merges = make(map[uint64]merged, bytes.Count(merges, []byte{','}))
	var scratch []byte
	rank := uint32(0)
	err := elements(merges, func(element []byte) error {
		left, right, err := mergeParts(element)
		if err != nil {
			return err
		}
		scratch, _ = appendBytes(scratch[:0], left)
		middle := len(scratch)
		scratch, _ = appendBytes(scratch, right)
		var ids [3]int32
		for i, part := range [][]byte{scratch[:middle], scratch[middle:], scratch} {
			id, ok := v.ids[string(part)]
			if !ok {
				return fmt.Errorf("%q and %q: the vocabulary has no %q", clip(string(left)), clip(string(right)), clip(string(part)))
			}
			ids[i] = id
		}
		v.merges[pair(ids[0], ids[1])] = merged{rank, ids[2]}
		rank++
		return nil
	})
	if err != nil {
		return fmt.Errorf("merge %d: %w", rank, err)
	}
	return nil
}

func mergeParts(element []byte) (left, right []byte, err error) {
	if element[0] == '"' {
		text, err := unquoted(element)
		if err != nil {
			return nil, nil, err
		}
		left, right, ok := bytes.Cut(text, []byte{' '})
		if !ok || bytes.IndexByte(right, ' ') >= 0 {
			return nil, nil, fmt.Errorf("%q is not two tokens with a space between", clip(string(text)))
		}
		return left, right, nil
	}
	parts := make([][]byte, 0, 2)
	err = elements(element, func(value []byte) error {
		part, err := unquoted(value)
		parts = append(parts, part)
		return err
	})
	if err == nil && len(parts) != 2 {
		err = errors.New("is not a pair")
	}
	if err != nil {
		return nil, nil, err
	}
	return parts[0], parts[1], nil
}
