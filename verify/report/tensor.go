package report

// Tensor is what is known of one entry of the quantization manifest. What is
// said of scales and codes is of ternary ones.
type Tensor struct {
	Name       string       `json:"name"`
	Kind       string       `json:"kind"`
	Format     string       `json:"format,omitempty"` // of a packed tensor
	Role       string       `json:"role"`             // the part that it plays in the base; only a backbone is counted
	Shape      []int64      `json:"shape"`
	Unit       int64        `json:"unit,omitempty"`        // weights that share a scale; of a literal tensor that is not ternary, the fewest that were looked at
	SharedBy   string       `json:"shared_by,omitempty"`   // what such a unit is: tensor, row or group
	ScaleDType string       `json:"scale_dtype,omitempty"` // of the stored scales
	Histogram  *[4]int64    `json:"histogram,omitempty"`   // how often -1, 0, +1 and codes that are none of them stand; of a literal tensor, negative, zero and positive weights
	ScaleMin   string       `json:"scale_min,omitempty"`   // smallest and largest finite scale, or magnitude of a literal tensor
	ScaleMax   string       `json:"scale_max,omitempty"`   //
	ZeroScale  int64        `json:"zero_scale,omitempty"`  // units with scale zero
	Negative   int64        `json:"negative,omitempty"`    // negative scales
	NonFinite  int64        `json:"non_finite,omitempty"`  // NaN or infinite scales, or weights of a tensor that has none
	Stored     []StoredPart `json:"stored"`                // the stored tensors that hold it
}

// StoredPart is a stored tensor and what it serves as: codes, scales, biases or
// values. Digest is of its bytes, where it was taken.
type StoredPart struct {
	As     string `json:"as"`
	File   string `json:"file"`
	Tensor string `json:"tensor"`
	DType  string `json:"dtype,omitempty"` // "" where it is not there
	Digest string `json:"digest,omitempty"`
}
