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

// Names returns the names of the shipped profiles, sorted.
func Names() []string {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic(err) // the root of an embedded folder always reads
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".hcl"); ok {
			names = append(names, name)
		}
	}
	return names
}
