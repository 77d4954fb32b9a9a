package bundle

import (
	"fmt"

	"slipway/bundle/config"
	"slipway/manifest"
)

// The declarations that a profile may require and slipway can write.
const (
	architecturePath     = "architecture.json"
	startingArtifactPath = "STARTING_ARTIFACT.json"
	backboneContractPath = "backbone_contract.json"
)

type baseReference struct {
	Label      string `json:"label"`
	Repository string `json:"repository"`
	Revision   string `json:"revision"`
}

type architectureFile struct {
	Schema          int             `json:"schema"`
	Base            []baseReference `json:"base"`
	AddedComponents []string        `json:"added_components"`
}

type startingArtifactFile struct {
	Schema    int             `json:"schema"`
	Artifacts []baseReference `json:"artifacts"`
}

// addDeclarations generates what the profile lets slipway write and no files
// block brought. They say what the base blocks say, and nothing else.
func (p *planner) addDeclarations() error {
	for _, required := range p.profile.Required {
		if !required.Generated || p.has(required.Path) || required.Path == manifest.InventoryPath {
			continue
		}
		data, err := p.declaration(required.Path)
		if err != nil {
			return err
		}
		p.plan.Files = append(p.plan.Files, PlannedFile{
			Path: required.Path, Mode: manifest.ModeFile, Size: int64(len(data)), Kind: kindOf(required.Path),
			Why: "generated: " + required.Why, content: data,
		})
	}
	return nil
}

func (p *planner) declaration(name string) ([]byte, error) {
	bases := []baseReference{}
	for _, b := range p.wanted.Bases {
		bases = append(bases, baseReference{b.Label, b.Repository.Value, b.Revision.Value})
	}
	switch name {
	case architecturePath:
		return withNewline(manifest.EncodeCanonical(architectureFile{1, bases, []string{}}))
	case startingArtifactPath:
		return withNewline(manifest.EncodeCanonical(startingArtifactFile{1, bases}))
	case backboneContractPath:
		contract, err := p.contract()
		if err != nil {
			return nil, err
		}
		return contract.Encode()
	}
	return nil, fmt.Errorf("profile %s wants %s generated, and this version cannot", p.profile.Name, name)
}

func withNewline(data []byte, err error) ([]byte, error) { return append(data, '\n'), err }

// contract is that of the base of the first weights block: the one its own
// block names, else the profile's.
func (p *planner) contract() (*manifest.Contract, error) {
	label := p.wanted.Weights[0].Base.Value
	if label == "" && len(p.wanted.Bases) == 1 {
		label = p.wanted.Bases[0].Label
	}
	for _, b := range p.wanted.Bases {
		if b.Label == label && b.Contract.Value != "" {
			return readContract(b, p.found.Documents[b.Contract.Value])
		}
	}
	for _, b := range p.profile.Bases {
		if b.Label == label && b.Contract != nil {
			return b.Contract, nil
		}
	}
	return nil, manifest.WithHint(fmt.Errorf("%s cannot be generated: no contract of base %q is known", backboneContractPath, label),
		"name it in the base block: contract = \"contract.json\"")
}

func readContract(b config.Base, data []byte) (*manifest.Contract, error) {
	contract, err := manifest.DecodeContract(data)
	if err != nil {
		return nil, fmt.Errorf("%s: read %s: %w", b.Contract.At, b.Contract.Value, err)
	}
	if contract.Repository != b.Repository.Value || contract.Revision != b.Revision.Value {
		return nil, fmt.Errorf("%s: %s is of %s@%s, the base is %s@%s", b.Contract.At, b.Contract.Value,
			contract.Repository, contract.Revision, b.Repository.Value, b.Revision.Value)
	}
	return &contract, nil
}
