package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// openaiPackage is the official JavaScript client, pinned.
const openaiPackage = "openai@7.59.0"

// The official JavaScript client understands what the server says. Installing
// it needs the network, so the test runs only where REQUIRE_NODE=1 promises
// that and node; there it fails instead of skipping.
func TestOfficialNodeClient(t *testing.T) {
	if os.Getenv("REQUIRE_NODE") != "1" {
		t.Skip("installs a package from the network; set REQUIRE_NODE=1 to run it")
	}
	folder := t.TempDir()
	script, err := os.ReadFile("testdata/openai.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "openai.mjs"), script, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, openaiPackage)
	p := launch(t, "--weights", ternary, "--model", "abacus")
	got := command(t, folder, "node", "openai.mjs", p.url)
	const want = `{"models":["abacus"],"content":"989","finish":"stop","streamed":"989","total":32,"error":["BadRequestError",400,"context_length_exceeded"]}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// command runs a program in a folder and returns its standard output.
func command(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Stderr = folder, os.Stderr
	output, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}
