package audit

import (
	"fmt"
	"strconv"

	"slipway/manifest/safetensors"
	"slipway/verify/ternary"
)

// Describe writes what a stored tensor is: F16 [64 2].
func Describe(t safetensors.Tensor) string { return fmt.Sprintf("%s %v", t.DType, t.Shape) }

// IsFloating reports whether a type holds floating-point numbers.
func IsFloating(d safetensors.DType) bool {
	switch d {
	case safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.F64, safetensors.F8E4M3, safetensors.F8E5M2:
		return true
	}
	return false
}

// number writes a value as briefly as it can be told from others.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }

// valueText is a value of a type from its bits, for people.
func valueText(dtype safetensors.DType, b uint64) string { return number(ternary.Value(dtype, b)) }
