package manifest

import (
	"fmt"
	"maps"
	"slices"
)

// Role is the part that a tensor of a base model plays.
type Role string

// The roles. Only the backbone is counted: embedding and head are excluded
// from the ternary fraction by the task's rules, vision and MTP tensors may be
// left out or kept unchanged.
const (
	RoleBackbone  Role = "backbone"
	RoleEmbedding Role = "embedding"
	RoleHead      Role = "head"
	RoleVision    Role = "vision"
	RoleMTP       Role = "mtp"
)

// Contract lists the tensors of a pinned base model: what a submission made
// from it must contain.
type Contract struct {
	Schema     int                       `json:"schema"`
	Repository string                    `json:"repository"`
	Revision   string                    `json:"revision"`
	TiedHead   bool                      `json:"tied_head"` // the embedding serves as head; no head is stored
	Tensors    map[string]ContractTensor `json:"tensors"`
}

// ContractTensor is one tensor of the base: safetensors dtype name, shape and
// role; SHA256 of its bytes where it is known.
type ContractTensor struct {
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Role   Role    `json:"role"`
	SHA256 string  `json:"sha256,omitempty"`
}

// Elements returns the product of the dimensions.
func (t ContractTensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Names returns the tensors' names in byte order.
func (c Contract) Names() []string { return slices.Sorted(maps.Keys(c.Tensors)) }

// Encode writes the canonical bytes.
func (c Contract) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return EncodeLines(c)
}

// DecodeContract reads a contract, strictly.
func DecodeContract(data []byte) (Contract, error) {
	var c Contract
	if err := DecodeStrict(data, &c); err != nil {
		return Contract{}, err
	}
	return c, c.check()
}

func (c Contract) check() error {
	if c.Schema != 1 {
		return fmt.Errorf("schema %d is not 1", c.Schema)
	}
	if len(c.Tensors) == 0 {
		return fmt.Errorf("tensors is empty")
	}
	roles := []Role{RoleBackbone, RoleEmbedding, RoleHead, RoleVision, RoleMTP}
	for _, name := range c.Names() {
		t := c.Tensors[name]
		if !slices.Contains(roles, t.Role) {
			return fmt.Errorf("tensor %q: role %q is not one of %v", Clip(name), Clip(string(t.Role)), roles)
		}
		total := int64(1)
		for _, d := range t.Shape {
			if d < 0 || (d > 0 && total > (1<<50)/d) {
				return fmt.Errorf("tensor %q: shape %v is out of range", Clip(name), t.Shape)
			}
			total *= d
		}
		if t.SHA256 != "" {
			if _, err := ParseHex(t.SHA256); err != nil {
				return fmt.Errorf("tensor %q: %w", Clip(name), err)
			}
		}
	}
	return nil
}
