package template

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// pythonFloat is Python's repr of a float.
func pythonFloat(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if exponent < -4 || exponent >= 16 {
		return text
	}
	text = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// toString is Jinja's filter string, Python's str. Lists and mappings are left
// to the engine.
func toString(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	v := args[0]
	if digits, ok := bigInteger(v); ok {
		return jinja.NewString(digits), nil
	}
	switch {
	case v.IsString():
		return v, nil
	case v.IsUndefined():
		return jinja.NewString(""), nil
	case v.IsFloat():
		return jinja.NewString(pythonFloat(v.AsFloat())), nil
	}
	return jinja.NewString(v.String()), nil
}

// tojson is the filter that transformers defines: json.dumps without escapes
// for what is not ASCII.
func tojson(args []jinja.Value, options map[string]jinja.Value) (jinja.Value, error) {
	w := jsonWriter{item: ", ", key: ": "}
	for name, value := range options {
		switch {
		case name == "ensure_ascii" && value.IsBool():
			w.ascii = value.AsBool()
		case name == "sort_keys" && value.IsBool():
			w.sorted = value.AsBool()
		case name == "indent" && value.IsInt():
			w.indent = int(min(max(value.AsInt(), 0), 16))
			w.indented = true
		case name == "indent" && value.IsNone(), name == "separators" && value.IsNone():
		case name == "separators" && isPairOfStrings(value):
		default:
			return jinja.Undefined(), fmt.Errorf("tojson: argument %s is not supported", name)
		}
	}
	if w.indented {
		w.item = ","
	}
	if separators, ok := options["separators"]; ok && separators.IsList() {
		w.item, w.key = separators.AsList().Get(0).AsString(), separators.AsList().Get(1).AsString()
	}
	w.write(args[0], 0)
	return jinja.NewString(w.out.String()), nil
}

func isPairOfStrings(v jinja.Value) bool {
	return v.IsList() && v.AsList().Len() == 2 && v.AsList().Get(0).IsString() && v.AsList().Get(1).IsString()
}

// jsonWriter writes JSON as Python's json.dumps does.
type jsonWriter struct {
	out           strings.Builder
	item, key     string // separators
	ascii, sorted bool
	indented      bool
	indent        int
}

func (w *jsonWriter) write(v jinja.Value, depth int) {
	if digits, ok := bigInteger(v); ok {
		w.out.WriteString(digits)
		return
	}
	switch {
	case v.IsBool():
		w.out.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		w.out.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		text := pythonFloat(v.AsFloat())
		w.out.WriteString(strings.NewReplacer("inf", "Infinity", "nan", "NaN").Replace(text))
	case v.IsString():
		w.quote(v.AsString())
	case v.IsList():
		items := v.AsList().Items
		w.series('[', ']', len(items), depth, func(i int) { w.write(items[i], depth+1) })
	case v.IsDict():
		dict := v.AsDict()
		keys := dict.OrderedKeys()
		if w.sorted {
			slices.Sort(keys)
		}
		w.series('{', '}', len(keys), depth, func(i int) {
			w.quote(keys[i])
			w.out.WriteString(w.key)
			w.write(dict.Data[keys[i]], depth+1)
		})
	default:
		w.out.WriteString("null")
	}
}

// series writes n items between brackets.
func (w *jsonWriter) series(open, closing byte, n, depth int, write func(i int)) {
	w.out.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.out.WriteString(w.item)
		}
		w.line(depth + 1)
		write(i)
	}
	if n > 0 {
		w.line(depth)
	}
	w.out.WriteByte(closing)
}

func (w *jsonWriter) line(depth int) {
	if w.indented {
		w.out.WriteByte('\n')
		w.out.WriteString(strings.Repeat(" ", w.indent*depth))
	}
}

func (w *jsonWriter) quote(text string) {
	w.out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			w.out.WriteByte('\\')
			w.out.WriteRune(r)
		case r == '\n':
			w.out.WriteString(`\n`)
		case r == '\r':
			w.out.WriteString(`\r`)
		case r == '\t':
			w.out.WriteString(`\t`)
		case r == '\b':
			w.out.WriteString(`\b`)
		case r == '\f':
			w.out.WriteString(`\f`)
		case r < ' ' || w.ascii && r > '~' && r <= 0xFFFF:
			fmt.Fprintf(&w.out, `\u%04x`, r)
		case w.ascii && r > 0xFFFF:
			fmt.Fprintf(&w.out, `\u%04x\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		default:
			w.out.WriteRune(r)
		}
	}
	w.out.WriteByte('"')
}
