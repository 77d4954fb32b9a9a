// Package shrink makes a tiny twin of a submission, so that a machine without
// the memory for the real model can still start its server: the same files, the
// same architecture, the same tensor names, types and packings, but fewer layers,
// narrower matrices and values that mean nothing.
//
// Its promise: what starts with the twin went through the submission's own
// script, server and loading code; every stored tensor of the twin has the shape
// that the twin's config.json calls for. Shapes follow from tensors' names by a
// convention that many architectures share, and a name counts only where the real
// tensor's shape is the one that the real config.json gives it. A submission with
// any other tensor is refused, not guessed at, and nothing is left behind. The
// source is only read.
package shrink

import (
	"errors"
	"fmt"
	"os"

	"slipway/manifest"
)

// Description says what a twin is.
type Description struct {
	Architecture       string // of config.json
	Layers, RealLayers int64
	Hidden, RealHidden int64 // hidden_size
	Bytes, RealBytes   int64 // of all weight files
}

// String returns "a twin of 4 of 32 layers, 256 of 2560 wide: 199.7 of 3136.5 MB of weights".
func (d Description) String() string {
	return fmt.Sprintf("a twin of %d of %d layers, %d of %d wide: %.1f of %.1f MB of weights",
		d.Layers, d.RealLayers, d.Hidden, d.RealHidden, float64(d.Bytes)/1e6, float64(d.RealBytes)/1e6)
}

// unshrinkable says why a submission has no twin.
func unshrinkable(format string, arguments ...any) error {
	return manifest.WithHint(fmt.Errorf("the model cannot be shrunk: "+format, arguments...),
		"start the real one, on a machine where it fits")
}

// Twin writes a twin of the submission in the folder source to the folder
// target, which must not exist. The twin's weight files have at most limit bytes
// together. Files that are not weights, model configuration or quantization
// manifest are the source's own: copied, or hard links where they are large.
func Twin(source, target string, limit int64) (Description, error) {
	described, err := twin(source, target, limit)
	if err != nil {
		return Description{}, fmt.Errorf("shrink the model: %w", err)
	}
	return described, nil
}

func twin(source, target string, limit int64) (described Description, err error) {
	s, err := readSubmission(source)
	if err != nil {
		return Description{}, err
	}
	plan, err := s.shrink(limit)
	if err != nil {
		return Description{}, err
	}
	if err := os.Mkdir(target, 0o755); err != nil {
		return Description{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(target))
		}
	}()
	if err := s.writeFiles(target, plan); err != nil {
		return Description{}, err
	}
	return Description{
		Architecture: s.model.architecture,
		Layers:       plan.to.text["num_hidden_layers"], RealLayers: s.model.text["num_hidden_layers"],
		Hidden: plan.to.text["hidden_size"], RealHidden: s.model.text["hidden_size"],
		Bytes: plan.bytes, RealBytes: s.bytes,
	}, nil
}
