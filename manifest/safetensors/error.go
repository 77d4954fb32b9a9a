package safetensors

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// RuleIndex is the Rule of an error in model.safetensors.index.json, which the
// rules S1 to S8 do not cover.
const RuleIndex = "index"

// Error is a violation of the format. Errors that are not an *Error come from
// reading, such as a stream that ends inside the header.
type Error struct {
	Rule   string // "S1" to "S8", or RuleIndex
	Tensor string // the tensor at fault, "" where the fault is not one tensor's
	Detail string // what is wrong, without rule and tensor
}

// Error returns `tensor "x": offsets [8,4] end before they begin (rule S5)`.
func (e *Error) Error() string {
	text := e.Detail
	if e.Tensor != "" {
		text = "tensor " + quote(e.Tensor) + ": " + text
	}
	if e.Rule == RuleIndex {
		return text
	}
	return text + " (rule " + e.Rule + ")"
}

func fault(rule, tensor, format string, args ...any) error {
	return &Error{Rule: rule, Tensor: tensor, Detail: fmt.Sprintf(format, args...)}
}

// quote makes a name from an untrusted file fit for one line of a message.
func quote(name string) string {
	const longest = 200
	if len(name) <= longest {
		return strconv.Quote(name)
	}
	cut := longest
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(name[:cut]), len(name))
}
