package main

import "slices"

// vectors lists all of them, in the order of their cases.
func vectors() []vector {
	return slices.Concat(containers(), indexesAndFiles(), counting(), codes(), scales(), literals(), hidden(), parts(), pythons(), wheels())
}

// elsewhereText names the cases, or parts of them, that no file of edits can
// show: what must be made while a test runs, and what only shows while the
// submission runs, which examples/broken has.
const elsewhereText = `# What no vector can show: the gates that decide it, the first one first, and what shows that they do:
# tests of package verify, which make the file while they run, or submissions of examples/broken, which are started.
# case  decided by            shown by                                      what it is
A02     safetensors           TestHeaderOfTenMillionEntries                 a header of ten million entries
A15     paths                 TestNamedPipe,TestSocket,TestDevice           a named pipe, a socket, a device
A15     paths                 TestHardLink                                  a hard link: in a folder it is the file itself, and an artifact has none
A16     digests               TestFileThatIsSwapped                         a file that is swapped between hashing and loading: it is hashed and looked into in one read
A63     opened-files,script   calls-home.txtar,build-path.txtar             the server reads a path outside the submission, a cache, the network or a path that the environment chooses
A64     quality               wrong-head-layout.txtar                       the server computes something else from codes and scales than code times scale
A65     opened-files,script   no-model.txtar,blind-fallback.txtar           a fallback loads other weights
A66     opened-files,lookup   answers-from-a-table.txtar,answers-table.txtar  a table of continuations or answers
`

const badShard = "weights/bad.safetensors"

// goodHeader is that of one tensor of four bytes.
const goodHeader = `{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`
