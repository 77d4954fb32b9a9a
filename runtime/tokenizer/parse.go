package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"slipway/manifest"
	"slipway/runtime/plainfile"
)

// Load reads tokenizer.json and, where there is one, tokenizer_config.json of a
// checkpoint's folder.
func Load(folder string) (*Tokenizer, error) {
	tokenizer, err := plainfile.Read(filepath.Join(folder, "tokenizer.json"), plainfile.Large)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	config, err := plainfile.Read(filepath.Join(folder, "tokenizer_config.json"), plainfile.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	t, err := Parse(tokenizer, config)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer of %s: %w", folder, err)
	}
	return t, nil
}

// Parse takes the contents of tokenizer.json and of tokenizer_config.json,
// which may be empty. Errors begin with the name of the file.
func Parse(tokenizer, config []byte) (*Tokenizer, error) {
	var parts parts
	if err := parts.read(tokenizer); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if len(config) > 0 {
		if err := parts.readConfig(config); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
	}
	t := &Tokenizer{vocabulary: parts.vocabulary, splitter: parts.splitter, compose: parts.compose, end: -1}
	t.special, t.added = map[int32]bool{}, map[string]int32{}
	if err := t.add(parts.added); err != nil {
		return nil, fmt.Errorf("tokenizer.json: added_tokens: %w", err)
	}
	if err := t.add(parts.configured); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: added_tokens_decoder: %w", err)
	}
	t.indexAdded(append(parts.added, parts.configured...))
	if parts.endToken != "" {
		id, ok := t.ID(parts.endToken)
		if !ok {
			return nil, fmt.Errorf("tokenizer_config.json: eos_token %q is no token", clip(parts.endToken))
		}
		t.end = id
	}
	t.whole = make([]atomic.Int32, len(t.texts))
	return t, nil
}

// add gives added tokens their ids. A token that stands in the vocabulary or was
// added before must have the same id there.
func (t *Tokenizer) add(tokens []addedToken) error {
	for _, token := range tokens {
		if err := token.check(); err != nil {
			return err
		}
		if token.Special {
			t.special[token.ID] = true
		}
		if id, known := t.ID(token.Content); known {
			if id != token.ID {
				return fmt.Errorf("token %q has ids %d and %d", clip(token.Content), id, token.ID)
			}
		} else if err := t.put(token.ID, token.Content); err != nil {
			return err
		}
		t.added[token.Content] = token.ID
	}
	return nil
}

// indexAdded prepares finding added tokens in text. A token given twice counts
// as it was given first.
func (t *Tokenizer) indexAdded(tokens []addedToken) {
	var verbatim, normalized []addedToken
	seen := map[int32]bool{}
	for _, token := range tokens {
		switch {
		case seen[token.ID]:
			continue
		case token.Normalized:
			if t.compose {
				token.Content = composed(token.Content)
			}
			normalized = append(normalized, token)
		default:
			verbatim = append(verbatim, token)
		}
		seen[token.ID] = true
	}
	t.verbatim, t.normalized = newMatcher(verbatim), newMatcher(normalized)
}

// parts is what the files say.
type parts struct {
	vocabulary vocabulary
	splitter   splitter
	compose    bool
	added      []addedToken
	configured []addedToken // added by tokenizer_config.json
	endToken   string
}

func (p *parts) read(data []byte) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	values := map[string][]byte{}
	err := uniqueMembers(data, func(key string, value []byte) error {
		switch key {
		case "version", "truncation", "padding": // of batches, not of ids
		case "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model":
			values[key] = value
		default:
			return fmt.Errorf("unknown key %q", clip(key))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, part := range []struct {
		key  string
		read func(value []byte) error
	}{
		{"added_tokens", p.readAdded},
		{"normalizer", p.readNormalizer},
		{"pre_tokenizer", p.readSplitter},
		{"post_processor", checkPostProcessor},
		{"decoder", checkDecoder},
		{"model", p.readModel},
	} {
		value := values[part.key]
		if value == nil {
			value = []byte("null")
		}
		if err := part.read(value); err != nil {
			return fmt.Errorf("%s: %w", part.key, err)
		}
	}
	return nil
}

func (p *parts) readAdded(value []byte) error {
	if string(value) == "null" {
		return nil
	}
	return manifest.DecodeStrict(value, &p.added)
}

func (p *parts) readModel(value []byte) error {
	values := map[string][]byte{}
	if err := uniqueMembers(value, func(key string, value []byte) error {
		values[key] = value
		return checkModelKey(key, string(value))
	}); err != nil {
		return err
	}
	if values["vocab"] == nil || values["merges"] == nil {
		return errors.New("has no vocab or no merges")
	}
	var err error
	p.vocabulary, err = readVocabulary(values["vocab"], values["merges"])
	return err
}

// checkModelKey refuses settings that would change ids. What concerns unknown
// characters does not: every byte is a token.
func checkModelKey(key, value string) error {
	neutral := value == "null" || value == "false" || value == `""`
	switch key {
	case "vocab", "merges", "unk_token", "fuse_unk", "byte_fallback":
		return nil
	case "type":
		neutral = value == `"BPE"`
	case "dropout":
		neutral = neutral || value == "0" || value == "0.0"
	case "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges":
	default:
		return fmt.Errorf("unknown key %q", clip(key))
	}
	if !neutral {
		return fmt.Errorf("%s %s is not supported", key, clip(value))
	}
	return nil
}
