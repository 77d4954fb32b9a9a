package modelconfig

import (
	"bytes"
	"encoding/json"
	"errors"

	"slipway/manifest"
)

// Vocabulary is what a tokenizer.json says of token ids.
type Vocabulary struct {
	Largest int64
	Tokens  int
	Err     error
}

// ReadVocabulary finds the largest token id of a tokenizer.json of the
// tokenizers library: the values of model.vocab and added_tokens[].id.
func ReadVocabulary(data []byte) *Vocabulary {
	v := &Vocabulary{Largest: -1}
	var file, model object
	var added []struct {
		ID int64 `json:"id"`
	}
	if v.Err = manifest.DecodeLoose(data, &file); v.Err != nil {
		return v
	}
	if v.Err = errors.Join(file.read("added_tokens", &added), file.read("model", &model)); v.Err != nil {
		return v
	}
	for _, token := range added {
		v.Largest = max(v.Largest, token.ID)
		v.Tokens++
	}
	v.readIDs(model["vocab"])
	return v
}

// readIDs walks {"token": id, ...} without building a map of it. Unigram
// models write a list of [token, score] instead: ids are then positions.
func (v *Vocabulary) readIDs(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	if raw[0] == '[' {
		var pieces []json.RawMessage
		v.Err = manifest.DecodeLoose(raw, &pieces)
		v.Largest = max(v.Largest, int64(len(pieces))-1)
		v.Tokens += len(pieces)
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := decoder.Token()
		if err != nil {
			return // json.Unmarshal has found the text well formed: this is its end
		}
		if id, ok := token.(float64); ok {
			v.Largest = max(v.Largest, int64(id))
			v.Tokens++
		}
	}
}
