package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// FieldNames says how a task spells the keys and the kinds of a quantization
// manifest: from the name that this package declares to the task's own.
type FieldNames map[string]string

// QuantizationNames lists what FieldNames may rename: keys of the manifest, of
// its entries and of their stored tensors, and the words that stand for kinds.
// Formats and units are slipway's own and keep their words.
func QuantizationNames() []string {
	return slices.Sorted(maps.Keys(renameable))
}

var (
	manifestKeys = []string{"base_model", "base_revision", "format", "tensors"}
	entryKeys    = []string{"axis", "biases", "codes", "file", "format", "group_size", "kind", "scale_dtype", "scales", "shape", "tensor", "unit"}
	storedKeys   = []string{"file", "tensor"}
	kinds        = []string{KindPacked2Bit, KindLiteral, KindFloat}
	renameable   = func() map[string]bool {
		all := map[string]bool{}
		for _, names := range [][]string{manifestKeys, entryKeys, kinds} {
			for _, name := range names {
				all[name] = true
			}
		}
		return all
	}()
)

// DecodeQuantizationAs reads a quantization manifest whose keys and kinds are
// spelt as names says, as strictly as DecodeQuantization. A key that the task
// spells otherwise is unknown in this package's own spelling.
func DecodeQuantizationAs(data []byte, names FieldNames) (Quantization, error) {
	if len(names) == 0 {
		return DecodeQuantization(data)
	}
	if err := checkMembers(data, MaxQuantities); err != nil {
		return Quantization{}, err
	}
	var document map[string]json.RawMessage
	if err := DecodeStrict(data, &document); err != nil {
		return Quantization{}, err
	}
	document, err := names.object(document, manifestKeys)
	if err != nil {
		return Quantization{}, err
	}
	var entries map[string]json.RawMessage
	if raw, there := document["tensors"]; there {
		if err := DecodeStrict(raw, &entries); err != nil {
			return Quantization{}, fmt.Errorf("%s: %w", names.of("tensors"), err)
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if entries[name], err = names.entry(entries[name]); err != nil {
				return Quantization{}, fmt.Errorf("tensor %q: %w", Clip(name), err)
			}
		}
		if document["tensors"], err = EncodeCanonical(entries); err != nil {
			return Quantization{}, err
		}
	}
	renamed, err := EncodeCanonical(document)
	if err != nil {
		return Quantization{}, err
	}
	return DecodeQuantization(renamed)
}

// Check refuses names that are not this package's, and spellings that two keys
// of one object, or two kinds, would share.
func (n FieldNames) Check() error {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if !renameable[name] {
			return fmt.Errorf("%q is no name of a quantization manifest", Clip(name))
		}
	}
	for _, list := range [][]string{manifestKeys, entryKeys, storedKeys, kinds} {
		first := map[string]string{}
		for _, name := range list {
			theirs := n.of(name)
			if other, taken := first[theirs]; taken {
				return fmt.Errorf("%s and %s are both spelt %q", other, name, Clip(theirs))
			}
			first[theirs] = name
		}
	}
	return nil
}

// of returns the task's spelling of a name.
func (n FieldNames) of(name string) string {
	if theirs, renamed := n[name]; renamed {
		return theirs
	}
	return name
}

// object renames an object's keys to the declared ones.
func (n FieldNames) object(object map[string]json.RawMessage, keys []string) (map[string]json.RawMessage, error) {
	declared := map[string]string{}
	for _, key := range keys {
		declared[n.of(key)] = key
	}
	renamed := make(map[string]json.RawMessage, len(object))
	for key, value := range object {
		ours, known := declared[key]
		if !known {
			return nil, fmt.Errorf("unknown key %q", Clip(key))
		}
		renamed[ours] = value
	}
	return renamed, nil
}

// entry renames the keys and the kind of one entry.
func (n FieldNames) entry(raw json.RawMessage) (json.RawMessage, error) {
	var entry map[string]json.RawMessage
	if err := DecodeStrict(raw, &entry); err != nil {
		return nil, err
	}
	entry, err := n.object(entry, entryKeys)
	if err != nil {
		return nil, err
	}
	if value, there := entry["kind"]; there {
		if entry["kind"], err = n.kind(value); err != nil {
			return nil, fmt.Errorf("%s: %w", n.of("kind"), err)
		}
	}
	for _, key := range []string{"codes", "scales", "biases"} {
		var stored map[string]json.RawMessage
		value, there := entry[key]
		if !there {
			continue
		}
		if err := DecodeStrict(value, &stored); err != nil {
			return nil, fmt.Errorf("%s: %w", n.of(key), err)
		}
		if stored, err = n.object(stored, storedKeys); err != nil {
			return nil, fmt.Errorf("%s: %w", n.of(key), err)
		}
		if entry[key], err = EncodeCanonical(stored); err != nil {
			return nil, err
		}
	}
	return EncodeCanonical(entry)
}

// kind translates a kind; one that the task has no word for stays as it is, and
// the strict decoder refuses it by name.
func (n FieldNames) kind(raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if err := DecodeStrict(raw, &text); err != nil {
		return nil, err
	}
	for _, ours := range kinds {
		if n.of(ours) == text {
			return EncodeCanonical(ours)
		}
	}
	if slices.Contains(kinds, text) {
		return nil, fmt.Errorf("%q is written %q", Clip(text), n.of(text))
	}
	return raw, nil
}
