package modelconfig

import (
	"os"
	"testing"

	"slipway/internal/realshapes"
	"slipway/verify/ternary"
)

// The verifier's own list of a family's tensors agrees with the one that was
// generated from the base's dimensions.
func TestExpectedTensorsOfQwen35(t *testing.T) {
	data, err := os.ReadFile("testdata/qwen3.5-4b.config.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	contract := realshapes.Qwen35With4B().Contract()
	expected, known, err := Tensors(config, "model.language_model.")
	if !known || err != nil {
		t.Fatalf("known %v, %v", known, err)
	}
	if len(expected) != 426 {
		t.Errorf("%d tensors, want 426", len(expected))
	}
	for _, tensor := range expected {
		want, ok := contract.Tensors[tensor.Name]
		if n, _ := ternary.Product(tensor.Shape); !ok || len(want.Shape) != len(tensor.Shape) || n != want.Elements() {
			t.Errorf("%s %v, the contract has %v", tensor.Name, tensor.Shape, want.Shape)
		}
	}
}
