package manifest

import "fmt"

// maxRank bounds the elements of an array in a table of tensors: shapes are all
// that it has arrays for.
const maxRank = 64

// checkMembers refuses a table of tensors with an object of more members than
// limit, or an array longer than a shape is, in one pass over its bytes that
// allocates nothing: decoded, they would take many times as much memory. What is
// not JSON is left to the decoder.
func checkMembers(data []byte, limit int) error {
	var members [maxDepth + 2]int
	var array [maxDepth + 2]bool
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return nil // which the decoder refuses before it goes on
			}
			members[depth], array[depth] = 1, c == '['
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return nil
			}
		case c == ',':
			members[depth]++
			if array[depth] && members[depth] > maxRank {
				return fmt.Errorf("an array has more than %d elements", maxRank)
			}
			if !array[depth] && members[depth] > limit {
				return fmt.Errorf("an object has more than %d members, and no model so many tensors", limit)
			}
		}
	}
	return nil
}
