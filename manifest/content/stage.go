package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"slipway/manifest"
)

// Stage is a folder being written. It grows under a temporary name beside its
// final one and gets that name in one step, so that a folder with the final
// name is always whole, and an earlier one stays until the new one is complete.
type Stage struct {
	final     string
	temporary string
	root      *os.Root
	lock      *os.File
	foreign   func(folder string) string
}

// NewStage begins a folder that Commit will name final. An existing folder of
// that name is replaced only if it is empty or is a bundle that slipway wrote.
func NewStage(final string) (*Stage, error) { return NewStageOver(final, foreign) }

// NewStageOver is NewStage for another sort of folder: foreign says what in an
// existing one is not of that sort and would be lost, or "".
func NewStageOver(final string, foreign func(folder string) string) (*Stage, error) {
	final, err := filepath.Abs(final)
	if err != nil {
		return nil, err
	}
	if err := replaceable(final, foreign); err != nil {
		return nil, err
	}
	parent, base := filepath.Split(final)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create folder %s: %w", parent, manifest.Cause(err))
	}
	RemoveAbandoned(parent, "."+base+".partial-")
	for range lockTries {
		stage := &Stage{final: final, foreign: foreign}
		err = stage.open(parent, "."+base+".partial-*")
		if err == nil {
			return stage, nil
		}
		stage.Abort()
		if !tookForAbandoned(err) {
			break
		}
	}
	return nil, fmt.Errorf("create folder beside %s: %w", final, manifest.Cause(err))
}

// tookForAbandoned reports whether creating a locked temporary name failed
// because another process, which cleans up, was faster: it holds the lock for a
// moment, or has removed the name already.
func tookForAbandoned(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK)
}

// lockTries is how often a temporary name is tried again that another process
// took for an abandoned one between its creation and its lock.
const lockTries = 10

func (s *Stage) open(parent, pattern string) (err error) {
	if s.temporary, err = os.MkdirTemp(parent, pattern); err != nil {
		return err
	}
	if s.lock, err = lockFile(s.temporary); err != nil {
		return err
	}
	s.root, err = os.OpenRoot(s.temporary)
	return err
}

func replaceable(final string, foreign func(string) string) error {
	for range lockTries {
		before, errBefore := os.Lstat(final)
		err := replaceableNow(final, foreign)
		after, errAfter := os.Lstat(final)
		if errBefore != nil || errAfter != nil || os.SameFile(before, after) {
			return err
		}
		// Another build exchanged the folder while it was looked at.
	}
	return fmt.Errorf("write folder %s: others keep replacing it", final)
}

func replaceableNow(final string, foreign func(string) string) error {
	info, err := os.Lstat(final)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", final, manifest.Cause(err))
	}
	if !info.IsDir() {
		return manifest.WithHint(fmt.Errorf("write folder %s: a file of that name exists", final), "choose another name")
	}
	entries, err := os.ReadDir(final)
	if err != nil {
		return fmt.Errorf("look at %s: %w", final, manifest.Cause(err))
	}
	if len(entries) == 0 {
		return nil
	}
	if reason := foreign(final); reason != "" {
		return manifest.WithHint(fmt.Errorf("write folder %s: it exists, and %s", final, reason), "choose another folder, or remove this one first")
	}
	return nil
}

// maxInventoryBytes is more than any inventory has: a hundred thousand files.
const maxInventoryBytes = 64 << 20

// foreign says what in a folder is not of a bundle that slipway wrote there: a
// file that somebody added or that has another size now would be lost.
func foreign(folder string) string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "it cannot be listed: " + manifest.Cause(err).Error()
	}
	defer root.Close()
	file, err := OpenRegular(root, manifest.InventoryPath, -1)
	if err != nil {
		return "slipway did not write it"
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxInventoryBytes))
	if err != nil {
		return "slipway did not write it"
	}
	inventory, err := manifest.DecodeInventory(data)
	if err != nil {
		return "slipway did not write it"
	}
	files, faults, err := Scan(context.Background(), root, ".", nil)
	if err != nil {
		return "it cannot be listed: " + err.Error()
	}
	if len(faults) > 0 {
		return faults[0].Path + " in it is not of the bundle there"
	}
	known := map[string]int64{manifest.InventoryPath: int64(len(data))}
	for _, f := range inventory.Files {
		known[f.Path] = f.Size
	}
	for _, f := range files {
		size, ours := known[f.Path]
		switch {
		case !ours:
			return f.Path + " in it is not of the bundle there"
		case size != f.Size:
			return f.Path + " in it was changed"
		}
	}
	return ""
}

// Create creates a file in the stage, and the folders it needs. The caller
// closes it. Modes do not depend on the umask.
func (s *Stage) Create(file manifest.File) (*os.File, error) {
	if err := s.folders(path.Dir(file.Path)); err != nil {
		return nil, fmt.Errorf("write %s: %w", file.Path, manifest.Cause(err))
	}
	out, err := s.root.OpenFile(file.Path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		if err = out.Chmod(fs.FileMode(file.Mode)); err != nil {
			_ = out.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", file.Path, manifest.Cause(err))
	}
	return out, nil
}

func (s *Stage) folders(folder string) error {
	if folder == "." {
		return nil
	}
	if err := s.folders(path.Dir(folder)); err != nil {
		return err
	}
	if err := s.root.Mkdir(folder, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return s.root.Chmod(folder, 0o755)
}

// Commit gives the folder its final name. The stage is used up.
func (s *Stage) Commit() error {
	defer s.Abort()
	if err := s.root.Chmod(".", 0o755); err != nil {
		return fmt.Errorf("write folder %s: %w", s.final, manifest.Cause(err))
	}
	// What stands there may have changed since NewStage looked.
	if err := replaceable(s.final, s.foreign); err != nil {
		return err
	}
	if err := renameOver(s.temporary, s.final); err != nil {
		return fmt.Errorf("write folder %s: %w", s.final, manifest.Cause(err))
	}
	return nil
}

// Abort removes what was written. After Commit it removes the folder that was
// replaced; calling it again does nothing.
func (s *Stage) Abort() {
	if s.root != nil {
		_ = s.root.Close()
		s.root = nil
	}
	if s.temporary != "" {
		_ = os.RemoveAll(s.temporary)
		s.temporary = ""
	}
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
}

// renameOver renames folder from to to. Where to exists the two are exchanged
// in one step if the system can, so that to is never missing.
func renameOver(from, to string) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(from, to); err == nil || !errors.Is(err, fs.ErrExist) {
			return err // ErrExist: another build was faster, so exchange after all
		}
	}
	if exchange(from, to) == nil {
		return nil
	}
	aside := from + ".old"
	if err := os.Rename(to, aside); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(aside, to))
	}
	return os.Rename(aside, from)
}

// RemoveAbandoned removes the temporary files and folders with a name prefix in
// a folder whose writer is gone: a living one holds a lock on them, which the
// system lets go of however the writer ends.
func RemoveAbandoned(folder, prefix string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // nothing to clean where nothing can be listed; the write will say why
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		name := filepath.Join(folder, entry.Name())
		if lock, err := lockFile(name); err == nil {
			_ = os.RemoveAll(name)
			_ = lock.Close()
		}
	}
}

// LockedTemp creates a temporary file whose name starts with prefix and holds
// the lock that RemoveAbandoned respects. Closing the file ends the lock.
func LockedTemp(folder, prefix string) (*os.File, error) {
	for range lockTries {
		file, err := os.CreateTemp(folder, prefix+"*")
		if err != nil {
			return nil, err
		}
		if err = lockHandle(file); err == nil {
			// Between creation and lock another process may have taken the
			// file for an abandoned one; then it has no name any more.
			_, err = os.Lstat(file.Name())
		}
		if err == nil {
			return file, nil
		}
		_ = file.Close()
		if !tookForAbandoned(err) {
			_ = os.Remove(file.Name())
			return nil, err
		}
	}
	return nil, fmt.Errorf("create a temporary file in %s: %w", folder, fs.ErrExist)
}
