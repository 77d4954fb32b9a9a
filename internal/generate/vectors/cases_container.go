package main

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// containers are files that are not what the safetensors format allows.
func containers() []vector {
	return []vector{
		length("A01", "header length beyond the file", 1<<20),
		length("A01", "header length of 2^63", 1<<63),
		length("A02", "header of 100,000,001 bytes", 100_000_001),
		header("A03", "two tensors overlap", "S5", "x", `{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6,
			`{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}`, 6),
		header("A03", "two names on one range", "S5", "x", `{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4,
			`{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 4),
		header("A04", "a hole before a tensor", "S5", "x", `{"x":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8, `{"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, 8),
		header("A04", "a tail after the last tensor", "S5", badShard, goodHeader, 8, goodHeader, 4),
		header("A05", "offsets that do not fit the shape", "S5", "x", `{"x":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}}`, 4, goodHeader, 4),
		header("A05", "offsets that end before they begin", "S5", "x", `{"x":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}`, 4, goodHeader, 4),
		shape("product overflows", "S4", `[4294967296,4294967296]`, `[2,2]`),
		shape("negative dimension", "S4", `[-4]`, `[4]`),
		shape("fractional dimension", "S4", `[4.0]`, `[4]`),
		shape("dimension with an exponent", "S4", `[4e0]`, `[4]`),
		shape("dimension as text", "S4", `["4"]`, `[4]`),
		offsets("negative offset", `[-4,0]`),
		offsets("fractional offset", `[0,4.0]`),
		offsets("offset with an exponent", `[0,4e0]`),
		offsets("offset as text", `[0,"4"]`),
		header("A07", "a tensor's name twice", "S3", "x", `{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 4,
			`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 4),
		header("A07", "dtype twice", "S3", "x", `{"x":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}}`, 4, goodHeader, 4),
		header("A07", "DTYPE beside dtype", "S3", "x", `{"x":{"dtype":"U8","DTYPE":"I8","shape":[4],"data_offsets":[0,4]}}`, 4, goodHeader, 4),
		header("A08", "unknown type", "S6", "x", `{"x":{"dtype":"U2","shape":[4],"data_offsets":[0,1]}}`, 1, `{"x":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1),
		header("A08", "type of four bits that the format does not have", "S6", "x", `{"x":{"dtype":"I4","shape":[2],"data_offsets":[0,1]}}`, 1, `{"x":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1),
		header("A08", "elements of six bits that fill no whole byte", "S4", "x", `{"x":{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,3]}}`, 3, `{"x":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}`, 3),
		header("A08", "odd number of F4", "S4", "x", `{"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2, `{"x":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}`, 2),
		header("A09", "byte order mark", "S2", badShard, "\ufeff"+goodHeader, 4, goodHeader, 4),
		header("A09", "invalid UTF-8", "S2", badShard, strings.Replace(goodHeader, "x", "\xff", 1), 4, strings.Replace(goodHeader, "x", "\u00ff", 1), 4),
		header("A09", "header that begins with a space", "S2", badShard, " "+goodHeader, 4, goodHeader+" ", 4),
		header("A09", "header that is a list", "S2", badShard, "["+goodHeader+"]", 4, goodHeader, 4),
		header("A10", "data in the spaces after the header", "S2", badShard, goodHeader+strings.Repeat(" ", 2<<20), 4, goodHeader+strings.Repeat(" ", 40), 4),
		header("A10", "data in the metadata", "S3", badShard, metadata(2<<20), 4, metadata(40), 4),
	}
}

func metadata(n int) string {
	return `{"__metadata__":{"note":"` + strings.Repeat("x", n) + `"},` + goodHeader[1:]
}

// header is a shard with a header that breaks a rule of package safetensors,
// beside one with a good header.
func header(id, fault, rule, names, bad string, badBytes int, good string, goodBytes int) vector {
	return vector{
		id: id, fault: fault, gate: "safetensors", names: names, says: "(rule " + rule + ")", twinText: "a shard of the same kind that the format allows",
		alter: func(s *submission) { s.raw[badShard] = rawShard(bad, badBytes) },
		twin:  func(s *submission) { s.raw[badShard] = rawShard(good, goodBytes) },
	}
}

// length is a shard whose first eight bytes say something else than its header.
func length(id, fault string, n uint64) vector {
	v := header(id, fault, "S1", badShard, goodHeader, 4, goodHeader, 4)
	v.alter = func(s *submission) {
		data := rawShard(goodHeader, 4)
		binary.LittleEndian.PutUint64(data, n)
		s.raw[badShard] = data
	}
	return v
}

// offsets is a shard whose tensor lies where nothing can.
func offsets(fault, bad string) vector {
	with := func(offsets string) string {
		return fmt.Sprintf(`{"x":{"dtype":"U8","shape":[4],"data_offsets":%s}}`, offsets)
	}
	return header("A06", fault, "S5", "x", with(bad), 4, with("[0,4]"), 4)
}

// shape is a shard whose tensor has a shape that no tensor has.
func shape(fault, rule, bad, good string) vector {
	with := func(shape string) string {
		return fmt.Sprintf(`{"x":{"dtype":"U8","shape":%s,"data_offsets":[0,4]}}`, shape)
	}
	return header("A06", fault, rule, "x", with(bad), 4, with(good), 4)
}
