package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"slipway/manifest/content"
)

// schemaFile is the published JSON schema of a model config (data of
// modelpack/model-spec). It is not part of this repository.
const schemaFile = "../../shared/reference/modelpack-config-schema.json"

// schema is the part of JSON schema that model-spec uses.
type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 string            `json:"type"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *bool             `json:"additionalProperties"`
	Required             []string          `json:"required"`
	Items                *schema           `json:"items"`
	MinItems             int               `json:"minItems"`
	MinLength            int               `json:"minLength"`
	Enum                 []string          `json:"enum"`
	Definitions          map[string]schema `json:"$defs"`
}

func TestConfigValidByModelSpec(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the specification's schema is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var spec schema
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	sealed, err := Seal(t.Context(), mustPlan(t, ".."), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	raw, err := content.ReadBlob(t.Context(), sealed, sealed.Artifact.Config, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	for _, fault := range spec.check(spec, "config", config) {
		t.Error(fault)
	}
	// The check must be able to fail.
	config["created"] = "2026-01-01T00:00:00Z"
	delete(config, "modelfs")
	if faults := spec.check(spec, "config", config); len(faults) != 2 {
		t.Errorf("a config with a surplus and a missing key has faults %v", faults)
	}
}

func (s schema) check(root schema, at string, value any) []string {
	if s.Ref != "" {
		return root.Definitions[strings.TrimPrefix(s.Ref, "#/$defs/")].check(root, at, value)
	}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, args...)) }
	switch value := value.(type) {
	case map[string]any:
		for _, key := range s.Required {
			if _, ok := value[key]; !ok {
				fault("%s is missing", key)
			}
		}
		for key, inner := range value {
			if property, known := s.Properties[key]; known {
				faults = append(faults, property.check(root, at+"."+key, inner)...)
			} else if s.AdditionalProperties != nil && !*s.AdditionalProperties {
				fault("%s is not allowed", key)
			}
		}
	case []any:
		if len(value) < s.MinItems {
			fault("%d items are fewer than %d", len(value), s.MinItems)
		}
		for i, inner := range value {
			faults = append(faults, s.Items.check(root, fmt.Sprintf("%s[%d]", at, i), inner)...)
		}
	case string:
		if len(value) < s.MinLength || s.Type != "string" || len(s.Enum) > 0 && !strings.Contains(strings.Join(s.Enum, " "), value) {
			fault("%q does not fit %+v", value, s)
		}
	default:
		fault("%v is unexpected", value)
	}
	return faults
}
