package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"slipway/manifest"
	"slipway/runtime/api"
	"slipway/runtime/model"
	"slipway/runtime/plainfile"
)

// readDefaults returns how the checkpoint wants to be sampled where a request is
// silent: as generation_config.json says if that has do_sample, else greedily.
func readDefaults(folder string) (s model.Sampling, err error) {
	name := filepath.Join(folder, "generation_config.json")
	data, err := plainfile.Read(name, plainfile.Config)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	var values map[string]json.RawMessage
	if err := manifest.DecodeLoose(data, &values); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	if s, err = api.ReadDefaults(values); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	return s, nil
}
