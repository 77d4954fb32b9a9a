package template

import (
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"slipway/manifest"
)

// What rendering may take. Recursion is not refused as such: there are templates
// that write the schemas of tools so.
const (
	maxSource = 1 << 20          // bytes of a template
	maxNested = 100              // brackets in one another
	maxPrompt = 64 << 20         // bytes printed, and of one variable
	maxPasses = 1 << 20          // of all loops, together with calls of macros
	maxItems  = 1 << 20          // of a range or of a list in a variable
	maxFrames = 10000            // of the Go stack; about a thousand calls in one another
	maxTime   = 10 * time.Second // a safeguard for what the others do not bound
)

// limitError says that a template would not end within the limits.
type limitError struct{ reason string }

func (e *limitError) Error() string { return "the template " + e.reason }

// The engine has no limits of its own, and a stack that overflows ends the
// process. But it calls what stands in the variables, so templates are compiled
// with calls of these in every place by which they can go on.
const (
	guardPass  = "slipway_pass"  // in front of a loop's body; after a variable is set, with it
	guardEnter = "slipway_enter" // in front of a macro's or call's body
	guardPrint = "slipway_print" // filter of all that is printed
)

// guard counts what one rendering takes.
type guard struct {
	ends    time.Time
	passes  int
	printed int
}

// names returns the variables that guarded templates and range stand on.
func (g *guard) names() map[string]jinja.Value {
	return map[string]jinja.Value{
		guardPass:  jinja.NewCallable(guardPass, g.pass),
		guardEnter: jinja.NewCallable(guardEnter, g.enter),
		guardPrint: jinja.NewCallable(guardPrint, g.print),
		"range":    jinja.NewCallable("range", g.sequence),
	}
}

func (g *guard) pass(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	g.passes++
	if g.passes > maxPasses {
		return jinja.None(), &limitError{fmt.Sprintf("runs more than %d loop passes", maxPasses)}
	}
	if time.Now().After(g.ends) {
		return jinja.None(), &limitError{"takes too long"}
	}
	for _, v := range args {
		if v.IsString() && len(v.AsString()) > maxPrompt {
			return jinja.None(), &limitError{fmt.Sprintf("makes a string of more than %d bytes", maxPrompt)}
		}
		if v.IsList() && v.AsList().Len() > maxItems {
			return jinja.None(), &limitError{fmt.Sprintf("makes a list of more than %d items", maxItems)}
		}
	}
	return jinja.NewString(""), nil
}

func (g *guard) enter(args []jinja.Value, options map[string]jinja.Value) (jinja.Value, error) {
	var beyond [1]uintptr
	if goruntime.Callers(maxFrames, beyond[:]) > 0 {
		return jinja.None(), &limitError{"calls itself without end"}
	}
	return g.pass(args, options)
}

func (g *guard) print(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	if args[0].IsString() {
		g.printed += len(args[0].AsString())
	}
	if g.printed > maxPrompt {
		return jinja.None(), &limitError{fmt.Sprintf("prints more than %d bytes", maxPrompt)}
	}
	return args[0], nil
}

// sequence is Jinja's range with a bound.
func (g *guard) sequence(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	numbers := [3]int64{0, 0, 1} // start, stop, step
	for i, v := range args {
		switch {
		case i < len(numbers) && v.IsInt():
			numbers[i] = v.AsInt()
		case i < len(numbers) && v.IsFloat() && math.Abs(v.AsFloat()) < 1<<62: // to the engine 10 ** 2 is one
			numbers[i] = int64(v.AsFloat())
		default:
			return jinja.None(), errors.New("range takes up to three integers")
		}
	}
	switch len(args) {
	case 0:
		return jinja.None(), errors.New("range takes up to three integers")
	case 1:
		numbers[0], numbers[1] = 0, numbers[0]
	}
	start, stop, step := numbers[0], numbers[1], numbers[2]
	if step == 0 {
		return jinja.None(), errors.New("range: the step is 0")
	}
	count := math.Ceil((float64(stop) - float64(start)) / float64(step))
	if count > maxItems {
		return jinja.None(), &limitError{fmt.Sprintf("makes a list of more than %d items", maxItems)}
	}
	var items []jinja.Value
	for i := range int64(max(count, 0)) {
		items = append(items, jinja.NewInt(start+i*step))
	}
	return jinja.NewList(items), nil
}

// guarded returns a template with the guard's calls in it. They print nothing
// and leave white space as it is.
func guarded(source string) string {
	var out strings.Builder
	for raw := false; ; {
		before, tag, rest := cutTag(source)
		out.WriteString(before)
		if tag == "" {
			return out.String()
		}
		keyword := ""
		if tag[1] == '%' {
			keyword, _, _ = strings.Cut(strings.TrimSpace(strings.Trim(tag[2:len(tag)-2], "-")), " ")
		}
		raw = (raw || keyword == "raw") && keyword != "endraw"
		if raw {
			out.WriteString(tag)
		} else {
			out.WriteString(guardedTag(tag))
		}
		source = rest
	}
}

// cutTag cuts a template around its first whole tag, "" if there is none. Quotes
// hide a closer, except in comments, as they do to the engine.
func cutTag(source string) (before, tag, rest string) {
	for start := 0; start+1 < len(source); start++ {
		closer := map[string]string{"{{": "}}", "{%": "%}", "{#": "#}"}[source[start:start+2]]
		if closer == "" {
			continue
		}
		for i := start + 2; i < len(source); {
			switch {
			case strings.HasPrefix(source[i:], closer):
				return source[:start], source[start : i+2], source[i+2:]
			case closer != "#}" && (source[i] == '\'' || source[i] == '"'):
				i = quotedEnd(source, i)
			default:
				i++
			}
		}
		break
	}
	return source, "", ""
}

func guardedTag(tag string) string {
	body, left, right := tag[2:len(tag)-2], "", ""
	if rest, trims := strings.CutPrefix(body, "-"); trims {
		body, left = rest, "-"
	}
	if rest, trims := strings.CutSuffix(body, "-"); trims {
		body, right = rest, "-"
	}
	if tag[1] == '{' {
		if strings.TrimSpace(body) == "" {
			return tag
		}
		return "{{" + left + "(" + body + ")|" + guardPrint + right + "}}"
	}
	if tag[1] == '#' {
		return tag
	}
	// To the engine a tag's effect on the white space after it reaches beyond the
	// tags that follow, and a tag that prints has none of its own.
	call := func(what string) string { return tag + "{{" + what + "}}" }
	fields := strings.Fields(body)
	if len(fields) == 0 {
		return tag
	}
	switch fields[0] {
	case "for":
		return call(guardPass + "()")
	case "macro", "call":
		return call(guardEnter + "()")
	case "set":
		target, _, assigns := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(body), "set")), "=")
		if target = strings.TrimSpace(target); assigns && isTarget(target) {
			return call(guardPass + "(" + target + ")")
		}
	}
	return tag
}

// isTarget says whether text is a variable's name or a namespace's member.
func isTarget(text string) bool {
	for _, b := range []byte(text) {
		if b != '.' && !isNameByte(b) {
			return false
		}
	}
	return text != ""
}

// repetition returns the product of the numbers in a tag that multiplies. The
// engine cannot be stopped within an operation; what a template multiplies by
// way of variables is not seen.
func repetition(tag string) float64 {
	product := 1.0
	if !strings.Contains(tag, "*") {
		return product
	}
	for i := 0; i < len(tag); {
		end := i
		for end < len(tag) && isNameByte(tag[end]) {
			end++
		}
		if n, err := strconv.ParseFloat(tag[i:end], 64); err == nil && n > 1 {
			product *= n
		}
		i = end + 1
		if end < len(tag) && (tag[end] == '\'' || tag[end] == '"') {
			i = quotedEnd(tag, end)
		}
	}
	return product
}

// checkSource bounds what the engine's parser recurses over.
func checkSource(source string) error {
	if len(source) > maxSource {
		return fmt.Errorf("it has %d bytes; at most %d are taken", len(source), maxSource)
	}
	for {
		_, tag, rest := cutTag(source)
		if tag == "" {
			return nil
		}
		if tag[1] != '#' && repetition(tag) > maxPrompt {
			return fmt.Errorf("%s repeats a string too often", manifest.Clip(tag))
		}
		depth := 0
		for i := 2; i < len(tag)-2 && tag[1] != '#'; {
			switch tag[i] {
			case '\'', '"':
				i = quotedEnd(tag, i)
				continue
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
			if depth > maxNested {
				return fmt.Errorf("brackets stand more than %d deep in one another", maxNested)
			}
			i++
		}
		source = rest
	}
}
