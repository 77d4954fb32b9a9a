package manifest

import (
	"errors"
	"fmt"
	"io"
	"sort"
)

// InventoryPath is where the inventory stands in every bundle. It is the one
// file that the inventory does not list.
const InventoryPath = "inventory.json"

// Mode is a file's permission bits. Two exist: a bundle says only whether a
// file may be executed.
type Mode uint32

// The two modes.
const (
	ModeFile       Mode = 0o644
	ModeExecutable Mode = 0o755
)

// NormalMode returns the mode that a file with the given permission bits has
// in a bundle: executable where the owner may execute it.
func NormalMode(permissions uint32) Mode {
	if permissions&0o100 != 0 {
		return ModeExecutable
	}
	return ModeFile
}

func (m Mode) check() error {
	if m != ModeFile && m != ModeExecutable {
		return fmt.Errorf("mode %s is neither 0644 nor 0755", m)
	}
	return nil
}

func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalText writes "0644" or "0755".
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), m.check() }

// UnmarshalText reads "0644" or "0755".
func (m *Mode) UnmarshalText(text []byte) error {
	switch string(text) {
	case "0644":
		*m = ModeFile
	case "0755":
		*m = ModeExecutable
	default:
		return fmt.Errorf("mode %q is neither 0644 nor 0755", Clip(string(text)))
	}
	return nil
}

// File is one file of a bundle: its path, mode, size in bytes and content.
type File struct {
	Path   string
	Mode   Mode
	Size   int64
	Digest Digest
}

// Inventory lists the files of a bundle, sorted by path, itself excepted.
type Inventory struct{ Files []File }

type inventoryFile struct {
	Schema int            `json:"schema"`
	Files  []inventoryRow `json:"files"`
}

type inventoryRow struct {
	Path   string `json:"path"`
	Mode   Mode   `json:"mode"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// SortFiles sorts files by the bytes of their paths, the order of inventories,
// tar layers and set digests.
func SortFiles(files []File) {
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
}

// Encode writes the inventory's canonical bytes.
func (v Inventory) Encode() ([]byte, error) {
	out := inventoryFile{Schema: 1, Files: make([]inventoryRow, 0, len(v.Files))}
	for _, f := range v.Files {
		out.Files = append(out.Files, inventoryRow{f.Path, f.Mode, f.Size, f.Digest.Hex()})
	}
	if err := v.check(); err != nil {
		return nil, err
	}
	return EncodeLines(out)
}

// DecodeInventory reads an inventory, strictly.
func DecodeInventory(data []byte) (Inventory, error) {
	var in inventoryFile
	if err := DecodeStrict(data, &in); err != nil {
		return Inventory{}, err
	}
	if in.Schema != 1 {
		return Inventory{}, fmt.Errorf("schema %d is not 1", in.Schema)
	}
	var v Inventory
	for _, row := range in.Files {
		digest, err := ParseHex(row.SHA256)
		if err != nil {
			return Inventory{}, fmt.Errorf("%s: %w", Clip(row.Path), err)
		}
		v.Files = append(v.Files, File{row.Path, row.Mode, row.Size, digest})
	}
	return v, v.check()
}

func (v Inventory) check() error {
	paths := make([]string, 0, len(v.Files))
	for i, f := range v.Files {
		switch {
		case f.Path == InventoryPath:
			return fmt.Errorf("%s lists itself", InventoryPath)
		case i > 0 && f.Path <= v.Files[i-1].Path:
			return fmt.Errorf("%q does not come after %q", Clip(f.Path), Clip(v.Files[i-1].Path))
		case f.Size < 0:
			return fmt.Errorf("%q has size %d", Clip(f.Path), f.Size)
		case f.Digest.IsZero():
			return fmt.Errorf("%q has no digest", Clip(f.Path))
		}
		if err := f.Mode.check(); err != nil {
			return fmt.Errorf("%q: %w", Clip(f.Path), err)
		}
		paths = append(paths, f.Path)
	}
	return errors.Join(CheckPaths(paths)...)
}

// SetDigest returns the digest of a set of files, the inventory among them:
// sha256 over the lines that sha256sum prints for them, sorted by path. Modes
// are not part of it. doc.go has the shell line that recomputes it.
func SetDigest(files []File) Digest {
	sorted := append([]File(nil), files...)
	SortFiles(sorted)
	h := NewHash()
	for _, f := range sorted {
		// A hash never returns a write error.
		_, _ = io.WriteString(h, f.Digest.Hex()+"  "+f.Path+"\n")
	}
	return FinishHash(h)
}
