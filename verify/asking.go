package verify

import (
	"slices"
	"strings"

	"slipway/manifest"
	"slipway/manifest/safetensors"
	"slipway/verify/audit"
	"slipway/verify/modelconfig"
	"slipway/verify/scan"
	"slipway/verify/ternary"
)

// asking says what to look for in stored tensors, by what the quantization
// manifest and the contract say of them.
type asking struct {
	digests    bool // of all tensors
	asymmetric bool // whether the task takes such literal weights
	sub        *submission
	contract   *manifest.Contract
	suspects   *audit.Suspects
	pinned     map[int64]bool // the sizes of the contract's matrices whose digests it knows
}

func newAsking(sub *submission, contract *manifest.Contract, digests, asymmetric bool) asking {
	a := asking{digests: digests, asymmetric: asymmetric, sub: sub, contract: contract, pinned: map[int64]bool{}}
	if sub.quantization != nil {
		a.suspects = audit.NewSuspects(*sub.quantization)
	}
	if contract != nil {
		for _, tensor := range contract.Tensors {
			if tensor.SHA256 != "" && tensor.Role == manifest.RoleBackbone && len(tensor.Shape) > 1 {
				a.pinned[tensor.Elements()] = true
			}
		}
	}
	return a
}

func (a asking) ask(shard string, header *safetensors.Header) func(safetensors.Tensor) scan.Questions {
	// Head and embedding are compared only where one should serve as the other.
	tied := slices.ContainsFunc(a.sub.models, func(m model) bool { return m.config != nil && m.config.Tied })
	headStored := tied && a.sub.storesHead()
	for _, t := range header.Tensors {
		headStored = headStored || tied && manifest.RoleOf(t.Name) == manifest.RoleHead
	}
	return func(t safetensors.Tensor) scan.Questions {
		uses := a.sub.uses[manifest.StoredTensor{File: shard, Tensor: t.Name}]
		q := a.byUse(t, uses)
		q.Digest = a.digests || a.wantsDigest(t.Name, headStored) || q.Codes == nil && a.pinned[t.Elements()]
		for _, use := range uses { // what the tensor is called in the quantization manifest
			q.Digest = q.Digest || a.wantsDigest(use.Entry, headStored)
		}
		if a.suspects != nil && q.Codes == nil && !q.Scales && q.Pair == 0 {
			q.Keep = a.suspects.Samples(t, q.Literal != nil)
			if q.Literal == nil {
				q.Signs, q.Halves = a.suspects.Rows(t), true
			}
		}
		return q
	}
}

// byUse asks by the first use of a tensor that has something to ask; a second
// one is an error of its own.
func (a asking) byUse(t safetensors.Tensor, uses []audit.Use) (q scan.Questions) {
	for _, use := range uses {
		entry := a.sub.quantization.Tensors[use.Entry]
		switch use.As {
		case audit.AsCodes:
			if l, err := ternary.LayoutOf(entry); err == nil && l.Codes.DType == t.DType && slices.Equal(l.Codes.Shape, t.Shape) {
				q.Codes, q.Keep = &l, audit.CodeSamples(&l)
				return q
			}
		case audit.AsScales:
			q.Scales = true
			if entry.Biases != nil {
				q.Pair = scan.AsScales
			}
			return q
		case audit.AsBiases:
			q.Pair = scan.AsBiases
			return q
		default:
			if entry.Kind == manifest.KindLiteral && slices.Equal(entry.Shape, t.Shape) {
				q.Literal, q.Asymmetric = audit.LiteralSizes(entry), a.asymmetric
				return q
			}
		}
	}
	return q
}

// wantsDigest says which tensors are hashed on their own: those whose digest
// the contract knows, and embedding and head where they are to be compared.
func (a asking) wantsDigest(name string, headStored bool) bool {
	if a.contract != nil {
		long := modelconfig.LongPrefix + strings.TrimPrefix(name, modelconfig.ShortPrefix)
		if a.contract.Tensors[name].SHA256 != "" || a.contract.Tensors[long].SHA256 != "" {
			return true
		}
	}
	role := manifest.RoleOf(name)
	return headStored && (role == manifest.RoleHead || role == manifest.RoleEmbedding)
}
