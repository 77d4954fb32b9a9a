package verify

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/verify/report"
	"slipway/verify/scan"
)

// Locks come in tables of their own, inline, and with URLs that are escaped;
// what is no wheel's digest is nobody's.
func TestLockedWheels(t *testing.T) {
	a, b, c := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("C", 64)
	lock := fmt.Sprintf(`lock-version = "1.0"
[[packages]]
name = "torch"
wheels = [
  { url = "https://index.example/whl/torch-2.9.0%%2Bcu128-cp312-cp312-manylinux_2_28_x86_64.whl", size = 1, hashes = { sha256 = "%s" } },
  { path = "wheels/torch-2.9.0-cp312-cp312-win_amd64.whl", hashes = {sha256="%s"} },
]
sdist = { name = "torch-2.9.0.tar.gz", hashes = { sha256 = "%s" } }
[[packages]]
name = "numpy"
archive = { hashes = { sha256 = "%s" } }
# name = "x.whl"
[[packages.wheels]]
name = "NumPy-2-py3-none-any.whl"
[packages.wheels.hashes]
sha256 = "%s"
`, a, b, c, c, c)
	e := &evidence{facts: map[string]*scan.File{"pylock.toml": {Small: []byte(lock)}, "wheels/pylock.toml": {Small: []byte(`name = "numpy-2-py3-none-any.whl"` + "\nsha256 = \"" + b + "\"\n")}}}
	want := map[string][]string{
		"torch-2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl": {a},
		"torch-2.9.0-cp312-cp312-win_amd64.whl":                   {b},
		"numpy-2-py3-none-any.whl":                                {strings.ToLower(c), b},
	}
	if got := e.lockedWheels(); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("locked %v, want %v", got, want)
	}
}

// hookedWheel is a wheel with a hook that Python runs at its start.
func hookedWheel(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	add := func(name, content string) {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const hook = "import os\n"
	sum := sha256.Sum256([]byte(hook))
	add("a.pth", hook)
	add("a-1.dist-info/RECORD", fmt.Sprintf("a.pth,sha256=%s,%d\na-1.dist-info/RECORD,,\n", base64.RawURLEncoding.EncodeToString(sum[:]), len(hook)))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A hook is an error in a wheel that nothing proves, and a warning in one whose
// digest a lock gives; the notes say which wheels were compared.
func TestHookInALockedWheel(t *testing.T) {
	const name = "wheels/a-1-py3-none-any.whl"
	wheel := hookedWheel(t)
	of := func(alter func(*fixture)) report.GateResult {
		t.Helper()
		f := newFixture()
		f.files[name] = wheel
		alter(f)
		g, _ := run(t, f.write(t), Options{Profile: toyProfile()}).Gate("files")
		return g
	}
	lock := func(f *fixture) {
		f.files["pylock.toml"] = fmt.Appendf(nil, "name = %q\nsha256 = %q\n", "a-1-py3-none-any.whl", manifest.DigestBytes(wheel).Hex())
	}
	if g := of(func(*fixture) {}); g.Status != report.Fail || len(g.Findings) != 1 || !strings.Contains(strings.Join(g.Notes, "\n"), "upstream's digest of 1 was not compared") {
		t.Errorf("without a lock: %+v", g)
	}
	if g := of(lock); g.Status != report.Pass || len(g.Findings) != 1 || g.Findings[0].Level != report.Warning || !strings.Contains(strings.Join(g.Notes, "\n"), "self-declared") {
		t.Errorf("with a lock: %+v", g)
	}
}
