package bundle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifest/layout"
)

// The format's description shows how to recompute both digests without
// slipway. The commands are run here as they stand there.
func TestDocumentedCommandsRecomputeTheDigests(t *testing.T) {
	for _, tool := range []string{"sh", "sha256sum", "find", "sort", "xargs", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	doc, err := os.ReadFile("../manifest/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	command := func(beginning string) string {
		for line := range strings.SplitSeq(string(doc), "\n") {
			if text := strings.TrimPrefix(line, "//\t"); strings.HasPrefix(text, beginning) {
				return text
			}
		}
		t.Fatalf("manifest/doc.go shows no command that begins with %q", beginning)
		return ""
	}
	run := func(folder, text string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", text)
		cmd.Dir = folder
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return strings.Fields(string(out))[0]
	}
	folder := source(t, abacusHCL)
	write(t, filepath.Join(folder, "extra/-b"), "taken for an option?")
	write(t, filepath.Join(folder, "extra/a name with 'quotes' and $signs"), "x")
	plan := mustPlan(t, folder)
	out := filepath.Join(t.TempDir(), "out")
	written, err := WriteFolder(t.Context(), plan, out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	if got := run(out, command("find ")); got != written.SetDigest.Hex() {
		t.Errorf("the documented command gives set digest %s, slipway %s", got, written.SetDigest.Hex())
	}
	laid := filepath.Join(t.TempDir(), "layout")
	target, err := layout.Create(laid, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	sealed, err := WriteLayout(t.Context(), plan, target, LayoutOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	if got := run(laid, command("sha256sum ")); got != sealed.Descriptor.Digest.Hex() {
		t.Errorf("the documented command gives artifact digest %s, slipway %s", got, sealed.Descriptor.Digest.Hex())
	}
}
