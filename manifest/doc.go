// Package manifest is the vocabulary of a bundle: digests, descriptors, the
// artifact manifest and its config, the inventory, the quantization manifest
// and the contract. Everything here is a value with a strict decoder and one
// canonical encoding; nothing here does input or output. This comment is the
// normative description of the format.
//
// # Bundle
//
// A bundle is a set of files. A file has a path, a mode (0644 or 0755), a size
// in bytes and content; it has no owner, no time and no links. Paths are
// relative, slash-separated and obey CheckPath; no two differ only in case or
// Unicode form. The file inventory.json lists every other file.
//
// # Set digest
//
// The set digest is sha256 over one line a file, inventory.json among them,
// sorted by the bytes of the path:
//
//	<64 hex digits of the file's sha256><space><space><path><newline>
//
// It is the same for a folder, a layout and a registry. In a folder:
//
//	find . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum -- | sha256sum
//
// # Artifact
//
// The artifact is an OCI image manifest (image-spec v1.1) of artifact type
// application/vnd.cncf.model.manifest.v1+json (CNCF model-spec). Its digest is
// the sha256 of its bytes; in an OCI layout that holds one bundle:
//
//	sha256sum "blobs/sha256/$(grep -o 'sha256:[0-9a-f]*' index.json | head -n 1 | cut -d: -f2)"
//
// The manifest is JSON with the keys schemaVersion (2), mediaType,
// artifactType, config, layers and annotations in this order, without
// insignificant space; keys of annotations are sorted. A decoder refuses keys
// that are unknown, given twice or spelled in another case. The only annotation
// of a manifest that slipway writes is slipway.set.digest, the set digest.
//
// Layers stand in the order of Kinds; within a kind first the raw layers sorted
// by path, then the tar layer, if the kind has small files. There are at most
// MaxLayers.
//
//   - A raw layer (media type application/vnd.cncf.model.<kind>.v1.raw) is one
//     file as it is. Its digest is the file's sha256, the number that model hubs
//     and package indexes publish too. Weight shards and the runtime
//     (runtime/serve) are always raw layers, and so is any file of RawThreshold
//     bytes or more. Files are never split.
//   - A tar layer (...v1.tar) holds the kind's other files, sorted by path, with
//     headers made of path, size, mode and type alone: ustar, with a PAX record
//     only for a path that ustar cannot hold; two zero blocks at the end.
//
// Every layer is annotated with org.cncf.model.filepath (for a tar layer
// <kind>.tar, which names no file) and org.cncf.model.file.metadata+json: an
// object with the keys name, mode, uid, gid, size, mtime and typeflag in this
// order, encoded like the manifest, whose owner is 0 and whose time is
// 1970-01-01T00:00:00Z. Nothing is compressed, so
// the config's diffIds repeat the layers' digests.
//
// Kinds: weight (shards), weight.config (model configuration, tokenizer,
// manifests, inventory.json), code (serve.sh, code, wheels, runtime), doc
// (DATA.md, provenance, logs).
//
// The config blob is model-spec's config.json without any time in it; precision
// is left out for ternary weights, for which the specification has no value.
//
// # Quantization manifest
//
// quantization_manifest.json names the base (base_model, base_revision) and has
// one entry in tensors for each logical tensor of the model: its kind, its shape
// (outputs first, inputs last) and the stored tensors that hold it.
//
//   - float: file and tensor name a tensor in full precision.
//   - literal: file and tensor name F16, BF16 or F32 weights of which every unit
//     is {-a, 0, +a}. The unit is what unit says, or group_size inputs; without
//     either, the largest of tensor, row, 256, 128, 64 and 32 inputs that fits.
//   - packed_2bit: codes and scales, and for some formats biases, name stored
//     tensors; format says how they lie. A code is -1, 0 or +1 times the scale
//     of its unit; a code that is none of them stands nowhere.
//
// The formats of packed entries, of which the first holds where none is given:
//
//	packed_2bit         codes U8 [..., K/4], lowest bits first along the inputs;
//	                    scales [..., K/group_size], [..., 1] with unit row, [1] with unit tensor
//	mlx_affine_2bit     codes U32 [..., K/16], lowest bits first along the inputs;
//	                    scales and biases [..., K/group_size], every bias -scale
//	mlx_row_alpha_2bit  codes as above; scales BF16 [...] without the last dimension
//	bitnet_u8           codes U8 [R, K] with R = ceil(N/4): a byte of row r holds rows r,
//	                    r+R, r+2R and r+3R, lowest bits first, code 0 from row N on; scales [1]
//	compressed_tensors_2bit
//	                    codes I32 [N, ceil(K/16)], lowest bits first along the inputs, rows
//	                    padded with code 0; scales as those of packed_2bit
//
// Codes 0, 1 and 2 are -1, 0 and +1; in compressed_tensors_2bit 1, 2 and 3 are.
//
// scale_dtype (F16, BF16, F32) and axis, where given, repeat what the stored
// tensors and the format say. A profile may give keys and kinds a task's own
// names (FieldNames).
//
// # Contract
//
// A contract lists a base's tensors by name: dtype, shape, role and, where they
// are known, the sha256 of their bytes. A name may hold ranges, {0..23}, and then
// stands for all the names that they give.
package manifest

// RawThreshold is the size in bytes from which a file is a layer of its own.
const RawThreshold = 16 << 20
