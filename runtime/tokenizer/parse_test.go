package tokenizer

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each case breaks the reduced file in one place; unbroken it parses, which
// every other test shows.
func TestParseRefuses(t *testing.T) {
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, replacement, want string }{
		{"pattern", quoted(patternLetters), quoted(`\w+|\W`), `tokenizer.json: pre_tokenizer: pattern "\\w+|\\W" of Split is not one of Qwen's two`},
		{"behavior", `"Isolated"`, `"Removed"`, `pre_tokenizer: behavior "Removed", invert false of Split is not supported`},
		{"inverted", `"invert":false`, `"invert":true`, `invert true of Split is not supported`},
		{"no regex", `"Regex":`, `"String":`, `no Regex in Split`},
		{"normalizer", `"normalizer":{"type":"NFC"}`, `"normalizer":{"type":"Lowercase"}`, `normalizer: type "Lowercase" is not supported`},
		{"normalizer in sequence", `"normalizer":{"type":"NFC"}`, `"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Strip"}]}`, `normalizer: type "Strip" is not supported`},
		{"prefix space", `"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}]}`, `"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":false}]}`, `add_prefix_space and use_regex of ByteLevel must be false`},
		{"its own pattern", `"use_regex":false}]}`, `"use_regex":true}]}`, `add_prefix_space and use_regex of ByteLevel must be false`},
		{"post-processor", `"post_processor":{"type":"ByteLevel"`, `"post_processor":{"type":"TemplateProcessing"`, `post_processor: type "TemplateProcessing" is not supported`},
		{"decoder", `"decoder":{"type":"ByteLevel"`, `"decoder":{"type":"Metaspace"`, `decoder: type "Metaspace" is not supported`},
		{"model", `"type":"BPE"`, `"type":"Unigram"`, `model: type "Unigram" is not supported`},
		{"dropout", `"dropout":null`, `"dropout":0.1`, `dropout 0.1 is not supported`},
		{"ignore_merges", `"ignore_merges":false`, `"ignore_merges":true`, `ignore_merges true is not supported`},
		{"model key", `"ignore_merges":false`, `"shuffle":true`, `model: unknown key "shuffle"`},
		{"key", `"truncation":null`, `"transliteration":true`, `unknown key "transliteration"`},
		{"key twice", `"truncation":null`, `"normalizer":null`, `key "normalizer" given twice`},
		{"flag", `"id":151643,"content":"<|endoftext|>","single_word":false,"lstrip":false`, `"id":151643,"content":"<|endoftext|>","single_word":false,"lstrip":true`, `added_tokens: added token "<|endoftext|>": single_word, lstrip and rstrip are not supported`},
		{"empty added token", `"content":"<|endoftext|>"`, `"content":""`, `added token 151643 is empty`},
		{"added id taken", `"id":151643,`, `"id":9707,`, `tokens "Hello" and "<|endoftext|>" both have id 9707`},
		{"added token elsewhere", `"content":"<|endoftext|>"`, `"content":"Hello"`, `token "Hello" has ids 9707 and 151643`},
		{"id too high", `"Hello":9707`, `"Hello":1048576`, `token "Hello": id 1048576 is not between 0 and 1048575`},
		{"id negative", `"Hello":9707`, `"Hello":-1`, `id -1 is not between`},
		{"id no integer", `"Hello":9707`, `"Hello":9707.5`, `id 9707.5 is no integer of 32 bits`},
		{"id twice", `"Hello":9707`, `"Hello":1879`, `both have id 1879`},
		{"token twice", `"Hello":9707`, `"Hello":9707,"Hello":150001`, `token "Hello" given twice`},
		{"no byte", `"A":32,`, ``, `vocab: no token for byte 0x41`},
		{"merge of nothing", `"H ello"`, `"H nonsensical"`, `the vocabulary has no "nonsensical"`},
		{"merge to nothing", `"H ello"`, `"Hello Hello"`, `the vocabulary has no "HelloHello"`},
		{"merge of three", `"H ello"`, `"H el lo"`, `"H el lo" is not two tokens with a space between`},
		{"merge of one", `"H ello"`, `["H"]`, `is not a pair`},
		{"merge of a number", `"H ello"`, `["H",1]`, `1 is no string`},
		{"merge is a number", `"H ello"`, `17`, `is no array`},
		{"vocab", `"vocab":{`, `"vocab":7,"unk_token":{`, `given twice`},
		{"not JSON", `"version":`, `"version"`, `tokenizer.json: invalid character`},
		{"not UTF-8", `"version":"1.0"`, "\"version\":\"\xff\"", `tokenizer.json: not valid UTF-8`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broken := exchange(t, data, tc.old, tc.replacement)
			_, err := Parse(broken, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestParseConfigRefuses(t *testing.T) {
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, config, want string }{
		{"not JSON", `{`, `tokenizer_config.json: unexpected end of JSON input`},
		{"no object", `[]`, `tokenizer_config.json: is no object`},
		{"eos unknown", `{"eos_token":"</s>"}`, `tokenizer_config.json: eos_token "</s>" is no token`},
		{"twice", `{"eos_token":null,"eos_token":null}`, `key "eos_token" given twice`},
		{"id", `{"added_tokens_decoder":{"x":{"content":"a"}}}`, `added_tokens_decoder: "x" is no id`},
		{"taken", `{"added_tokens_decoder":{"151643":{"content":"<new>"}}}`, `tokens "<|endoftext|>" and "<new>" both have id 151643`},
		{"moved", `{"added_tokens_decoder":{"151700":{"content":"<think>"}}}`, `token "<think>" has ids 151667 and 151700`},
	} {
		if _, err := Parse(data, []byte(tc.config)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
	}
}

func TestParseConfig(t *testing.T) {
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	config := `{"eos_token":{"content":"<|im_end|>"},"EOS_token":"x","added_tokens_decoder":{
		"151667":{"content":"<think>","special":false},
		"151669":{"content":"<extra>","lstrip":false,"normalized":false,"special":true}}}`
	tokenizer, err := Parse(data, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tokenizer.EndToken(); !ok || id != 151645 {
		t.Errorf("EndToken = %d, %v", id, ok)
	}
	if got := tokenizer.Encode("Hello<extra>"); !slices.Equal(got, []int32{9707, 151669}) {
		t.Errorf("got %v", got)
	}
	if tokenizer.VocabularySize() != 151670 || !tokenizer.special[151669] {
		t.Error("the token of tokenizer_config.json is not there")
	}
}

var mergeLine = regexp.MustCompile(`(?m)^"([^" ]+) ([^" ]+)"(,?)$`)

// Merges come as "a b" or as ["a","b"].
func TestMergesAsPairs(t *testing.T) {
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	pairs := mergeLine.ReplaceAll(data, []byte(`["$1", "$2"]$3`))
	if bytes.Count(pairs, []byte(`["`)) < 6000 {
		t.Fatal("the merges were not rewritten")
	}
	checkVectors(t, parsed(t, pairs, false), parsed(t, pairs, true))
}

// Added tokens marked normalized are found in the normalised text, the others
// in the text as it came; of several at one place the longest counts.
func TestAddedTokenFlags(t *testing.T) {
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	with := func(tokens string) *Tokenizer {
		return parsed(t, exchange(t, data, `"added_tokens":[`, `"added_tokens":[`+tokens+","), false)
	}
	for _, tc := range []struct {
		name, added, text string
		want              []int32
	}{
		{"normalized", `{"id":151670,"content":"é!","normalized":true}`, "e\u0301!", []int32{151670}},
		{"normalized, written decomposed", `{"id":151670,"content":"e\u0301!","normalized":true}`, "é!", []int32{151670}},
		{"verbatim", `{"id":151670,"content":"é!","normalized":false}`, "e\u0301!", []int32{963, 0}},
		{"verbatim found", `{"id":151670,"content":"é!","normalized":false}`, "é!", []int32{151670}},
		{"longest", `{"id":151670,"content":"<think>!","normalized":false},{"id":151671,"content":"<thin","normalized":false}`, "<think><think>!<thin<", []int32{151667, 151670, 151671, 27}},
		{"leftmost", `{"id":151670,"content":"a~b","normalized":false},{"id":151671,"content":"b~cd","normalized":false}`, "a~b~d", []int32{151670, 93, 67}},
	} {
		if got := with(tc.added).Encode(tc.text); !slices.Equal(got, tc.want) {
			t.Errorf("%s: Encode(%q) = %v, want %v", tc.name, tc.text, got, tc.want)
		}
	}
}

func TestLoad(t *testing.T) {
	tokenizer, err := Load("testdata/abacus")
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tokenizer.EndToken(); !ok || id != 443 {
		t.Errorf("EndToken = %d, %v", id, ok)
	}
	folder := t.TempDir()
	if _, err := Load(folder); err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "tokenizer.json")) {
		t.Errorf("no tokenizer.json: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(folder); err == nil || !strings.Contains(err.Error(), folder+": tokenizer.json: pre_tokenizer: is not a Split followed by a ByteLevel") {
		t.Errorf("empty object: %v", err)
	}
	data, err := reducedFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tokenizer.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(folder); err != nil {
		t.Errorf("without tokenizer_config.json: %v", err)
	}
}
