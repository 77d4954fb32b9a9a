package main

import "slices"

// vectors lists all of them, in the order of their cases.
func vectors() []vector {
	return slices.Concat(containers(), indexesAndFiles(), counting(), codes(), scales(), literals(), hidden(), wheels())
}

// elsewhereText names the cases that no static gate decides, and what does.
const elsewhereText = `# The cases without a vector: what decides each, and why no file can show it.
# case  decided by    what it is
A16     digests       a file that is swapped between hashing and loading: hashed, checked and loaded in one read; tested with the readers
A63     opened-files  the server reads a path outside the submission, a cache, the network or a path that the environment chooses
A64     quality       a decode step applies something besides code times scale
A65     opened-files  a fallback loads other weights
A66     lookup        a table of continuations or answers
`

const badShard = "weights/bad.safetensors"

// goodHeader is that of one tensor of four bytes.
const goodHeader = `{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`
