package tokenizer

import (
	"errors"
	"fmt"

	"slipway/manifest"
)

// stage is a normalizer, pre-tokenizer, post-processor or decoder of
// tokenizer.json, with the settings of those that are known here.
type stage struct {
	Type           string   `json:"type"`
	Normalizers    []stage  `json:"normalizers"`
	Pretokenizers  []stage  `json:"pretokenizers"`
	Pattern        *pattern `json:"pattern"`
	Behavior       string   `json:"behavior"`
	Invert         bool     `json:"invert"`
	AddPrefixSpace *bool    `json:"add_prefix_space"`
	TrimOffsets    *bool    `json:"trim_offsets"`
	UseRegex       *bool    `json:"use_regex"`
}

type pattern struct {
	Regex  *string `json:"Regex"`
	String *string `json:"String"`
}

// readStage returns nil for null. The type is looked at first, so that an
// unknown one is named, not one of its settings.
func readStage(value []byte, known ...string) (*stage, error) {
	if string(value) == "null" {
		return nil, nil
	}
	kind := ""
	err := uniqueMembers(value, func(key string, value []byte) error {
		if key != "type" {
			return nil
		}
		text, err := unquoted(value)
		kind = string(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := checkType(kind, known...); err != nil {
		return nil, err
	}
	var s stage
	return &s, manifest.DecodeStrict(value, &s)
}

func checkType(kind string, known ...string) error {
	for _, k := range known {
		if kind == k {
			return nil
		}
	}
	return fmt.Errorf("type %q is not supported", clip(kind))
}

// readNormalizer takes null, NFC, or a sequence of NFC.
func (p *parts) readNormalizer(value []byte) error {
	s, err := readStage(value, "NFC", "Sequence")
	if err != nil || s == nil {
		return err
	}
	for _, inner := range s.Normalizers {
		if err := checkType(inner.Type, "NFC"); err != nil {
			return err
		}
	}
	p.compose = s.Type == "NFC" || len(s.Normalizers) > 0
	return nil
}

// readSplitter takes the sequence of a Split by one of the two patterns and a
// ByteLevel that only maps bytes.
func (p *parts) readSplitter(value []byte) error {
	s, err := readStage(value, "Sequence")
	if err != nil {
		return err
	}
	if s == nil || len(s.Pretokenizers) != 2 || s.Pretokenizers[0].Type != "Split" || s.Pretokenizers[1].Type != "ByteLevel" {
		return errors.New("is not a Split followed by a ByteLevel")
	}
	split, bytes := s.Pretokenizers[0], s.Pretokenizers[1]
	switch {
	case split.Behavior != "Isolated" || split.Invert:
		return fmt.Errorf("behavior %q, invert %v of Split is not supported", clip(split.Behavior), split.Invert)
	case split.Pattern == nil || split.Pattern.Regex == nil:
		return errors.New("no Regex in Split")
	case isNot(bytes.AddPrefixSpace, false) || isNot(bytes.UseRegex, false):
		return errors.New("add_prefix_space and use_regex of ByteLevel must be false")
	}
	switch *split.Pattern.Regex {
	case patternLetters:
		p.splitter = newSplitter(false)
	case patternMarks:
		p.splitter = newSplitter(true)
	default:
		return fmt.Errorf("pattern %q of Split is not one of Qwen's two", *split.Pattern.Regex)
	}
	return nil
}

func isNot(value *bool, want bool) bool { return value == nil || *value != want }

// checkPostProcessor takes null or ByteLevel, which concerns offsets only.
func checkPostProcessor(value []byte) error {
	_, err := readStage(value, "ByteLevel")
	return err
}

// checkDecoder takes ByteLevel; its settings do not concern decoding.
func checkDecoder(value []byte) error {
	s, err := readStage(value, "ByteLevel")
	if err == nil && s == nil {
		err = errors.New("is missing")
	}
	return err
}
