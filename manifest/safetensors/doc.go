// Package safetensors reads and writes the header of a safetensors file, and
// the index of a sharded set, as a verifier must: a file is either exactly
// what the format allows or an error that names the rule and the tensor.
//
// The layout is a little-endian u64 N, N bytes of JSON, then the data
// (huggingface/safetensors, README and safetensors/src/tensor.rs). The rules:
//
//	S1  the file has at least 8 bytes, N <= 100,000,000 and 8+N <= file size
//	S2  the JSON is valid UTF-8, begins with '{', and only spaces follow it
//	S3  it maps each name to {dtype, shape, data_offsets}, exactly these keys;
//	    __metadata__ maps strings to strings; no key occurs twice
//	S4  a shape holds non-negative integers; its size in bits fits 64 bits and
//	    is a whole number of bytes
//	S5  sorted by offset, the tensors fill the data section: the first begins
//	    at 0, each begins where the last ended, the final one ends with the
//	    file, and each length is what dtype and shape say
//	S6  the dtype is one of those listed by [DType]
//	S7  values are C order, little endian, and not checked: NaN is legal
//	S8  names hold no control characters and are compared bytewise; names equal
//	    but for case or Unicode form are legal and reported by [Header.Twins]
//
// Beyond the format, and so that nothing large hides outside the tensors:
// [MaxTensors] (S3), [MaxMetadata] (S3), [MaxPadding] (S2), [MaxRank] (S4), and
// white space between tokens within MaxPadding plus 256 bytes a tensor (S2). A
// stretch that no such header can have, of several MiB without a quotation mark,
// is refused where it is met, and the rest of the header is not read (S2).
// Dimensions and offsets above 2^63-1 are refused.
//
// Nothing here reads tensor data except through [File.Section].
package safetensors
