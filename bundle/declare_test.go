package bundle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
)

const pinnedHCL = `slipway = 1
bundle "pinned" {
  profile = "ternary-chat"
}
base "language" {
  repository = "Qwen/Qwen3.5-4B"
  revision   = "851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"
}
weights "language" {
  base     = "language"
  from     = "model"
  manifest = "quantization_manifest.json"
}
`

func planned(plan *Plan, name string) (PlannedFile, bool) {
	i := slices.IndexFunc(plan.Files, func(f PlannedFile) bool { return f.Path == name })
	if i < 0 {
		return PlannedFile{}, false
	}
	return plan.Files[i], true
}

// What a profile requires and slipway can write is generated, says what the
// base block says, and gives way to a file of the owner's.
func TestDeclarations(t *testing.T) {
	plan := mustPlan(t, source(t, pinnedHCL))
	for _, name := range []string{architecturePath, startingArtifactPath} {
		file, ok := planned(plan, name)
		if !ok || file.Source != "" {
			t.Fatalf("%s: %+v", name, file)
		}
		if !json.Valid(file.content) || !strings.Contains(string(file.content), `"revision":"851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a"`) {
			t.Errorf("%s says %s", name, file.content)
		}
	}
	file, ok := planned(plan, backboneContractPath)
	if !ok {
		t.Fatal("no backbone contract")
	}
	contract, err := manifest.DecodeContract(file.content)
	if err != nil || contract.Repository != "Qwen/Qwen3.5-4B" || len(contract.Tensors) != 738 {
		t.Errorf("backbone contract of %s with %d tensors (%v)", contract.Repository, len(contract.Tensors), err)
	}
	notes := strings.Join(plan.Notes, "\n")
	for _, missing := range []string{"DATA.md", "serve.sh", "provenance/*.log"} {
		if !strings.Contains(notes, "requires "+missing) {
			t.Errorf("no note that %s is missing:\n%s", missing, notes)
		}
	}

	own := source(t, pinnedHCL+"files \".\" {\n  from = \"extra\"\n}\n")
	write(t, own+"/extra/architecture.json", `{"base":"mine"}`)
	if file, _ := planned(mustPlan(t, own), architecturePath); file.Source != "extra/architecture.json" {
		t.Errorf("the owner's architecture.json was replaced by %q", file.content)
	}
}

func TestBasesMustBeThePinnedOnes(t *testing.T) {
	for _, tc := range []struct{ name, old, new, fault string }{
		{"another revision", "851bf6e8", "951bf6e8", "the profile pins Qwen/Qwen3.5-4B@851bf6e8"},
		{"another repository", "Qwen/Qwen3.5-4B", "Qwen/Qwen3.5-9B", "the profile pins"},
		{"another label", `base "language"`, `base "text"`, `needs base "language"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hcl := strings.Replace(pinnedHCL, tc.old, tc.new, 1)
			if tc.name == "another label" {
				hcl = strings.Replace(hcl, `base     = "language"`, `base     = "text"`, 1)
			}
			if _, err := makePlan(t, source(t, hcl)); err == nil || !strings.Contains(err.Error(), tc.fault) || manifest.Hint(err) == "" {
				t.Errorf("error %v, hint %q", err, manifest.Hint(err))
			}
		})
	}
}

func TestOutputsAmongSources(t *testing.T) {
	folder := source(t, abacusHCL)
	plan := mustPlan(t, folder)
	for _, tc := range []struct{ name, output, fault string }{
		{"beside", folder + "/out", ""},
		{"elsewhere", t.TempDir() + "/a/b", ""},
		{"in the flat weights folder", folder + "/model/out", ""},
		{"the folder itself", folder, "bundle.hcl and its sources lie in it"},
		{"above", folder + "/..", "bundle.hcl and its sources lie in it"},
		{"in a listed folder", folder + "/extra/out", `files "." takes what lies there`},
		{"a listed folder", folder + "/extra", `files "." takes what lies there`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := plan.CheckOutput(tc.output)
			if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestRegistryNotes(t *testing.T) {
	layers := []Layer{{Kind: manifest.KindWeight, Encoding: manifest.EncodingRaw, Size: 12_000_000_000, Paths: []string{"weights/big.safetensors"}}}
	notes := strings.Join(registryNotes(layers), "\n")
	if !strings.Contains(notes, "ghcr.io") || !strings.Contains(notes, "ECR Public") || strings.Contains(notes, "Harbor") {
		t.Errorf("notes for 12 GB:\n%s", notes)
	}
}
