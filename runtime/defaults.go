package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"slipway/runtime/model"
)

// readDefaults returns how the checkpoint wants to be sampled where a request is
// silent: as generation_config.json says if that has do_sample, else greedily.
func readDefaults(folder string) (s model.Sampling, err error) {
	name := filepath.Join(folder, "generation_config.json")
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	config := struct {
		DoSample          bool     `json:"do_sample"`
		Temperature       *float32 `json:"temperature"`
		TopK              *int     `json:"top_k"`
		TopP              float32  `json:"top_p"`
		MinP              float32  `json:"min_p"`
		RepetitionPenalty float32  `json:"repetition_penalty"`
	}{}
	if err := json.Unmarshal(data, &config); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	s.RepetitionPenalty = config.RepetitionPenalty
	if !config.DoSample {
		return s, nil
	}
	s.Temperature, s.TopP, s.MinP = 1, config.TopP, config.MinP
	if config.Temperature != nil {
		s.Temperature = *config.Temperature
	}
	if config.TopK != nil {
		s.TopK = max(0, *config.TopK)
	}
	return s, nil
}
