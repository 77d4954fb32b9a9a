package realshapes

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/safetensors"
)

var update = flag.Bool("update", false, "write the contract files that the profiles ship")

var contractFiles = map[string]func() manifest.Contract{
	"../../verify/profiles/qwen3.5-4b.contract.json":     func() manifest.Contract { return Qwen35With4B().Contract() },
	"../../verify/profiles/qwen3-0.6b-fp8.contract.json": Qwen3With06BInFP8,
	"../../verify/profiles/maple.contract.json":          Maple,
}

func TestQwen35Counts(t *testing.T) {
	type sum struct {
		tensors  int
		elements int64
	}
	sums := map[manifest.Role]sum{}
	var packable sum
	for name, tensor := range Qwen35With4B().Contract().Tensors {
		s := sums[tensor.Role]
		sums[tensor.Role] = sum{s.tensors + 1, s.elements + tensor.Elements()}
		if Packable(name) {
			packable = sum{packable.tensors + 1, packable.elements + tensor.Elements()}
		}
	}
	if want := (sum{200, 3_565_158_400}); packable != want {
		t.Errorf("packable %v, want %v", packable, want)
	}
	if want := (sum{425, 3_570_052_096}); sums[manifest.RoleBackbone] != want {
		t.Errorf("backbone %v, want %v", sums[manifest.RoleBackbone], want)
	}
	if want := (sum{1, 635_699_200}); sums[manifest.RoleEmbedding] != want {
		t.Errorf("embedding %v, want %v", sums[manifest.RoleEmbedding], want)
	}
	if got := sums[manifest.RoleVision].tensors; got != 297 {
		t.Errorf("%d vision tensors, want 297", got)
	}
	if got := sums[manifest.RoleMTP].tensors; got != 15 {
		t.Errorf("%d prediction tensors, want 15", got)
	}
}

func TestShippedContractsAreCurrent(t *testing.T) {
	for file, contract := range contractFiles {
		want, err := contract().Encode()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the dimensions give; run the test with -update", file)
		}
	}
}

// read returns a shipped contract as the profiles read it.
func read(t *testing.T, file string) manifest.Contract {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	contract, err := manifest.DecodeContract(data)
	if err != nil {
		t.Fatal(err)
	}
	return contract
}

// elements sums the tensors that keep holds for, and their bytes.
func elements(c manifest.Contract, keep func(name string, tensor manifest.ContractTensor) bool) (tensors int, sum, bytes int64) {
	for name, tensor := range c.Tensors {
		if keep(name, tensor) {
			dtype, _ := safetensors.ParseDType(tensor.DType)
			tensors, sum, bytes = tensors+1, sum+tensor.Elements(), bytes+tensor.Elements()*int64(dtype.Bits())/8
		}
	}
	return tensors, sum, bytes
}

// The published model without its tied head has 506 tensors and 751,751,680
// bytes of data; the head has 311,164,928.
func TestQwen3With06BInFP8(t *testing.T) {
	c := read(t, "../../verify/profiles/qwen3-0.6b-fp8.contract.json")
	isHead := func(_ string, tensor manifest.ContractTensor) bool { return tensor.Role == manifest.RoleHead }
	tensors, _, bytes := elements(c, func(name string, tensor manifest.ContractTensor) bool { return !isHead(name, tensor) })
	heads, _, headBytes := elements(c, isHead)
	if tensors != 506 || bytes != 751_751_680 || heads != 1 || headBytes != 311_164_928 || !c.TiedHead {
		t.Errorf("%d tensors of %d bytes, %d heads of %d bytes, tied %v", tensors, bytes, heads, headBytes, c.TiedHead)
	}
	if got := c.Tensors["model.layers.27.mlp.down_proj.weight_scale_inv"]; !slices.Equal(got.Shape, []int64{8, 24}) {
		t.Errorf("the last scales are %v", got.Shape)
	}
}

func TestMaple(t *testing.T) {
	c := read(t, "../../verify/profiles/maple.contract.json")
	all := func(string, manifest.ContractTensor) bool { return true }
	tensors, parameters, bytes := elements(c, all)
	if tensors != 18_651 || parameters != 20_214_030_336 || bytes != 40_428_060_672 {
		t.Errorf("%d tensors, %d parameters, %d bytes", tensors, parameters, bytes)
	}
	matrices, ternary, _ := elements(c, func(name string, _ manifest.ContractTensor) bool { return Packable(name) })
	if matrices != 24*(256*3+4) || ternary != 19_579_011_072 {
		t.Errorf("%d ternary matrices of %d weights", matrices, ternary)
	}
	for want, suffix := range map[int64]string{12_582_912: ".mlp.gate.weight", 311_164_928: "word_embeddings.weight"} {
		if _, got, _ := elements(c, func(name string, _ manifest.ContractTensor) bool { return strings.HasSuffix(name, suffix) }); got != want {
			t.Errorf("%s: %d elements, want %d", suffix, got, want)
		}
	}
	if _, got, _ := elements(c, func(name string, _ manifest.ContractTensor) bool { return strings.Contains(name, "norm") }); got != 106_496 {
		t.Errorf("%d elements of norms", got)
	}
}
