package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"slipway/manifest"
)

// CheckOutput refuses a place to write to that would harm what is built from:
// the folder of bundle.hcl or one above it, which would be replaced, and a
// folder whose files the next build would take for sources.
func (p *Plan) CheckOutput(output string) error {
	target, err := realPath(output)
	if err != nil {
		return fmt.Errorf("build into %s: %w", output, manifest.Cause(err))
	}
	folder, err := realPath(p.folder)
	if err != nil {
		return fmt.Errorf("build into %s: %w", output, manifest.Cause(err))
	}
	if _, above := below(target, folder); above {
		return manifest.WithHint(fmt.Errorf("build into %s: bundle.hcl and its sources lie in it", output), "choose another folder")
	}
	inside, is := below(folder, target)
	if !is {
		return nil
	}
	for _, f := range p.listed {
		within, is := below(path.Clean(f.From.Value), inside)
		if f.From.Value == "." {
			within, is = inside, true
		}
		if is && (f.Selects(path.Join(within, manifest.InventoryPath)) || f.Selects(path.Join(within, "oci-layout"))) {
			return manifest.WithHint(fmt.Errorf("build into %s: files %q takes what lies there, so the next build would contain this one", output, f.Target),
				"choose a folder outside "+f.From.Value+", or exclude it")
		}
	}
	return nil
}

// below returns name relative to folder, if it is folder or lies in it.
func below(folder, name string) (string, bool) {
	if folder == name {
		return ".", true
	}
	rest, is := strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/")
	return rest, is
}

// realPath returns the absolute slash path of a name without links in it; the
// end of it need not exist.
func realPath(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(absolute) != absolute {
		parent, err := realPath(filepath.Dir(absolute))
		return path.Join(parent, filepath.Base(absolute)), err
	}
	return filepath.ToSlash(resolved), err
}
