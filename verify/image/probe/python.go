package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"slipway/manifest"
	"slipway/verify/image"
)

// question is what python3 is asked: its version, its own path, the folders of
// its modules and of its C headers. It is asked under the conditions of the
// submission, PYTHONPATH included.
const question = `import json, sys, sysconfig
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "path": sys.executable or "", "folders": [p for p in sys.path if p], "include": sysconfig.get_paths().get("include", "")}))`

type answer struct {
	Version string   `json:"version"`
	Path    string   `json:"path"`
	Folders []string `json:"folders"`
	Include string   `json:"include"`
}

func (p *prober) python(ctx context.Context) {
	path, ok := p.look("python3")
	if !ok {
		p.unknown = append(p.unknown, "python: there is no python3 in PATH")
		return
	}
	out, err := p.run(ctx, path, "-c", question)
	if err != nil {
		p.miss("python: ask "+path, err)
		return
	}
	if err := p.answered(out); err != nil {
		p.miss("python: answer of "+path, err)
	}
}

// answered reads Python's answer, and what is installed in the folders that it
// names.
func (p *prober) answered(out []byte) error {
	var got answer
	lines := strings.Split(strings.TrimSpace(string(out)), "\n") // a sitecustomize may have printed before
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		return err
	}
	if got.Version == "" {
		return fmt.Errorf("%q has no version", manifest.Clip(string(out)))
	}
	p.image.Python = &image.Python{Version: got.Version, Path: got.Path}
	if got.Include != "" {
		_, err := os.Stat(filepath.Join(got.Include, "Python.h"))
		headers := err == nil
		p.image.Python.Headers = &headers
	}
	p.image.Distributions, p.image.Complete = map[string]string{}, true
	for _, folder := range got.Folders {
		found, err := installedIn(folder)
		if err != nil {
			p.miss("distributions in "+folder, err)
			p.image.Complete = false
			continue
		}
		merge(p.image.Distributions, found)
	}
	if p.image.Complete {
		p.image.Absent = absentOf(p.image.Distributions)
	}
	return nil
}

// metadataFolder matches what names an installed distribution in a folder of
// modules: name-version.dist-info (PEP 376, PEP 427), or the egg-info file or
// folder of setuptools, where -pyX.Y may follow.
var metadataFolder = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-(\d[A-Za-z0-9.!+_]*?)(?:-py\d+(?:\.\d+)?)?\.(?:dist|egg)-info$`)

// installedIn returns the distributions of a folder and their versions, by
// normalised name. A folder that is not there, or is an archive, has none.
func installedIn(folder string) (map[string]string, error) {
	info, err := os.Stat(folder)
	if os.IsNotExist(err) || err == nil && !info.IsDir() {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, entry := range entries {
		if m := metadataFolder.FindStringSubmatch(entry.Name()); m != nil {
			found[image.NormalName(m[1])] = m[2]
		}
	}
	return found, nil
}
