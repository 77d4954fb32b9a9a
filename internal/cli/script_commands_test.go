package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"slipway/bundle/pack/packtest"
	"slipway/manifest"
	"slipway/manifest/safetensors"
)

// scriptCommands are the commands that scripts have beside testscript's own.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":     exits,
	"interrupt": interrupt,

	"registry": startRegistry,
	"fault":    setFault,
	"held":     waitHeld,
	"release":  releaseHeld,
	"requests": printRequests,

	"weights":  copyWeights,
	"dense":    denseWeights,
	"shard":    writeShard,
	"claim":    writeClaim,
	"craft":    craftLayout,
	"corrupt":  corruptFile,
	"truncate": truncateFile,
	"fifo":     makeFIFO,
	"freeport": freePort,
	"twins":    makeTwins,

	"tree":      printTree,
	"snapshot":  takeSnapshot,
	"unchanged": checkSnapshot,
	"json":      printJSONKey,
	"lastline":  printLastLine,
}

// exits CODE PROGRAM ARG... runs a program and demands its exit code. Of
// slipway it also demands that an error is one line which starts with the
// command, and that no temporary file or folder is left in $WORK.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
	if args[1] == "slipway" {
		ts.Check(checkMessages(want, ts.ReadFile("stderr")))
	}
	ts.Check(checkNothingLeft(ts.Getenv("WORK")))
}

// checkMessages holds what was printed to stderr against the form of errors.
func checkMessages(code int, stderr string) error {
	heads := 0
	for line := range strings.Lines(stderr) {
		for _, word := range []string{"panic", "goroutine ", "failed to", "%!", "context canceled"} {
			if strings.Contains(line, word) {
				return fmt.Errorf("stderr says %q", word)
			}
		}
		if strings.HasPrefix(line, "slipway") {
			heads++
		}
	}
	switch {
	case code == ExitCannotRun || code == ExitUsage:
		if heads != 1 {
			return fmt.Errorf("stderr has %d errors, not one", heads)
		}
	case code == ExitInterrupted:
		if heads != 1 || !strings.HasSuffix(stderr, ": interrupted\n") {
			return errors.New("stderr does not end in one line that says interrupted")
		}
	}
	return nil
}

// checkNothingLeft looks for the names that unfinished work has.
func checkNothingLeft(work string) error {
	return filepath.WalkDir(work, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // a folder that a script made unreadable
		}
		name := entry.Name()
		if strings.Contains(name, ".partial-") || strings.HasSuffix(name, ".old") || filepath.Base(filepath.Dir(path)) == ".tmp" {
			return fmt.Errorf("%s was left behind", path)
		}
		return nil
	})
}

// weights DIR copies a small but real ternary submission's files there.
func copyWeights(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: weights DIR")
	}
	from := filepath.Join("..", "..", "examples", "abacus", "ternary")
	entries, err := os.ReadDir(from)
	ts.Check(err)
	to := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(to, 0o755))
	for _, entry := range entries {
		if entry.Name() == "bundle.hcl" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, entry.Name()))
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(to, entry.Name()), data, 0o644))
	}
}

// dense DIR writes the same submission's weights there as floating-point
// numbers, in one shard.
func denseWeights(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: dense DIR")
	}
	ts.Check(packtest.Dense(filepath.Join("..", "..", "examples", "abacus", "ternary"), ts.MkAbs(args[0])))
}

// shard FILE BYTES [NAME] writes a safetensors file of one tensor whose data
// are BYTES zeros, which take no room on the disk.
func writeShard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: shard FILE BYTES [NAME]")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	name := "model.norm.weight"
	if len(args) == 3 {
		name = args[2]
	}
	header, err := safetensors.EncodeHeader([]safetensors.Tensor{{Name: name, DType: safetensors.U8, Shape: []int64{size}}}, nil)
	ts.Check(err)
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, header, 0o644))
	ts.Check(os.Truncate(file, int64(len(header))+size))
}

// claim FILE writes a safetensors file whose header says it has 2^63 bytes.
func writeClaim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: claim FILE")
	}
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, "{}      "...), 0o644))
}

// corrupt FILE OFFSET flips one bit; an offset below 0 counts from the end.
func corruptFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: corrupt FILE OFFSET")
	}
	offset, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
	ts.Check(err)
	defer file.Close()
	if offset < 0 {
		info, err := file.Stat()
		ts.Check(err)
		offset += info.Size()
	}
	var one [1]byte
	_, err = file.ReadAt(one[:], offset)
	ts.Check(err)
	one[0] ^= 1
	_, err = file.WriteAt(one[:], offset)
	ts.Check(err)
}

// truncate FILE SIZE cuts a file, or cuts -SIZE bytes off its end.
func truncateFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate FILE SIZE")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	if size < 0 {
		info, err := os.Stat(ts.MkAbs(args[0]))
		ts.Check(err)
		size += info.Size()
	}
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

func makeFIFO(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fifo FILE")
	}
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o644))
}

// twins DIR writes one name in its two Unicode forms.
func makeTwins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: twins DIR")
	}
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
	for _, name := range []string{"caf\u00e9.txt", "cafe\u0301.txt"} {
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), name), []byte(name), 0o644))
	}
}

// listing describes everything below a folder: mode, size of files, path.
func listing(root string, describe func(path string, info fs.FileInfo) (string, error)) ([]string, error) {
	var lines []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := describe(path, info)
		lines = append(lines, fmt.Sprintf("%v %s%s", info.Mode(), filepath.ToSlash(relative), text))
		return err
	})
	return lines, err
}

// tree DIR prints the modes and names of everything below it.
func printTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tree DIR")
	}
	lines, err := listing(ts.MkAbs(args[0]), func(string, fs.FileInfo) (string, error) { return "", nil })
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), strings.Join(lines, "\n"))
}

type snapshotKey struct{}

func stateOf(root string) ([]string, error) {
	return listing(root, func(path string, info fs.FileInfo) (string, error) {
		if !info.Mode().IsRegular() {
			return "", nil
		}
		data, err := os.ReadFile(path)
		return fmt.Sprintf(" %d %d %s", info.Size(), info.ModTime().UnixNano(), manifest.DigestBytes(data)), err
	})
}

// snapshot DIR remembers modes, times and content, for unchanged.
func takeSnapshot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: snapshot DIR")
	}
	state, err := stateOf(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Value(snapshotKey{}).(map[string][]string)[ts.MkAbs(args[0])] = state
}

// unchanged DIR demands that a folder is what snapshot saw.
func checkSnapshot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unchanged DIR")
	}
	before, known := ts.Value(snapshotKey{}).(map[string][]string)[ts.MkAbs(args[0])]
	if !known {
		ts.Fatalf("no snapshot of %s", args[0])
	}
	after, err := stateOf(ts.MkAbs(args[0]))
	ts.Check(err)
	if !slices.Equal(before, after) {
		ts.Fatalf("%s changed:\n%s\nbefore:\n%s", args[0], strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// json FILE KEY prints the value at a dotted path of keys and indexes.
func printJSONKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json FILE KEY")
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	decoder.UseNumber()
	var value any
	ts.Check(decoder.Decode(&value))
	for key := range strings.SplitSeq(args[1], ".") {
		switch node := value.(type) {
		case map[string]any:
			found, present := node[key]
			if !present {
				ts.Fatalf("no key %q of %q", key, args[1])
			}
			value = found
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(node) {
				ts.Fatalf("no index %q of %q", key, args[1])
			}
			value = node[i]
		default:
			ts.Fatalf("%q of %q is not in an object or a list", key, args[1])
		}
	}
	fmt.Fprintln(ts.Stdout(), value)
}

// lastline FILE [VARIABLE] prints the last line, and sets a variable to it.
func printLastLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: lastline FILE [VARIABLE]")
	}
	lines := strings.Split(strings.TrimRight(ts.ReadFile(args[0]), "\n"), "\n")
	last := lines[len(lines)-1]
	if len(args) == 2 {
		ts.Setenv(args[1], last)
	}
	fmt.Fprintln(ts.Stdout(), last)
}
