package profiles

import (
	"embed"
	"io/fs"
	"strings"
)

// shipped holds the profiles and the contracts of the bases they pin. The
// pattern names .hcl and .json files.
//
//go:embed *.[hj]*
var shipped embed.FS

// Files returns the folder of the shipped profiles and their contracts.
func Files() fs.FS { return shipped }

// Shipped returns the source of a shipped profile.
func Shipped(name string) ([]byte, bool) {
	data, err := shipped.ReadFile(name + ".hcl")
	return data, err == nil
}

const contractSuffix = ".contract.json"

// Contract returns the source of a shipped contract: "maple" of
// maple.contract.json. A profile may pin it, and a person may ask for it.
func Contract(name string) ([]byte, bool) {
	data, err := shipped.ReadFile(name + contractSuffix)
	return data, err == nil
}

// Contracts returns the names of the shipped contracts, sorted.
func Contracts() []string { return namesWith(contractSuffix) }

// Names returns the names of the shipped profiles, sorted.
func Names() []string { return namesWith(".hcl") }

// namesWith returns what stands before a suffix in the names of shipped files.
func namesWith(suffix string) []string {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic(err) // the root of an embedded folder always reads
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names
}
