package realshapes

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"slipway/manifest"
)

var update = flag.Bool("update", false, "write the contract file that the profiles ship")

const contractFile = "../../verify/profiles/qwen3.5-4b.contract.json"

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

func TestShippedContractIsCurrent(t *testing.T) {
	want, err := Qwen35With4B().Contract().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(contractFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(contractFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the dimensions give; run the test with -update", contractFile)
	}
}
