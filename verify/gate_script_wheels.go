package verify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"slipway/manifest/content"
	"slipway/verify/scan"
	"slipway/verify/script"
)

// maxHeldWheel bounds a wheel that lies where only reading from start to end is
// possible, and is therefore held whole while its source is looked for.
const maxHeldWheel = 64 << 20

// readStarted reads from the wheels the source of what a shell script of the
// submission could start, for gate script. A wheel that says nothing is left
// out: what is wrong with it, gate files says.
func readStarted(ctx context.Context, tree *content.Tree, options Options, facts map[string]*scan.File, sub *submission) (wheels []script.Wheel) {
	if !slices.Contains(options.Profile.Gates, "script") {
		return nil
	}
	words := map[string]bool{}
	for p, data := range sub.texts {
		if extension := path.Ext(p); p == script.EntryPath || extension == ".sh" || extension == ".bash" || extension == "" {
			addWords(words, data)
		}
	}
	for _, file := range tree.Files {
		f, seen := facts[file.Path], sub.wheels[file.Path]
		if !isWheel(file.Path) || f == nil || f.Err != nil || signatureOf(f.Head) != zipName || seen != nil && seen.Err != nil {
			continue
		}
		source, err := tree.Open(ctx, file)
		if err != nil {
			continue
		}
		if w, err := readStartedOf(source, file, words); err == nil {
			wheels = append(wheels, w)
		}
		_ = source.Close()
	}
	return wheels
}

// addWords adds the words of a text that could be names of programs and modules.
func addWords(words map[string]bool, text []byte) {
	for _, word := range bytes.FieldsFunc(text, func(r rune) bool {
		return r >= 0x80 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
	}) {
		words[string(word)] = true
	}
}

func readStartedOf(source io.Reader, file content.TreeFile, words map[string]bool) (script.Wheel, error) {
	if at, ok := source.(io.ReaderAt); ok {
		return script.ReadWheel(file.Path, at, file.Size, words)
	}
	if file.Size > maxHeldWheel {
		return script.Wheel{}, fmt.Errorf("%s is too large to be held", file.Path)
	}
	data, err := io.ReadAll(io.LimitReader(source, file.Size))
	if err != nil {
		return script.Wheel{}, err
	}
	return script.ReadWheel(file.Path, bytes.NewReader(data), int64(len(data)), words)
}
