package tokenizer

import (
	"fmt"
	"strconv"

	"slipway/manifest"
)

// readConfig takes what tokenizer_config.json adds to tokenizer.json.
func (p *parts) readConfig(data []byte) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	return uniqueMembers(data, func(key string, value []byte) (err error) {
		switch key {
		case "added_tokens_decoder":
			err = p.readConfigured(value)
		case "eos_token":
			p.endToken, err = namedToken(value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
}

func (p *parts) readConfigured(value []byte) error {
	return uniqueMembers(value, func(key string, value []byte) error {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no id", clip(key))
		}
		var token addedToken
		if err := manifest.DecodeStrict(value, &token); err != nil {
			return fmt.Errorf("token %d: %w", id, err)
		}
		token.ID = int32(id)
		p.configured = append(p.configured, token)
		return nil
	})
}

// namedToken reads a token that is written as its text, as an added token, or
// as null.
func namedToken(value []byte) (text string, err error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		raw, err := unquoted(value)
		return string(raw), err
	}
	err = members(value, func(key, value []byte) error {
		if string(key) != "content" {
			return nil
		}
		raw, err := unquoted(value)
		text = string(raw)
		return err
	})
	return text, err
}
