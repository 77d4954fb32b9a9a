package script

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"slipway/verify/image"
	"slipway/verify/script/python"
	"slipway/verify/script/shell"
)

// leastVersions are those that calls need of a distribution. Source:
// transformers, utils/chat_template_utils.py, which refuses older ones.
var leastVersions = map[string]string{"jinja2": "3.1"}

// checkVersion looks at the version of a distribution that a call needs: of the
// submission's where it brings one, else the image's.
func (a *analysis) checkVersion(r python.Requirement, served bool) {
	least, named := leastVersions[r.Distribution]
	if !named {
		return
	}
	versions := a.versions(r.Distribution)
	if len(versions) == 0 {
		if version, installed, _ := a.options.Image.Installed(r.Distribution); installed && version != "" {
			versions = map[string]string{version: "the grader's image"}
		}
	}
	for version, where := range versions {
		if versionBelow(version, least) {
			a.add(shell.Finding{Check: "C09", Warning: !served || len(versions) > 1, Path: r.Path, Line: r.Line, Problem: fmt.Sprintf("%s of version %s or later", r.Why, least),
				Want: r.Distribution + " " + least + " or later", Got: fmt.Sprintf("%s %s, in %s", r.Distribution, version, where), Hint: "vendor a later wheel of " + r.Distribution})
		}
	}
}

// versions are those of a distribution that the submission brings, and where:
// wheels, and packages that lie unpacked.
func (a *analysis) versions(name string) map[string]string {
	found := map[string]string{}
	for p, n := range a.tree.Base {
		base := path.Base(p)
		if n.Source == "" {
			base = strings.TrimSuffix(base, ".dist-info") + "-" // a folder
			if !strings.HasSuffix(p, ".dist-info") {
				continue
			}
		} else if !strings.HasSuffix(base, ".whl") {
			continue
		}
		parts := strings.Split(base, "-")
		if len(parts) > 2 && image.NormalName(parts[0]) == name {
			found[parts[1]] = a.tree.Relative(p)
		}
	}
	return found
}

// versionBelow compares the numbers of two versions, as far as they are numbers.
func versionBelow(version, least string) bool {
	have, want := strings.Split(version, "."), strings.Split(least, ".")
	for i, part := range want {
		if i >= len(have) {
			return true
		}
		a, errA := strconv.Atoi(have[i])
		b, errB := strconv.Atoi(part)
		if errA != nil || errB != nil || a != b {
			return errA == nil && errB == nil && a < b
		}
	}
	return false
}
