//go:build !linux && !darwin

package safetensors

import "errors"

// mapAnonymous is not written for this system.
func mapAnonymous(int64) ([]byte, func(), error) {
	return nil, nil, errors.ErrUnsupported
}
