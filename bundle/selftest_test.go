package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/bundle/config"
	"slipway/manifest"
)

// planWithRuntime plans the example with a runtime block and what the caller of
// Inspect would find for it.
func planWithRuntime(t *testing.T, hcl string, answers []byte) *Plan {
	t.Helper()
	folder := source(t, hcl)
	wanted, err := config.LoadBundle(filepath.Join(folder, "bundle.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	profile, _, err := config.LoadProfile(wanted.ProfileSource())
	if err != nil {
		t.Fatal(err)
	}
	found, err := Inspect(t.Context(), wanted, Options{})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "serve")
	write(t, program, "program")
	found.Runtime = &Runtime{Path: program, Size: 7, SourceTar: []byte("tar"), Selftest: answers}
	plan, err := MakePlan(wanted, profile, found)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestSelftestIsPlanned(t *testing.T) {
	const answers = `[{"prompt":[1],"tokens":[2]}]`
	runtime := func(more string) string {
		return strings.Replace(abacusHCL, "provenance {", "runtime \"native\" {\n  device = \"cpu\"\n"+more+"}\nprovenance {", 1)
	}
	twoBlocks := strings.Replace(runtime(""), "files \".\" {", "weights \"other\" {\n  from = \"model\"\n}\nfiles \".\" {", 1)
	for _, tc := range []struct {
		name, hcl, answers string
		shipped            bool
		note               string
	}{
		{"made", runtime(""), answers, true, ""},
		{"asked for", runtime("  selftest = true\n"), answers, true, ""},
		{"refused", runtime("  selftest = false\n"), answers, false, ""},
		{"nothing is clear", runtime(""), "[]\n", false, "prefers no token clearly"},
		{"two weights blocks", twoBlocks, answers, false, "several weights blocks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan := planWithRuntime(t, tc.hcl, []byte(tc.answers))
			i := slices.IndexFunc(plan.Files, func(f PlannedFile) bool { return f.Path == selftestPath })
			script := slices.IndexFunc(plan.Files, func(f PlannedFile) bool { return f.Path == servePath })
			if (i >= 0) != tc.shipped || plan.NeedsSelftest() {
				t.Errorf("shipped: %v, needed: %v", i >= 0, plan.NeedsSelftest())
			}
			if asked := strings.Contains(string(plan.Files[script].content), "--selftest"); asked != tc.shipped {
				t.Errorf("serve.sh asks for it: %v", asked)
			}
			if got := strings.Join(plan.Notes, "\n"); tc.note != "" && !strings.Contains(got, tc.note) || tc.note == "" && strings.Contains(got, selftestPath) {
				t.Errorf("notes %q, want %q", got, tc.note)
			}
		})
	}
}

// A plan whose answers were not made yet can be looked at and not executed; its
// checkpoint can.
func TestSelftestMustBeMade(t *testing.T) {
	hcl := abacusHCL + "runtime \"native\" {\n  device = \"cuda\"\n}\n"
	plan := planWithRuntime(t, hcl, nil)
	if !plan.NeedsSelftest() {
		t.Fatal("no selftest is needed")
	}
	if _, err := Seal(t.Context(), plan, Options{}); !errors.Is(err, errNoSelftest) {
		t.Errorf("sealed: %v", err)
	}
	folder := filepath.Join(t.TempDir(), "checkpoint")
	sealed, err := WriteFolder(t.Context(), plan.Checkpoint(), folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	for name, want := range map[string]bool{"weights/config.json": true, "quantization_manifest.json": true, "serve.sh": false, "run.sh": false} {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != want {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}

// A model that the runtime does not know is refused before anything is made of it,
// unless somebody else's serve.sh is there.
func TestPlanOfAnotherArchitecture(t *testing.T) {
	hcl := strings.Replace(abacusHCL, "provenance {", "runtime \"native\" {\n  device = \"cpu\"\n}\nprovenance {", 1)
	folder := source(t, hcl)
	write(t, filepath.Join(folder, "model/config.json"), `{"architectures": ["LlamaForCausalLM"]}`)
	_, err := makePlan(t, folder)
	if want := "the bundled runtime computes Qwen3ForCausalLM, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration: not LlamaForCausalLM"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(manifest.Hint(err), "serve.sh of your own") {
		t.Errorf("error %v, want %q", err, want)
	}
	write(t, filepath.Join(folder, "extra/serve.sh"), "#!/bin/sh\n")
	mustPlan(t, folder)
}
