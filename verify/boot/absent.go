package boot

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway/verify/boot/installed"
	"slipway/verify/report"
)

// withoutAbsent is the condition that this machine's Python finds nothing that
// the image says is not installed.
const withoutAbsent = "absent packages left out"

// absent is what is installed on this machine and, as the image says, not on the
// grader's.
type absent struct {
	names []string // of distributions
	paths []string // theirs alone, on this machine
}

// absentHere is what is found once, for all starts.
func (r *Rehearsal) absentHere() absent {
	if r.absent == nil {
		found := r.findAbsent()
		r.absent = &found
	}
	return *r.absent
}

// findAbsent looks into the folders of packages of the Pythons in PATH.
func (r *Rehearsal) findAbsent() (all absent) {
	image := r.Profile.Image
	if image == nil || len(image.Absent) == 0 && !image.Complete {
		return absent{}
	}
	for _, folder := range packageFolders(filepath.SplitList(r.path(nil))) {
		packages := installed.Read(folder)
		for _, name := range packages.Distributions() {
			if r.lacksDistribution(name) {
				all.names = append(all.names, name)
			}
		}
		for _, name := range packages.Only(r.lacksDistribution) {
			all.paths = append(all.paths, filepath.Join(folder, filepath.FromSlash(name)))
		}
	}
	slices.Sort(all.names)
	all.names = slices.Compact(all.names)
	return all
}

// lacksDistribution reports whether the image says that a distribution is not
// installed.
func (r *Rehearsal) lacksDistribution(name string) bool {
	_, there, known := r.Profile.Image.Installed(name)
	return known && !there
}

// packageFolders are the folders of packages of the Pythons in some folders of
// programs, /x/lib/python3.Y/site-packages of /x/bin, and of what python3 there
// is a link to.
func packageFolders(programs []string) (folders []string) {
	for _, bin := range programs {
		prefixes := []string{filepath.Dir(bin)}
		if python, err := filepath.EvalSymlinks(filepath.Join(bin, "python3")); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
		}
		for _, prefix := range prefixes {
			for _, pattern := range []string{"lib*/python3*/site-packages", "lib*/python3*/dist-packages"} {
				found, _ := filepath.Glob(filepath.Join(prefix, pattern)) // the patterns are well-formed
				for _, folder := range found {
					if folder, err := filepath.EvalSymlinks(folder); err == nil && !slices.Contains(folders, folder) {
						folders = append(folders, folder)
					}
				}
			}
		}
	}
	return folders
}

// packageFolder matches the path of a file in a folder of packages.
var packageFolder = regexp.MustCompile(`^(.*?/(?:site|dist)-packages)/(.+)$`)

// judgePackages holds the packages of this machine that were used against those
// of the image. What the submission brought or installed is its own.
func (o *observed) judgePackages(v *verdict) {
	if o.rehearsal.Profile.Image == nil {
		return
	}
	folders, unknown, refused := map[string]*installed.Folder{}, map[string]bool{}, map[string]bool{}
	for _, f := range o.trace.Opened {
		m := packageFolder.FindStringSubmatch(f.Path)
		if m == nil || !f.Exists || o.owns(f.Path) || isMetadata(m[2]) {
			continue
		}
		if folders[m[1]] == nil {
			folders[m[1]] = installed.Read(m[1])
		}
		owners := folders[m[1]].Owners(m[2])
		switch name, is := o.owner(owners, m[2]); {
		case is == ownerAbsent && !refused[name]:
			refused[name] = true
			v.Fail(report.Finding{Path: f.Path, Problem: fmt.Sprintf("the server uses %s, which this machine has and the image has not", name),
				Hint: "ship it, or do without"})
		case is == ownerUnknown:
			unknown[name] = true
		}
	}
	if names := slices.Sorted(maps.Keys(unknown)); len(names) > 0 {
		v.Note("of this machine, and not mentioned by the image, it uses %s", strings.Join(names, ", "))
	}
}

const (
	ownerInstalled = iota
	ownerAbsent
	ownerUnknown
)

// owner names the distribution that a file is of, and says what the image says
// of it; of several the one that speaks most for the file.
func (o *observed) owner(owners []string, file string) (name string, is int) {
	if len(owners) == 0 {
		module, _, _ := strings.Cut(strings.TrimPrefix(file, "__pycache__/"), "/")
		module, _, _ = strings.Cut(module, ".")
		return "module " + module, ownerUnknown
	}
	is = ownerAbsent
	for _, owner := range owners {
		_, there, known := o.rehearsal.Profile.Image.Installed(owner)
		switch {
		case there:
			return owner, ownerInstalled
		case !known:
			name, is = owner, ownerUnknown
		case name == "":
			name = owner
		}
	}
	return name, is
}

// isMetadata reports whether a file of a folder of packages is none of a module:
// Python reads these of everything that is installed.
func isMetadata(file string) bool {
	top, _, _ := strings.Cut(file, "/")
	ending := path.Ext(top)
	return ending == ".dist-info" || ending == ".egg-info" || ending == ".pth" || ending == ".egg-link"
}

// standardLibrary matches the first module that any Python reads, in its standard
// library.
var standardLibrary = regexp.MustCompile(`/lib(?:64)?/python(\d+\.\d+)/encodings/`)

// judgePython warns of another Python than the image's: wheels and compiled
// modules are for one minor version. One that the submission brings is its own.
func (o *observed) judgePython(v *verdict) {
	image := o.rehearsal.Profile.Image
	if image == nil || image.Python == nil || o.trace == nil {
		return
	}
	seen := map[string]bool{}
	for _, f := range o.trace.Opened {
		m := standardLibrary.FindStringSubmatch(f.Path)
		if m == nil || !f.Exists || seen[m[1]] || o.owns(f.Path) {
			continue
		}
		seen[m[1]] = true
		if m[1] != image.Python.Version && !strings.HasPrefix(image.Python.Version, m[1]+".") {
			v.Warn(report.Finding{Path: serveScript, Problem: "it ran with another Python than the grader's", Want: "Python " + image.Python.Version + ", as the image has it",
				Got: "Python " + m[1] + ", this machine's", Hint: "rehearse on a machine with that Python: what is compiled for one is not found by the other"})
		}
	}
}
