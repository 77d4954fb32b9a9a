package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// DecodeContract reads a contract, strictly. A name may hold ranges of whole
// numbers, "layers.{0..23}.mlp.experts.{0..255}.up_proj.weight": it stands for
// all names that it gives, each with the dtype, shape and role. So the contract
// of eighteen thousand tensors is a page; no digest can stand for several.
func DecodeContract(data []byte) (Contract, error) {
	if err := checkMembers(data, maxContractTensors); err != nil {
		return Contract{}, err
	}
	var c Contract
	if err := DecodeStrict(data, &c); err != nil {
		return Contract{}, err
	}
	if err := c.expand(); err != nil {
		return Contract{}, err
	}
	return c, c.check()
}

var nameRange = regexp.MustCompile(`\{([0-9]{1,6})\.\.([0-9]{1,6})\}`)

// maxContractTensors bounds what ranges can make of a short file.
const maxContractTensors = 1 << 18

// expand replaces the names that hold ranges.
func (c *Contract) expand() error {
	expanded := map[string]ContractTensor{}
	for _, pattern := range c.Names() {
		tensor := c.Tensors[pattern]
		if nameRange.MatchString(pattern) && tensor.SHA256 != "" {
			return fmt.Errorf("tensor %q: a digest cannot stand for a range of tensors", Clip(pattern))
		}
		names, err := namesOf(pattern, maxContractTensors-len(expanded))
		if err != nil {
			return fmt.Errorf("tensor %q: %w", Clip(pattern), err)
		}
		for _, name := range names {
			if _, twice := expanded[name]; twice {
				return fmt.Errorf("tensor %q: %q is listed twice", Clip(pattern), Clip(name))
			}
			expanded[name] = tensor
		}
	}
	c.Tensors = expanded
	return nil
}

// namesOf lists the names that a pattern stands for, at most so many.
func namesOf(pattern string, limit int) ([]string, error) {
	at := nameRange.FindStringSubmatchIndex(pattern)
	if at == nil {
		if limit < 1 {
			return nil, fmt.Errorf("more than %d tensors", maxContractTensors)
		}
		return []string{pattern}, nil
	}
	first, _ := strconv.Atoi(pattern[at[2]:at[3]]) // six digits always fit
	last, _ := strconv.Atoi(pattern[at[4]:at[5]])
	if last < first {
		return nil, fmt.Errorf("the range %s ends before it begins", pattern[at[0]:at[1]])
	}
	rest, err := namesOf(pattern[at[1]:], limit)
	if err != nil {
		return nil, err
	}
	if count := last - first + 1; count > limit/len(rest) {
		return nil, fmt.Errorf("more than %d tensors", maxContractTensors)
	}
	var names []string
	for n := first; n <= last; n++ {
		for _, end := range rest {
			names = append(names, pattern[:at[0]]+strconv.Itoa(n)+end)
		}
	}
	return names, nil
}

// RoleOf tells the part that a tensor plays by its name, as the transformers
// library names the parameters of the model families that slipway knows.
func RoleOf(name string) Role {
	switch name {
	case "model.embed_tokens.weight", "model.language_model.embed_tokens.weight", "language_model.model.embed_tokens.weight",
		"model.word_embeddings.weight":
		return RoleEmbedding
	case "lm_head.weight", "language_model.lm_head.weight":
		return RoleHead
	}
	for _, prefix := range []string{"model.visual.", "visual."} {
		if strings.HasPrefix(name, prefix) {
			return RoleVision
		}
	}
	if strings.HasPrefix(name, "mtp.") {
		return RoleMTP
	}
	return RoleBackbone
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
