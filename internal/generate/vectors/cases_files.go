package main

import (
	"encoding/json"
	"maps"
	"path"
	"strings"
)

const indexPath = "weights/model.safetensors.index.json"

// index is a shard index that an alteration may spoil.
type index struct {
	Metadata  map[string]any    `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// withIndex adds the index of the shards as they are, changed.
func withIndex(change func(*index)) func(*submission) {
	return func(s *submission) {
		x := index{map[string]any{}, map[string]string{}}
		for shard, tensors := range s.shards {
			for name := range tensors {
				x.WeightMap[name] = path.Base(shard)
			}
		}
		change(&x)
		data, err := json.MarshalIndent(x, "", " ")
		if err != nil {
			panic(err)
		}
		s.texts[indexPath] = string(data) + "\n"
	}
}

func soundIndex(*index) {}

// indexed is a fault of the index beside the sound one.
func indexed(id, fault, names, says string, change func(*index)) vector {
	return vector{id: id, fault: fault, gate: "index", names: names, says: says, alter: withIndex(change), twin: withIndex(soundIndex), twinText: "the index that fits the shards"}
}

// indexesAndFiles are faults of the index, of paths and of files beside the weights.
func indexesAndFiles() []vector {
	points := func(to string) func(*index) { return func(x *index) { x.WeightMap[norm] = to } }
	lying := indexed("A19", "total_size lies", indexPath, "total_size", func(x *index) { x.Metadata["total_size"] = 7 })
	lying.gate, lying.warns = "", "index"
	return []vector{
		indexed("A11", "a shard that the index does not name", "weights/small.safetensors", "is not in the index", func(x *index) {
			maps.DeleteFunc(x.WeightMap, func(_, shard string) bool { return shard == "small.safetensors" })
		}),
		indexed("A12", "the index names a shard that is not there", "weights/gone.safetensors", "which is not there", points("gone.safetensors")),
		indexed("A12", "the index names another shard than the tensor's", norm, "the index says", points("small.safetensors")),
		{
			id: "A13", fault: "one name in two shards, with other bytes", gate: "index", names: norm, says: "is in several shards",
			alter: func(s *submission) {
				other := s.stored(norm, "").copy()
				other.data[0] ^= 1
				s.put(mlxShard, norm, other)
			},
			twin: func(s *submission) {
				s.put(mlxShard, norm, s.stored(norm, ""))
				delete(s.shards[floatShard], norm)
				s.edit(norm, inShard(mlxShard))
			},
			twinText: "the tensor in the other shard alone",
		},
		indexed("A14", "the index leaves the folder", indexPath, "../x.safetensors", points("../x.safetensors")),
		indexed("A14", "the index names an absolute path", indexPath, "/x.safetensors", points("/x.safetensors")),
		indexed("A14", "the index names a path with a backslash", indexPath, `a\\x`, points(`a\x`)),
		indexed("A14", "the index names a path with NUL", indexPath, `x\x00.safetensors`, points("x\x00.safetensors")),
		link("a symbolic link to a shard", "weights/link.safetensors", "float.safetensors"),
		link("a symbolic link to a folder", "more", "weights"),
		link("a symbolic link to nothing", "gone", "nowhere"),
		twinNames("names that differ in case", "differ only in case", "data.md"),
		twinNames("a name in another Unicode form", "not in Unicode form NFC", "cafe\u0301.md"),
		file("A18", "safetensors bytes in a text file", "safetensors bytes under another extension", "notes.txt", string(rawShard(goodHeader, 4)), "notes.txt", "notes\n"),
		file("A18", "GGUF under a wheel's name", "is no wheel", wheelPath, "GGUF\x03\x00", wheelPath, string(newWheel().bytes())),
		file("A18", "a pickle in a log", "a pickle under another extension", "run.log", "\x80\x04model", "run.log", "step 1\n"),
		file("A18", "safetensors bytes in compiled Python", "safetensors bytes under another extension", "code/draft.pyc", string(rawShard(goodHeader, 4)), "code/draft.py", "x = 1\n"),
		file("A18", "compiled Python of more than a megabyte", "larger than such a file may be", "code/draft.pyc", "\xcb\r\r\n"+strings.Repeat("\x00", 1<<20), "code/draft.py", "x = 1\n"),
		file("A18", "safetensors bytes under a tokenizer's name", "safetensors bytes under another extension", "weights/tokenizer.model", string(rawShard(goodHeader, 4)), "weights/tokenizer.model", "\n\x0e\n\x05<unk>"),
		file("A18", "GGUF under a tokenizer's name", "a GGUF model under another extension", "weights/tokenizer.model", "GGUF\x03\x00", "weights/tokenizer.model", "\n\x0e\n\x05<unk>"),
		file("A18", "an archive", "of a type that weights come in", "code/data.zip", "PK\x03\x04", "code/data.json", "{}\n"),
		lying,
	}
}

// file is a file that is not what its name says, or may not be there at all.
func file(id, fault, says, name, content, twinName, twinContent string) vector {
	return vector{
		id: id, fault: fault, gate: "files", names: name, says: says, twinText: "a file that may be there",
		alter: func(s *submission) { s.raw[name] = []byte(content) },
		twin:  func(s *submission) { s.raw[twinName] = []byte(twinContent) },
	}
}

// link is a symbolic link, which no bundle may hold.
func link(fault, name, target string) vector {
	return vector{id: "A15", fault: fault, gate: "paths", names: name, says: "is a symbolic link", alter: func(s *submission) { s.links[name] = target }}
}

func twinNames(fault, says, name string) vector {
	return vector{
		id: "A17", fault: fault, gate: "paths", names: name, says: says, twinText: "another name",
		alter: func(s *submission) { s.texts[name] = "x\n" },
		twin:  func(s *submission) { s.texts["other.md"] = "x\n" },
	}
}
