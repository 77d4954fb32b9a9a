package config

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// submissionVariable is the one reference that a value may hold; it is kept as
// text, for the grader's shell to fill in.
const submissionVariable = "submission"

// literalText returns the value of a quoted string without references.
func literalText(e hclsyntax.Expression) (string, bool) { return templateText(e, false) }

// templateText is literalText that keeps ${submission} where it may stand.
func templateText(e hclsyntax.Expression, submission bool) (string, bool) {
	var parts []hclsyntax.Expression
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr:
		parts = e.Parts
	case *hclsyntax.TemplateWrapExpr:
		parts = []hclsyntax.Expression{e.Wrapped}
	default:
		return "", false
	}
	var text strings.Builder
	for _, part := range parts {
		if value, ok := literalValue(part, cty.String); ok {
			text.WriteString(value.AsString())
			continue
		}
		reference, ok := part.(*hclsyntax.ScopeTraversalExpr)
		if !ok || !submission || len(reference.Traversal) != 1 || reference.Traversal.RootName() != submissionVariable {
			return "", false
		}
		text.WriteString("${" + submissionVariable + "}")
	}
	return text.String(), true
}

// literalDecimal returns a number that may be negative, which a literal of HCL is
// not: nothing takes one, and whoever writes one is told so.
func literalDecimal(e hclsyntax.Expression) (*big.Float, bool) {
	negated, is := e.(*hclsyntax.UnaryOpExpr)
	if !is || negated.Op != hclsyntax.OpNegate {
		return literalNumber(e)
	}
	number, ok := literalNumber(negated.Val)
	if !ok {
		return nil, false
	}
	return new(big.Float).Neg(number), true
}

// literalNumber returns a number that is not negative.
func literalNumber(e hclsyntax.Expression) (*big.Float, bool) {
	value, ok := literalValue(e, cty.Number)
	if !ok {
		return nil, false
	}
	return value.AsBigFloat(), true
}

// literalWhole returns a number that is an int64 exactly.
func literalWhole(e hclsyntax.Expression) (int64, bool) {
	number, ok := literalNumber(e)
	if !ok {
		return 0, false
	}
	whole, accuracy := number.Int64()
	return whole, accuracy == big.Exact
}

// literalFlag returns true or false.
func literalFlag(e hclsyntax.Expression) (value, ok bool) {
	v, ok := literalValue(e, cty.Bool)
	return ok && v.True(), ok
}

// literalList returns the elements of [a, b].
func literalList(e hclsyntax.Expression) ([]hclsyntax.Expression, bool) {
	tuple, ok := e.(*hclsyntax.TupleConsExpr)
	if !ok {
		return nil, false
	}
	return tuple.Exprs, true
}

func literalValue(e hclsyntax.Expression, want cty.Type) (cty.Value, bool) {
	literal, ok := e.(*hclsyntax.LiteralValueExpr)
	if !ok || literal.Val.IsNull() || literal.Val.Type() != want {
		return cty.NilVal, false
	}
	return literal.Val, true
}

// sizeUnits are the units of a size in bytes: powers of 1024 and of 1000.
var sizeUnits = map[string]int64{
	"": 1, "B": 1, "bytes": 1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"KB": 1e3, "MB": 1e6, "GB": 1e9,
}

// ParseSize reads a whole number and a unit, "4GiB" or "500 MB", in bytes.
func ParseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	unit, known := sizeUnits[strings.TrimPrefix(text[digits:], " ")]
	number, err := strconv.ParseInt(text[:digits], 10, 64)
	switch {
	case digits == 0 || !known:
		return 0, fmt.Errorf("size %q is not a whole number and KiB, MiB, GiB, KB, MB, GB or bytes", text)
	case err != nil || number > math.MaxInt64/unit:
		return 0, fmt.Errorf("size %q is out of range", text)
	case number == 0:
		return 0, fmt.Errorf("size %q is not positive", text)
	}
	return number * unit, nil
}
