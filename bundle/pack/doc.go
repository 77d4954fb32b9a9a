// Package pack rewrites checkpoints without changing a value: ternary weights
// that are stored as floating-point numbers become two-bit codes and scales, a
// head that repeats the tied embedding is left out, and shards are cut to a size.
//
// A tensor is packed where each of its scale units, the largest of the whole
// tensor, a row, or a group of 256, 128, 64 or 32 inputs that holds, has values
// -a, 0 and +a only, compared bit for bit. The scale is a, in the tensor's own
// type, so that nothing is rounded; only the sign of a negative zero is lost,
// and counted. A tensor that is nearly ternary is refused with the place where
// it is not.
//
// The work is done in steps:
//
//	ReadCheckpoint  folder               -> names, headers, documents
//	Look            checkpoint           -> Survey: what is ternary, by which unit; weights are read
//	Arrange         checkpoint + Survey  -> Output: shards as recipes over the checkpoint's bytes; pure
//	Shard.Open      recipe               -> the bytes of a shard, from one pass over its sources
//
// Folder and Undo do all of it from folder to folder. The output depends on the
// tensors' names, types, shapes and values and on the wishes, and not on the
// number of cores nor, shard names apart, on how the source was sharded. Memory
// is bounded by blocks, not by tensors.
package pack
