package verify

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway/internal/generate/patch"
	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// The clean submission holds every format, and its report is the same twice.
func TestCleanSubmissionOfAllFormats(t *testing.T) {
	options := vectorOptions(t, map[string]string{"base": "at hand", "asks": "config", "rules": "task bounds"}, vectorContract(t))
	for _, counting := range []string{report.CountObserved, report.CountStrict} {
		options.Profile.Ternary.Counting = counting
		r := run(t, filepath.Join(vectorFolder, "clean"), options)
		if err := r.Err(); err != nil || len(allFindings(r)) > 0 {
			t.Fatalf("%s: %v\n%s", counting, err, text(t, r))
		}
		again := run(t, filepath.Join(vectorFolder, "clean"), options)
		a, errA := r.JSON()
		b, errB := again.JSON()
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("two reports differ: %v, %v", errA, errB)
		}
		if a := r.Accounts; len(a.Missing)+len(a.Unreferenced)+len(a.Double)+len(a.Unchanged) > 0 || a.Contract == "" || a.Manifest == "" {
			t.Errorf("accounts %+v", a)
		}
		var kinds []string
		for _, tensor := range r.Tensors {
			kinds = append(kinds, fmt.Sprintf("%s %s %s %d", tensor.Kind+tensor.Format, tensor.SharedBy, tensor.ScaleDType, tensor.Unit))
		}
		slices.Sort(kinds)
		want := []string{
			"float   0", "literal group  128", "literal row  256", "literal row  256",
			"packed_2bitbitnet_u8 tensor F32 16384", "packed_2bitbitnet_u8 tensor F32 256", "packed_2bitcompressed_tensors_2bit group BF16 64", "packed_2bitmlx_affine_2bit group BF16 64",
			"packed_2bitmlx_row_alpha_2bit row BF16 256", "packed_2bitpacked_2bit group F16 64",
		}
		if got := slices.Compact(slices.Clone(kinds)); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("kinds %q, want %q", got, want)
		}
	}
}

// The report lists by name what coverage came upon, and with Digests gives the
// digest of every stored tensor.
func TestAccounts(t *testing.T) {
	contract := vectorContract(t)
	clean := readFiles(t, filepath.Join(vectorFolder, "clean"))
	of := func(vector string) report.Accounts {
		t.Helper()
		v := readVector(t, filepath.Join(vectorFolder, vector+".vector"))
		files, err := patch.Apply(clean, v.fault)
		if err != nil {
			t.Fatal(err)
		}
		return *run(t, writeFiles(t, files), vectorOptions(t, v.header, contract)).Accounts
	}
	if got := of("A22-scales-of-the-scales").Unreferenced; len(got) != 1 || got[0].Tensor != "model.layers.1.self_attn.k_proj.weight.scales.scales" {
		t.Errorf("unreferenced %+v", got)
	}
	if got := of("A24-one-tensor-as-two-entries").Double; len(got) != 2 || len(got[0].Uses) != 2 {
		t.Errorf("double %+v", got)
	}
	if got := of("A26-the-embedding-under-a-layer-s-name").Missing; !slices.Equal(got, []string{"model.embed_tokens.weight"}) {
		t.Errorf("missing %q", got)
	}
	options := vectorOptions(t, map[string]string{}, contract)
	options.Digests = true
	known := *contract
	known.Tensors = maps.Clone(contract.Tensors)
	norm := known.Tensors["model.norm.weight"]
	norm.SHA256 = floatDigest(t, "model.norm.weight")
	known.Tensors["model.norm.weight"] = norm
	withDigest := options
	withDigest.Profile.Bases = []profiles.Base{{Label: "language", Repository: known.Repository, Revision: known.Revision, Contract: &known}}
	if got := run(t, filepath.Join(vectorFolder, "clean"), withDigest).Accounts.Unchanged; !slices.Equal(got, []string{"model.norm.weight"}) {
		t.Errorf("unchanged %q", got)
	}
	r := run(t, filepath.Join(vectorFolder, "clean"), options)
	hashed := 0
	for _, tensor := range r.Tensors {
		for _, part := range tensor.Stored {
			hashed++
			if part.Digest == "" {
				t.Errorf("%s %s has no digest", tensor.Name, part.As)
			}
			if part.File == "weights/float.safetensors" && part.Digest != "sha256:"+floatDigest(t, part.Tensor) {
				t.Errorf("%s: digest %s", tensor.Name, part.Digest)
			}
		}
	}
	if len(r.Tensors) != len(contract.Tensors)-countVisionAndMTP(contract) || hashed < len(r.Tensors) {
		t.Errorf("%d tensors, %d stored parts, %d in the contract", len(r.Tensors), hashed, len(contract.Tensors))
	}
}

// floatDigest hashes a tensor of the clean submission's shard of float entries.
func floatDigest(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectorFolder, "clean", "weights", "float.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	header, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	stored, ok := header.Lookup(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return manifest.DigestBytes(data[header.DataStart+stored.Begin : header.DataStart+stored.End]).Hex()
}

func countVisionAndMTP(c *manifest.Contract) (n int) {
	for _, tensor := range c.Tensors {
		if tensor.Role == manifest.RoleVision || tensor.Role == manifest.RoleMTP {
			n++
		}
	}
	return n
}
