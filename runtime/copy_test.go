package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveCopy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(folder, program string) error
		removed bool
	}{
		{"the program alone", func(folder, program string) error { return nil }, true},
		{"another file", func(folder, program string) error {
			return os.WriteFile(filepath.Join(folder, "notes"), nil, 0o644)
		}, false},
		{"a folder", func(folder, program string) error { return os.Mkdir(filepath.Join(folder, "notes"), 0o755) }, false},
		{"another program", func(folder, program string) error {
			if err := os.Rename(program, filepath.Join(filepath.Dir(folder), "moved")); err != nil {
				return err
			}
			return os.WriteFile(program, []byte("other"), 0o755)
		}, false},
		{"a link to the program", func(folder, program string) error {
			moved := filepath.Join(filepath.Dir(folder), "moved")
			if err := os.Rename(program, moved); err != nil {
				return err
			}
			return os.Symlink(moved, program)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "serve.x")
			program := filepath.Join(folder, "serve")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tc.prepare(folder, program); err != nil {
				t.Fatal(err)
			}
			running := filepath.Join(filepath.Dir(folder), "moved")
			if _, err := os.Lstat(running); err != nil {
				running = program
			}
			removeCopy(folder, running)
			if _, err := os.Lstat(program); os.IsNotExist(err) != tc.removed {
				t.Errorf("the program: %v", err)
			}
			if _, err := os.Stat(folder); os.IsNotExist(err) != tc.removed {
				t.Errorf("the folder: %v", err)
			}
		})
	}
	removeCopy(filepath.Join(t.TempDir(), "nowhere"), "nowhere")
}

// A server that is told to removes the folder it was copied to.
func TestServeRemovesCopy(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "serve.x")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, filepath.Join(folder, "serve")); err != nil {
		t.Skip(err) // another file system
	}
	launch(t, "--weights", ternary, "--remove-copy", folder)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the copy is still there: %v", err)
	}
}
