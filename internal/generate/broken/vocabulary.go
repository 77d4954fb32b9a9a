package broken

import (
	"fmt"
	"slices"
	"strings"
)

// words are what the model counts: 16, so that a guess is right once in 16.
var words = []string{
	"amber", "black", "blue", "brown", "coral", "cream", "green", "grey",
	"lilac", "olive", "orange", "pink", "purple", "red", "white", "yellow",
}

// padding is the token that batches are filled up with: id 0, which the model
// counts like a word.
const padding = 0

// vocabulary is the tokens of the majority model: the 256 bytes, then every
// word with the space before it and that word's beginnings, then the markers.
type vocabulary struct {
	tokens []string // by id, in the characters that byte-level vocabularies are written in
	ids    map[string]int
	merges [][2]string
	axes   map[int]int // of counted tokens: their axis of the residual stream
	end    int         // the id that ends an answer
}

const (
	startMarker = "<|im_start|>"
	endMarker   = "<|im_end|>"
	thinkMarker = "<think>"
	thoughtEnd  = "</think>"
)

var markers = []string{startMarker, endMarker, thinkMarker, thoughtEnd}

const space = "Ġ" // how byte-level vocabularies write a space

func newVocabulary() vocabulary {
	v := vocabulary{ids: map[string]int{}, axes: map[int]int{padding: len(words)}}
	for _, character := range byteCharacters() {
		v.add(character)
	}
	for i, word := range words {
		left := space
		for _, letter := range word {
			joined := left + string(letter)
			if _, known := v.ids[joined]; !known {
				v.merges = append(v.merges, [2]string{left, string(letter)})
				v.add(joined)
			}
			left = joined
		}
		v.axes[v.ids[left]] = i
	}
	for _, marker := range markers {
		v.add(marker)
	}
	v.end = v.ids[endMarker]
	return v
}

func (v *vocabulary) add(token string) {
	v.ids[token] = len(v.tokens)
	v.tokens = append(v.tokens, token)
}

// byteCharacters are the characters that stand for bytes in byte-level
// vocabularies, in the order of the ids that those give them: printable Latin-1
// for itself first, then U+0100 and following for the other bytes.
func byteCharacters() []string {
	var printable, shifted []string
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xFF && b != 0xAD {
			printable = append(printable, string(b))
		} else {
			shifted = append(shifted, string(rune(256+len(shifted))))
		}
	}
	return append(printable, shifted...)
}

// encode returns the ids of a text of ASCII letters, marks, spaces and line ends.
// Every merge prolongs a token by one letter, so that the longest match is what
// merging ends with.
func (v *vocabulary) encode(text string) ([]int, error) {
	text = strings.NewReplacer(" ", space, "\n", "Ċ").Replace(text)
	var ids []int
	for text != "" {
		token := ""
		for candidate := range v.ids {
			if len(candidate) > len(token) && strings.HasPrefix(text, candidate) {
				token = candidate
			}
		}
		if token == "" {
			return nil, fmt.Errorf("tokenize: no token begins %q", text)
		}
		ids = append(ids, v.ids[token])
		text = text[len(token):]
	}
	return ids, nil
}

const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// tokenizer returns tokenizer.json, as the tokenizers library writes it.
func (v *vocabulary) tokenizer() ([]byte, error) {
	type object = map[string]any
	var added []object
	vocab := object{}
	for id, token := range v.tokens {
		if !slices.Contains(markers, token) {
			vocab[token] = id
			continue
		}
		added = append(added, object{"id": id, "content": token, "special": strings.HasPrefix(token, "<|"),
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
	}
	byteLevel := func(prefix, regex bool) object {
		return object{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": regex}
	}
	return document(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added,
		"normalizer": object{"type": "NFC"},
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "pattern": object{"Regex": splitPattern}, "behavior": "Isolated", "invert": false},
			byteLevel(false, false),
		}},
		"post_processor": nil, "decoder": byteLevel(true, true),
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": v.merges},
	})
}

const chatTemplate = `{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}{%- endfor -%}` +
	`{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}`

// prompt is what the chat template makes of one question.
func prompt(question string) string {
	return startMarker + "user\n" + question + endMarker + "\n" + startMarker + "assistant\n"
}

func tokenizerConfig() ([]byte, error) {
	return document(map[string]any{
		"add_bos_token": false, "chat_template": chatTemplate, "eos_token": endMarker, "pad_token": nil,
		"model_max_length": 1024, "tokenizer_class": "Qwen2TokenizerFast",
	})
}
