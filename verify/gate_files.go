package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"slipway/manifest/content"
	"slipway/manifest/safetensors"
	"slipway/verify/report"
	"slipway/verify/scan"
	"slipway/verify/words"
)

func decideFiles(e *evidence) outcome {
	var o outcome
	o.weights(e)
	o.required(e)
	for _, file := range e.tree.Files {
		if f := e.facts[file.Path]; f.Err == nil && !scan.IsShard(file.Path) && !o.runtime(e, file, f) {
			o.companion(file, f)
		}
	}
	o.wheels(e)
	o.stray(e)
	return o
}

// weights demands that there are any.
func (o *outcome) weights(e *evidence) {
	if len(e.sub.shards) > 0 {
		return
	}
	f := report.Finding{Problem: "there are no weights: no .safetensors file", Hint: "put the model's .safetensors files under weights/"}
	if len(e.tree.Files) == 0 {
		f.Problem = "there is no file, and so no weights"
	} else if slices.ContainsFunc(e.tree.Files, func(f content.TreeFile) bool { return isTorch(f.Path) }) {
		f.Hint = toSafetensors
	}
	o.Fail(f)
}

const toSafetensors = "convert the weights to safetensors (safetensors.torch.save_file, or save_pretrained), and remove this form of them"

// isTorch reports whether a path is of a type that PyTorch saves weights in.
func isTorch(p string) bool {
	return slices.Contains([]string{".bin", ".pt", ".pth", ".ckpt"}, strings.ToLower(path.Ext(p)))
}

// required looks for the files that the profile demands.
func (o *outcome) required(e *evidence) {
	for _, r := range e.options.Profile.Required {
		matches := slices.DeleteFunc(slices.Clone(e.tree.Files), func(f content.TreeFile) bool {
			matched, err := path.Match(r.Path, f.Path)
			return err != nil || !matched
		})
		hint := r.Why
		if r.Generated {
			hint = strings.TrimPrefix(hint+"; slipway build writes it", "; ")
		}
		switch {
		case len(matches) == 0:
			o.Fail(report.Finding{Path: r.Path, Problem: "is required and not there", Hint: hint})
		case !slices.ContainsFunc(matches, func(f content.TreeFile) bool { return f.Size > 0 }):
			o.Fail(report.Finding{Path: matches[0].Path, Problem: "is required and empty", Hint: hint})
		}
	}
}

// Extensions, lower case with their dot.
var (
	weightExtensions = []string{
		".bin", ".pt", ".pth", ".ckpt", ".npz", ".npy", ".gguf", ".onnx", ".pkl", ".pickle", ".msgpack", ".h5", ".hdf5",
		".engine", ".zip", ".tar", ".gz", ".tgz", ".zst", ".xz", ".bz2", ".7z", ".tflite", ".mlmodel", ".pb", ".ggml",
	}
	textExtensions = []string{
		".json", ".jsonl", ".txt", ".md", ".py", ".sh", ".log", ".jinja", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".hcl",
		".csv", ".tsv", ".lock", ".html",
	}
	compiledExtensions = []string{".so", ".pyc", ".dll", ".dylib", ".o", ".a"}
	sentencePiece      = []byte{0x0a} // the first field of the message that such a tokenizer is: its pieces
	tokenizerModels    = []string{"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}
)

// Limits of files that are no weights.
const (
	maxUnknownBytes   = 1 << 20
	maxTokenizerModel = 16 << 20
	// English and code have 4 to 5 bits of entropy a byte, tokenizer files up
	// to 5.5; base64 of random bytes has 6.
	maxTextEntropy = 5.8 // bits a byte
)

// runtime takes the two files of a vendored runtime off the list of what could
// be weights where the program is known to be what the source builds. Where it
// may be, that is not decided; where it cannot be, they are no exception. It
// reports whether file is dealt with.
func (o *outcome) runtime(e *evidence, file content.TreeFile, f *scan.File) bool {
	v := e.sub.runtime
	if v == nil || file.Path != runtimeProgram && file.Path != runtimeSource {
		return false
	}
	isProgram, why := file.Path == runtimeProgram, v.source
	if isProgram {
		why = v.program
	}
	proven := v.known || e.rebuilt.proves(e.facts[runtimeProgram])
	switch {
	case proven && (isProgram || why == ""):
		o.Note("%s: %s bytes of the runtime, %s", file.Path, words.Grouped(f.Size), provenBy(v))
	case why != "" && isProgram && f.Size <= maxUnknownBytes:
		return false // somebody else's small program is as any file
	case why != "":
		o.Fail(report.Finding{Path: file.Path, Problem: "is exempt only as part of the runtime that slipway build makes, and is none of it: " + why,
			Got: words.Grouped(f.Size) + " bytes", Hint: "build the bundle with slipway build; a server of your own ships as source, or in a wheel"})
	default:
		o.Status = report.Undecided
		o.Note("could not be decided: %s has %s bytes that no gate looks into, and was not proven to be the runtime that its source builds; run slipway verify --rebuild, or slipway rehearse",
			file.Path, words.Grouped(f.Size))
	}
	return true
}

// provenBy says how the runtime is known.
func provenBy(v *vendored) string {
	if v.known {
		return "which this slipway's own lock names"
	}
	return "which was built again from its source"
}

// companion checks a file beside the weights: it must not be weights.
func (o *outcome) companion(file content.TreeFile, f *scan.File) {
	extension := strings.ToLower(path.Ext(file.Path))
	hint := "ship weights as .safetensors; remove the file if it is no weights"
	if isTorch(file.Path) {
		hint = toSafetensors
	}
	switch {
	case looksLikeSafetensors(f.Head, f.Size):
		o.Fail(report.Finding{Path: file.Path, Problem: "holds safetensors bytes under another extension", Hint: hint})
	case slices.Contains(weightExtensions, extension):
		o.Fail(report.Finding{Path: file.Path, Problem: "is of a type that weights come in", Got: extension, Hint: hint})
	case extension == wheelSuffix: // what is in it, wheels judges
		if signatureOf(f.Head) != zipName {
			o.Fail(report.Finding{Path: file.Path, Problem: "is no wheel: it does not begin as a ZIP archive", Hint: hint})
		}
	case signatureOf(f.Head) != "":
		o.Fail(report.Finding{Path: file.Path, Problem: "holds " + signatureOf(f.Head) + " under another extension", Hint: hint})
	case slices.Contains(compiledExtensions, extension) && f.Size > maxUnknownBytes:
		o.Fail(report.Finding{Path: file.Path, Problem: "is compiled code, which no gate looks into, and larger than such a file may be",
			Want: fmt.Sprintf("at most %d bytes", maxUnknownBytes), Got: fmt.Sprintf("%d bytes", f.Size), Hint: "ship source, or a wheel"})
	case slices.Contains(compiledExtensions, extension):
		o.Warn(report.Finding{Path: file.Path, Problem: "is compiled code, which no gate looks into", Hint: "ship source, or a wheel"})
	case slices.Contains(textExtensions, extension):
		if bits := entropy(&f.Ranges); bits > maxTextEntropy {
			o.Fail(report.Finding{Path: file.Path, Problem: "is text as dense as encoded weights",
				Want: fmt.Sprintf("at most %.1f bits a byte", maxTextEntropy), Got: fmt.Sprintf("%.2f", bits),
				Hint: "remove it, or ship what it encodes as itself"})
		} else if f.Encoded > maxUnknownBytes {
			o.Fail(report.Finding{Path: file.Path, Problem: "is text that encodes bytes, more than a file of an unknown type may have",
				Want: fmt.Sprintf("at most %d characters", maxUnknownBytes), Got: fmt.Sprintf("%d in long runs of hexadecimal digits or base64", f.Encoded),
				Hint: "remove it, or ship what it encodes as itself"})
		}
	case slices.Contains(tokenizerModels, path.Base(file.Path)) && f.Size <= maxTokenizerModel && bytes.HasPrefix(f.Head, sentencePiece):
	case f.Size > maxUnknownBytes:
		o.Fail(report.Finding{Path: file.Path, Problem: "is of an unknown type and larger than such a file may be",
			Want: fmt.Sprintf("at most %d bytes", maxUnknownBytes), Got: fmt.Sprintf("%d bytes", f.Size), Hint: hint})
	}
}

// looksLikeSafetensors reports whether a file begins as the format does: a
// header length that fits, then a JSON object.
func looksLikeSafetensors(head []byte, size int64) bool {
	if len(head) < 10 || head[8] != '{' {
		return false
	}
	length := binary.LittleEndian.Uint64(head)
	fits := length >= 2 && length <= safetensors.MaxHeaderSize && int64(length) <= size-8
	return fits && bytes.IndexByte([]byte("\"} \t\r\n"), head[9]) >= 0
}

const zipName = "a ZIP archive"

var signatures = []struct{ prefix, name string }{
	{"GGUF", "a GGUF model"}, {"PK\x03\x04", zipName}, {"PK\x05\x06", zipName},
	{"\x1f\x8b", "gzip data"}, {"\x28\xb5\x2f\xfd", "zstd data"}, {"\xfd7zXZ\x00", "xz data"}, {"BZh", "bzip2 data"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"}, {"\x89HDF\r\n\x1a\n", "an HDF5 file"}, {"\x93NUMPY", "a NumPy array"},
	{"\x80\x02", "a pickle"}, {"\x80\x03", "a pickle"}, {"\x80\x04", "a pickle"}, {"\x80\x05", "a pickle"},
}

// signatureOf names the weight container or archive that bytes begin as, or "".
func signatureOf(head []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.prefix)) {
			return s.name
		}
	}
	return ""
}

// isEncoded reports whether a text encodes bytes rather than says something, as
// far as its bytes were counted.
func isEncoded(f *scan.File) bool {
	return entropy(&f.Ranges) > maxTextEntropy || f.Encoded > maxUnknownBytes
}

// wantsEntropy reports whether the byte values of a file are counted.
func wantsEntropy(file content.TreeFile) bool {
	return file.Size > entropyMinBytes && slices.Contains(textExtensions, strings.ToLower(path.Ext(file.Path)))
}

// entropy returns the bits a byte of a distribution of byte values; 0 for none.
func entropy(counts *[256]int64) float64 {
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(total)
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
