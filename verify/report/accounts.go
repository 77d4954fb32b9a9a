package report

import (
	"slices"
	"strings"
)

// Accounts are, beside Counts and Tensors, what the audit of the stored tensors
// rests on and how each of them is accounted for. Errors and warnings about
// them are the findings of the gates. Names are in the order of people.
type Accounts struct {
	Contract  string `json:"contract_digest,omitempty"` // of the trusted contract in its canonical form; "" where none was given
	Manifest  string `json:"manifest_digest"`           // of quantization_manifest.json
	Inventory string `json:"inventory_digest,omitempty"`

	Missing      []string    `json:"missing"`      // tensors of the base that are not there and should be
	Unreferenced []StoredRef `json:"unreferenced"` // stored tensors that no entry refers to
	Double       []StoredRef `json:"double"`       // stored tensors that serve more than once, but for a tied head
	Unchanged    []string    `json:"unchanged"`    // float entries with the digests of the base's tensors, where the contract has them
}

// StoredRef is a stored tensor, and the entries that refer to it.
type StoredRef struct {
	File   string   `json:"file"`
	Tensor string   `json:"tensor"`
	Uses   []string `json:"uses,omitempty"` // entry and what the tensor serves it as
}

// Sort puts the lists in order, and makes those that are nil empty.
func (a *Accounts) Sort() {
	for _, names := range []*[]string{&a.Missing, &a.Unchanged} {
		*names = slices.AppendSeq([]string{}, slices.Values(*names))
		slices.SortFunc(*names, CompareNatural)
	}
	for _, refs := range []*[]StoredRef{&a.Unreferenced, &a.Double} {
		*refs = slices.AppendSeq([]StoredRef{}, slices.Values(*refs))
		slices.SortFunc(*refs, func(x, y StoredRef) int {
			if order := strings.Compare(x.File, y.File); order != 0 {
				return order
			}
			return CompareNatural(x.Tensor, y.Tensor)
		})
	}
}
