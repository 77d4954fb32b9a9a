package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// Layout returns a copy of tensors with Begin and End set so that they follow
// each other from offset 0 in the given order. Sizes come from dtype and
// shape; a tensor that breaks S4 or S6 is an *Error.
func Layout(tensors []Tensor) ([]Tensor, error) {
	placed := slices.Clone(tensors)
	end := int64(0)
	for i := range placed {
		t := &placed[i]
		if !t.DType.valid() {
			return nil, fault("S6", t.Name, "no dtype")
		}
		size, err := t.size()
		if err != nil {
			return nil, err
		}
		if size > math.MaxInt64-end {
			return nil, fault("S5", t.Name, "data up to here exceeds 2^63-1 bytes")
		}
		t.Begin, t.End = end, end+size
		end += size
	}
	return placed, nil
}

// EncodeHeader returns the length prefix and the JSON of a file whose data are
// the given tensors in the given order, padded with spaces so that the data
// begins at a multiple of 8. Begin and End of the arguments are not used:
// offsets are those of Layout. The bytes are a function of the arguments: no
// white space, __metadata__ first with sorted keys and absent when empty, keys
// of a tensor in the order dtype, shape, data_offsets, and only the escapes
// that JSON requires. What ReadHeader would refuse is refused here, as *Error.
func EncodeHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	placed, err := Layout(tensors)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 8, 8+128*(1+len(placed))), '{')
	if len(metadata) > 0 {
		out = appendMetadata(out, metadata)
	}
	for _, t := range placed {
		out = append(appendTensor(out, t), ',')
	}
	out = append(bytes.TrimSuffix(out, []byte{','}), '}')
	for len(out)%8 != 0 {
		out = append(out, ' ')
	}
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))

	size := int64(len(out))
	if len(placed) > 0 {
		end := placed[len(placed)-1].End
		if end > math.MaxInt64-size {
			return nil, fault("S5", "", "file exceeds 2^63-1 bytes")
		}
		size += end
	}
	if _, err := ReadHeader(bytes.NewReader(out), size); err != nil {
		return nil, err
	}
	return out, nil
}

func appendMetadata(out []byte, metadata map[string]string) []byte {
	keys := make([]string, 0, len(metadata))
	for key := range metadata {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	out = append(out, `"`+metadataKey+`":{`...)
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, key), ':')
		out = appendString(out, metadata[key])
	}
	return append(out, '}', ',')
}

func appendTensor(out []byte, t Tensor) []byte {
	out = append(appendString(out, t.Name), `:{"dtype":"`...)
	out = append(append(out, t.DType.String()...), `","shape":[`...)
	for i, dim := range t.Shape {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, dim, 10)
	}
	out = append(out, `],"data_offsets":[`...)
	out = append(strconv.AppendInt(out, t.Begin, 10), ',')
	out = strconv.AppendInt(out, t.End, 10)
	return append(out, "]}"...)
}

// appendString writes s as a JSON string with the escapes that RFC 8259
// requires and no others, as the format's own writer does.
func appendString(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			if c < 0x20 {
				out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				out = append(out, c)
			}
		}
	}
	return append(out, '"')
}
