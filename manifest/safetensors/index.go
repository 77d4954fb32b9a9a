package safetensors

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// IndexName is the file name of an index by convention.
const IndexName = "model.safetensors.index.json"

// Index is a model.safetensors.index.json: which shard holds which tensor.
type Index struct {
	WeightMap map[string]string          // tensor name to shard, a base name
	TotalSize *int64                     // metadata.total_size, nil where absent
	Metadata  map[string]json.RawMessage // other keys of metadata, as written
}

// ReadIndex reads an index. Its keys are exactly weight_map and, optionally,
// metadata; no key occurs twice; every shard is a base name. Violations are
// *Error with RuleIndex.
func ReadIndex(data []byte) (*Index, error) {
	if !utf8.Valid(data) {
		return nil, fault(RuleIndex, "", "not valid UTF-8 at byte %d", firstInvalid(data))
	}
	p := &indexParser{scanner: scanner{src: data, rule: RuleIndex}}
	if err := p.object(p.section); err != nil {
		return nil, err
	}
	if p.peek(); p.pos < len(data) {
		return nil, p.fault(RuleIndex, "something follows the JSON")
	}
	if p.index.WeightMap == nil {
		return nil, fault(RuleIndex, "", `key "weight_map" is missing`)
	}
	return &p.index, nil
}

type indexParser struct {
	scanner
	index Index
}

// section reads the value of one top-level key.
func (p *indexParser) section(key []byte) error {
	switch string(key) {
	case "weight_map":
		if p.index.WeightMap != nil {
			return fault(RuleIndex, "", "key %q occurs twice", key)
		}
		p.index.WeightMap = make(map[string]string)
		return p.object(p.weight)
	case "metadata":
		if p.index.Metadata != nil {
			return fault(RuleIndex, "", "key %q occurs twice", key)
		}
		p.index.Metadata = make(map[string]json.RawMessage)
		return p.object(p.metadatum)
	}
	return fault(RuleIndex, "", "unknown key %s", quote(string(key)))
}

func (p *indexParser) weight(key []byte) error {
	name := string(key)
	if i := controlIndex(name); i >= 0 {
		return fault(RuleIndex, name, "control character at byte %d of the name", i)
	}
	if _, twice := p.index.WeightMap[name]; twice {
		return fault(RuleIndex, name, "name occurs twice in weight_map")
	}
	if len(p.index.WeightMap) == MaxTensors {
		return fault(RuleIndex, "", "more than %d tensors in weight_map", MaxTensors)
	}
	value, err := p.string()
	if err != nil {
		if e, ok := err.(*Error); ok {
			e.Tensor = name
		}
		return err
	}
	shard := string(value)
	if !isBaseName(shard) {
		return fault(RuleIndex, name, "shard %s is not a plain file name", quote(shard))
	}
	p.index.WeightMap[name] = shard
	return nil
}

// isBaseName reports whether name is one path element on every system, and so
// cannot leave the folder of the index.
func isBaseName(name string) bool {
	return name != "" && name != "." && name != ".." &&
		!strings.ContainsAny(name, `/\`) && controlIndex(name) < 0
}

func (p *indexParser) metadatum(rawKey []byte) error {
	key := string(rawKey)
	_, twice := p.index.Metadata[key]
	if twice || key == "total_size" && p.index.TotalSize != nil {
		return fault(RuleIndex, "", "metadata key %s occurs twice", quote(key))
	}
	if key == "total_size" {
		total, err := p.integer(RuleIndex)
		p.index.TotalSize = &total
		return err
	}
	// Any JSON may stand here; no rule depends on it.
	decoder := json.NewDecoder(bytes.NewReader(p.src[p.pos:]))
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return p.fault(RuleIndex, "metadata key %s: %v", quote(key), err)
	}
	p.pos += int(decoder.InputOffset())
	p.index.Metadata[key] = value
	return nil
}
