package modelconfig

import (
	"os"
	"testing"
)

func FuzzConfig(f *testing.F) {
	for _, name := range []string{"testdata/qwen3.5-4b.config.json", "../../examples/abacus/ternary/config.json", "../../examples/abacus/drafter/config.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"eos_token_id":[1,2],"text_config":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		tensors, known, err := Tensors(c, ShortPrefix)
		if known && err == nil && int64(len(tensors)) < c.Layers {
			t.Errorf("%d tensors of %d layers", len(tensors), c.Layers)
		}
	})
}

func FuzzVocabulary(f *testing.F) {
	f.Add([]byte(`{"added_tokens":[{"id":95}],"model":{"vocab":{"a":0,"b":1}}}`))
	f.Add([]byte(`{"model":{"vocab":[["a",-1.5]]}}`))
	f.Add([]byte(`{"model":{"vocab":{"a":{"b":[1e99]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := ReadVocabulary(data)
		if v.Err == nil && v.Tokens == 0 && v.Largest >= 0 {
			t.Errorf("no token has id %d", v.Largest)
		}
	})
}
