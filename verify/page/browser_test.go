package page

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// puppeteerPackage drives the browser, pinned: the newest for Node 18, which
// Debian has.
const puppeteerPackage = "puppeteer-core@24.43.1"

// The pages look right in Chromium: no message on its console, no request but
// for the page itself, no sideways scrolling at 400 and 1280 pixels, no text
// below a contrast of 4.5, light and dark, folded and unfolded. Installing the
// driver needs the network, so the test runs only where REQUIRE_BROWSER=1
// promises that, node and chromium; there it fails instead of skipping.
// SLIPWAY_SCREENSHOTS names a folder that takes pictures of the pages.
func TestPageInBrowser(t *testing.T) {
	if os.Getenv("REQUIRE_BROWSER") != "1" {
		t.Skip("needs chromium, node and the network; set REQUIRE_BROWSER=1 to run it")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	script, err := os.ReadFile("testdata/look.mjs")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "look.mjs"), script)
	write(t, filepath.Join(folder, "passing.html"), []byte(html(t, passing(t))))
	write(t, filepath.Join(folder, "hostile.html"), []byte(html(t, hostile(t))))
	write(t, filepath.Join(folder, "broken.html"), []byte(brokenPage))
	command(t, folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, puppeteerPackage)
	var looked []struct {
		Page     string
		Width    int
		Scheme   string
		Texts    int
		Problems []string
	}
	output := command(t, folder, "node", "look.mjs", chromium, os.Getenv("SLIPWAY_SCREENSHOTS"), "passing.html", "hostile.html", "broken.html")
	if err := json.Unmarshal(output, &looked); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if len(looked) != 12 {
		t.Errorf("looked %d times", len(looked))
	}
	for _, l := range looked {
		if l.Page == "broken.html" {
			for _, fault := range []string{"console: x", "request: http://127.0.0.1:9/x.png", "pixels sideways", "contrast 2.85: faint", "1 scripts, 1 pictures"} {
				if !strings.Contains(strings.Join(l.Problems, "\n"), fault) {
					t.Errorf("the broken page at %d pixels, %s, shows no %q: %q", l.Width, l.Scheme, fault, l.Problems)
				}
			}
			continue
		}
		for _, problem := range l.Problems {
			t.Errorf("%s at %d pixels, %s: %s", l.Page, l.Width, l.Scheme, problem)
		}
		if l.Texts < 100 {
			t.Errorf("%s has %d texts", l.Page, l.Texts)
		}
	}
}

// brokenPage has each fault that the browser is asked about.
const brokenPage = `<!doctype html><title>x</title><body style="background:#fff"><p style="color:#999">faint</p>
<div style="width:3000px">wide</div><img src="http://127.0.0.1:9/x.png"><script>console.log("x")</script>`

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs a program in a folder and returns its standard output.
func command(t *testing.T, folder, name string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Stderr = folder, os.Stderr
	output, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, output)
	}
	return output
}
