package verify

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"slipway/manifest/content"
	"slipway/verify/scan"
	"slipway/verify/wheel"
)

const wheelSuffix = ".whl"

// lockNames are where a lock of the wheels stands in a submission.
var lockNames = []string{"pylock.toml", "wheels/pylock.toml"}

// readWheels looks into the wheels, several at a time: what they hold is no
// part of the pass over the files, which does not inflate. A file that does not
// begin as a ZIP archive is left to gate files.
func readWheels(ctx context.Context, tree *content.Tree, options Options, facts map[string]*scan.File) map[string]*wheel.Facts {
	if !slices.Contains(options.Profile.Gates, "files") {
		return nil
	}
	wheels, queue := map[string]*wheel.Facts{}, make(chan content.TreeFile)
	var mutex sync.Mutex
	var workers sync.WaitGroup
	for range max(1, options.Workers) {
		workers.Go(func() {
			for file := range queue {
				found := readWheel(ctx, tree, file)
				mutex.Lock()
				wheels[file.Path] = found
				mutex.Unlock()
			}
		})
	}
	for _, file := range tree.Files {
		if f := facts[file.Path]; isWheel(file.Path) && f.Err == nil && signatureOf(f.Head) == zipName {
			queue <- file
		}
	}
	close(queue)
	workers.Wait()
	return wheels
}

func isWheel(p string) bool { return strings.ToLower(path.Ext(p)) == wheelSuffix }

func readWheel(ctx context.Context, tree *content.Tree, file content.TreeFile) *wheel.Facts {
	source, err := tree.Open(ctx, file)
	if err != nil {
		return &wheel.Facts{Err: err}
	}
	defer source.Close()
	return wheel.Read(ctx, source, file.Size, wheel.Options{Weights: weightsInWheel})
}

// testDataBytes is up to what size arrays and pickles in a wheel are taken for
// its tests' data, of which some libraries ship hundreds.
const testDataBytes = 1 << 20

// weightsInWheel says why a member of a wheel could be weights, or "".
func weightsInWheel(p string, size int64, head []byte) string {
	extension := strings.ToLower(path.Ext(p))
	switch {
	case looksLikeSafetensors(head, size):
		return "holds safetensors bytes inside a wheel"
	case signatureOf(head) == "a GGUF model", extension == scan.Suffix, extension == ".gguf":
		return "is a model inside a wheel"
	case size > testDataBytes && slices.Contains(weightExtensions, extension):
		return "is of a type that weights come in, inside a wheel"
	}
	return ""
}
