package template

import "strings"

// The engine writes floats as Go does (1.0 as 1) and has no integers beyond 64
// bits, and its own filters cannot be replaced. But a filter that it does not
// know it takes from the variables, so templates are compiled with these names
// in the place of tojson and string.
const (
	tojsonFilter = "python_tojson"
	stringFilter = "python_string"
)

// withPythonFilters renames the filters tojson and string in the tags of a
// template. It keeps lines, so that positions in errors stay true.
func withPythonFilters(source string) string {
	var out strings.Builder
	for {
		start := strings.IndexByte(source, '{')
		if start < 0 || start+1 == len(source) {
			break
		}
		closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[source[start+1]]
		if closer == "" {
			out.WriteString(source[:start+1])
			source = source[start+1:]
			continue
		}
		out.WriteString(source[:start+2])
		source = source[start+2:]
		if closer == "#}" {
			_, rest, _ := strings.Cut(source, closer)
			out.WriteString(source[:len(source)-len(rest)])
			source = rest
			continue
		}
		source = renameInTag(&out, source, closer)
	}
	out.WriteString(source)
	return out.String()
}

// renameInTag copies a tag up to its closer and returns what follows.
func renameInTag(out *strings.Builder, source, closer string) string {
	for i := 0; i < len(source); {
		switch {
		case strings.HasPrefix(source[i:], closer):
			out.WriteString(closer)
			return source[i+len(closer):]
		case source[i] == '\'' || source[i] == '"':
			end := quotedEnd(source, i)
			out.WriteString(source[i:end])
			i = end
		case source[i] == '|':
			end := i + 1
			for end < len(source) && strings.IndexByte(" \t\r\n", source[end]) >= 0 {
				end++
			}
			out.WriteString(source[i:end])
			i = end
			for end < len(source) && isNameByte(source[end]) {
				end++
			}
			switch name := source[i:end]; name {
			case "tojson":
				out.WriteString(tojsonFilter)
			case "string":
				out.WriteString(stringFilter)
			default:
				out.WriteString(name)
			}
			i = end
		default:
			out.WriteByte(source[i])
			i++
		}
	}
	return ""
}

func isNameByte(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// quotedEnd returns the end of the quoted string that starts at i.
func quotedEnd(source string, i int) int {
	quote := source[i]
	for i++; i < len(source) && source[i] != quote; i++ {
		if source[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(source))
}
