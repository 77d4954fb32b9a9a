package script

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/verify/image"
	"slipway/verify/script/shell"
)

// oldManylinux are the names that the first of these tags had (PEP 600).
var oldManylinux = map[string]int{"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}

// unsuited says why a wheel cannot be installed on the grader's machine, by the
// tags of its file's name (PyPA, "Platform compatibility tags"); "" where it can,
// or where what it takes is not known. Graders' machines are linux/amd64.
func unsuited(file string, i *image.Image) string {
	parts := strings.Split(strings.TrimSuffix(path.Base(file), ".whl"), "-")
	if len(parts) < 5 {
		return ""
	}
	tags := parts[len(parts)-3:]
	python := -1
	if i != nil && i.Python != nil {
		if major, rest, _ := strings.Cut(i.Python.Version, "."); major == "3" {
			minor, _, _ := strings.Cut(rest, ".")
			if n, err := strconv.Atoi(minor); err == nil {
				python = n
			}
		}
	}
	if python >= 0 && !suitsPython(tags[0], tags[1], python) {
		return fmt.Sprintf("is not for Python 3.%d", python)
	}
	glibc := -1
	if i != nil {
		if _, minor, ok := strings.Cut(i.Glibc, "2."); ok {
			glibc, _ = strconv.Atoi(minor)
		}
	}
	why := ""
	for platform := range strings.SplitSeq(tags[2], ".") {
		if why = unsuitedPlatform(platform, glibc); why == "" {
			return ""
		}
	}
	return why
}

// suitsPython reports whether one of a wheel's tags is of CPython 3.minor.
func suitsPython(pythons, abis string, minor int) bool {
	for tag := range strings.SplitSeq(pythons, ".") {
		for abi := range strings.SplitSeq(abis, ".") {
			n, err := strconv.Atoi(strings.TrimPrefix(tag, "cp3"))
			switch {
			case tag == "py3" || tag == fmt.Sprintf("py3%d", minor):
				return abi == "none"
			case strings.HasPrefix(tag, "py3"):
				if n, err := strconv.Atoi(tag[3:]); err == nil && n <= minor && abi == "none" {
					return true
				}
			case err != nil || !strings.HasPrefix(tag, "cp3"):
			case n == minor && (abi == tag || abi == "none" || abi == "abi3"), abi == "abi3" && n <= minor:
				return true
			}
		}
	}
	return false
}

// unsuitedPlatform says why a platform's tag is not the grader's. glibc is the
// minor version, -1 where it is unknown.
func unsuitedPlatform(platform string, glibc int) string {
	needs, manylinux := 0, false
	if rest, ok := strings.CutPrefix(platform, "manylinux_2_"); ok {
		minor, _, _ := strings.Cut(rest, "_")
		needs, _ = strconv.Atoi(minor)
		manylinux = true
	} else if name, _, ok := strings.Cut(platform, "_"); ok && oldManylinux[name] > 0 {
		needs, manylinux = oldManylinux[name], true
	}
	switch {
	case platform == "any":
	case !manylinux && platform != "linux_x86_64", !strings.HasSuffix(platform, "_x86_64"):
		return "is not for Linux with glibc on amd64"
	case glibc >= 0 && needs > glibc:
		return fmt.Sprintf("is for glibc 2.%d or later, and the grader has 2.%d", needs, glibc)
	}
	return ""
}

// checkTags looks for wheels that were made for another machine: pip passes over
// them in a folder, and refuses them by path.
func (a *analysis) checkTags() {
	asked := map[string]*shell.Step{} // wheels that pip is given by path
	for _, st := range a.main.Steps {
		if in, ok := shell.InstallOf(st.Argv); ok {
			for _, file := range in.Files {
				asked[absoluteIn(st.Folder, file)] = st
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(a.wheels())) {
		why := unsuited(p, a.options.Image)
		if why == "" {
			continue
		}
		f := shell.Finding{Check: "C07", Warning: true, Path: a.tree.Relative(p), Problem: why, Hint: "vendor the wheel for the grader's machine: pip download --only-binary :all: --platform manylinux_2_28_x86_64 --python-version 3.12"}
		if st := asked[p]; st != nil {
			f.Warning, f.Problem, f.Got = st.Tested, why+": pip refuses it", fmt.Sprintf("installed by %s, line %d", st.Path, st.Line)
		}
		a.add(f)
	}
}

// driverOf is the least driver that a wheel's CUDA needs: of its local version,
// as "+cu128". Source: NVIDIA, "CUDA Compatibility", minor version compatibility.
func driverOf(file string) (cuda string, driver int) {
	_, local, _ := strings.Cut(path.Base(file), "+cu")
	digits, _, _ := strings.Cut(local, "-")
	digits, _, _ = strings.Cut(digits, ".")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || len(digits) != 3:
		return "", 0
	case n >= 130:
		driver = 580
	case n >= 120:
		driver = 525
	case n >= 110:
		driver = 450
	}
	return digits[:2] + "." + digits[2:], driver
}

// checkDriver holds the CUDA of the shipped torch against the grader's driver.
func (a *analysis) checkDriver() {
	i := a.options.Image
	if i == nil || i.GPU == nil || a.server == nil {
		return
	}
	major, _, _ := strings.Cut(i.GPU.Driver, ".")
	has, err := strconv.Atoi(major)
	if err != nil {
		return
	}
	wheels := a.wheels()
	for _, p := range slices.Sorted(maps.Keys(wheels)) {
		cuda, needs := driverOf(p)
		if wheels[p] != "torch" || has >= needs {
			continue
		}
		a.add(shell.Finding{Check: "C13", Path: a.tree.Relative(p), Problem: fmt.Sprintf("is built for CUDA %s, and the grader's driver is too old for it", cuda),
			Want: fmt.Sprintf("driver %d or later", needs), Got: i.GPU.Driver, Hint: "vendor the build for an earlier CUDA"})
	}
}
