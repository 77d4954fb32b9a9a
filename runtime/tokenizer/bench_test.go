package tokenizer

import (
	"os"
	"strings"
	"testing"
)

// fullOrReduced is the published tokenizer where SLIPWAY_QWEN3_TOKENIZER names
// its folder.
func fullOrReduced(b *testing.B) *Tokenizer {
	folder := os.Getenv("SLIPWAY_QWEN3_TOKENIZER")
	if folder == "" {
		return reduced(b, false)
	}
	tokenizer, err := Load(folder)
	if err != nil {
		b.Fatal(err)
	}
	return tokenizer
}

func BenchmarkParse(b *testing.B) {
	data, err := reducedFile()
	if folder := os.Getenv("SLIPWAY_QWEN3_TOKENIZER"); folder != "" {
		data, err = os.ReadFile(folder + "/tokenizer.json")
	}
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tokenizer := fullOrReduced(b)
	for _, category := range []string{"words", "code", "cjk", "arabic", "indic"} {
		var text strings.Builder
		for _, v := range readVectors(b) {
			if v.Category == category {
				text.WriteString(v.Text)
				text.WriteByte('\n')
			}
		}
		benchmarkText(b, tokenizer, category, text.String())
	}
	benchmarkText(b, tokenizer, "one word of 1 MB", strings.Repeat("abcdefghij", 100_000))
	benchmarkText(b, tokenizer, "one character, 1 MB", strings.Repeat("a", 1_000_000))
}

func benchmarkText(b *testing.B, tokenizer *Tokenizer, name, text string) {
	b.Run(name, func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			tokenizer.Encode(text)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	tokenizer := fullOrReduced(b)
	var ids []int32
	size := 0
	for _, v := range readVectors(b) {
		ids = append(ids, v.IDs...)
		size += len(v.Text)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		stream := tokenizer.Stream(true)
		for _, id := range ids {
			stream.Next(id)
		}
		stream.Flush()
	}
}
