package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The committed vectors are what this program writes, and small.
func TestVectorsAreCurrent(t *testing.T) {
	want, err := contents()
	if err != nil {
		t.Fatal(err)
	}
	const remedy = "run go run ./internal/generate/vectors"
	root, total, found := filepath.Join("../../..", folder), 0, 0
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		total, found = total+len(got), found+1
		if data, made := want[filepath.ToSlash(relative)]; !made || string(data) != string(got) {
			t.Errorf("%s is not what the program writes: %s", relative, remedy)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != len(want) {
		t.Errorf("%d files, the program writes %d: %s", found, len(want), remedy)
	}
	if total > 3<<19 {
		t.Errorf("%d bytes are more than 1.5 MiB", total)
	}
}
