// Package kernels holds the operations of which a model's step is made, as
// plain-Go references in float32. They are what runs on a machine without a
// GPU, and the oracle that a GPU kernel is tested against.
//
// A [Program] is bound once: activations, caches, states and workspace are
// allocated, and operations are appended in order. [Program.Run] then executes
// them over the rows that its [Batch] describes, and allocates nothing. Shapes
// never change after binding; what changes from step to step (rows, positions,
// page tables, seeds) stands in the Batch at one address. Activations are
// opaque to the model: operations alone know how they are stored. A [Matrix] is
// a shared handle: a tied embedding serves [Program.Embed] and the head.
//
// # Operations
//
// Tolerances are relative errors ||d||/||ref|| against float64 on the same
// inputs, and are what the tests hold.
//
//	op            computes, per row                                            tolerance
//	Embed         x = row Token of a matrix                                    exact (packed, FP8: one rounding)
//	Norm          y = w' * x / sqrt(mean(x^2)+eps); w' = w or 1+w              1e-6
//	AddNorm       x += d, then Norm                                            1e-6
//	Linear        y_i = W_i x for several matrices over one input              1e-6
//	SiLUMul       y = silu(gate) * up                                          1e-6
//	Rotary        cosines and sines of the row's position                      5e-4 at position 4096 (the angle is a float32)
//	HeadNormRope  norm per head of q and k, rotation of the leading            1e-6
//	              dimensions, half-split; k and v into the paged cache
//	Attention     softmax(q k / sqrt(d)) v over positions 0..p of the row's    3e-6
//	              slot, optionally times sigmoid(gate)
//	DeltaNet      depthwise causal convolution with SiLU, gated delta rule,    3e-6 (chunks: 1e-5)
//	              gated norm; advances the slot's convolution tail and state
//	Select        y = the rows whose logits are wanted                         exact
//	Draw          a token for each such row, see [Draw]                        exact given the logits
//
// # Devices
//
// In a build with the tag cuda, [Device.NewProgram] makes programs whose
// operations are kernels on a GPU, one or two each, under the same tests. Their
// orders of summation stand in the sources below the folder cuda: multiplications
// and additions are fused there, and DeltaNet is the recurrence throughout.
//
// # Order of summation in plain Go
//
// Every sum has one order that depends on shapes and on the row's own position
// alone, never on the batch, the slot, the page numbers or the number of
// workers; a row's result is therefore bitwise the same in any company.
//
//   - Linear: inputs in blocks of at most 128 that do not cross a scale's group.
//     Within a block, lane k mod 8 sums w*x in ascending k, from zero. Each block's
//     lanes, times the scale (1 for dense matrices), are added to eight running
//     lanes in ascending order. The lanes are added as ((0+4)+(2+6))+((1+5)+(3+7)).
//     Products and sums are rounded separately: no fused multiply-add.
//   - Norm, and q k in Attention: as one block without a scale.
//   - Attention: keys in splits of 256 (see [SplitKeys]); each split has its own
//     maximum and sum, values are added in ascending position; splits are joined in
//     ascending order.
//   - DeltaNet: one token of a slot is one step of the recurrence. Several tokens
//     go in chunks that end at absolute multiples of 64 (see [ChunkTokens]); a chunk
//     of one token is a step of the recurrence too.
package kernels
