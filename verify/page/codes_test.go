package page

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify"
	"slipway/verify/profiles"
	"slipway/verify/report"
)

// The codes of every format are drawn, layer by layer: of the submission that
// has a tensor in each format, all ternary weights are in the columns.
func TestCodesOfEveryFormatAreDrawn(t *testing.T) {
	tree, err := content.OpenFolder(context.Background(), "../testdata/vectors/clean")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	data, err := os.ReadFile("../testdata/vectors/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	contract, err := manifest.DecodeContract(data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := verify.Run(context.Background(), tree, verify.Options{Contract: &contract, Profile: profiles.Profile{
		Name: "formats", Gates: []string{"coverage", "ternary"}, Ternary: &profiles.Ternary{Counting: report.CountObserved},
	}})
	if err != nil {
		t.Fatal(err)
	}
	formats, drawn := map[string]bool{}, int64(0)
	for _, tensor := range r.Tensors {
		if tensor.Kind != manifest.KindFloat {
			formats[tensor.Kind+" "+tensor.Format] = true
		}
	}
	if len(formats) != 1+len(manifest.PackedFormatIDs()) {
		t.Fatalf("formats %v", formats)
	}
	codes := newCodes(r.Tensors)
	if codes == nil || len(codes.Layers) != 2 || codes.Bad {
		t.Fatalf("codes %+v", codes)
	}
	for _, l := range codes.Layers {
		drawn += l.Counts[0] + l.Counts[1] + l.Counts[2]
		if height := l.Heights[0] + l.Heights[1] + l.Heights[2]; math.Abs(height-100) > 0.01 {
			t.Errorf("%s is %v%% high", l.Name, height)
		}
	}
	if drawn != r.Counts.Ternary {
		t.Errorf("%d weights are drawn, %d are ternary", drawn, r.Counts.Ternary)
	}
	var html strings.Builder
	if err := HTML(&html, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"layer 0: −1 ", "layer 1: −1 "} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
