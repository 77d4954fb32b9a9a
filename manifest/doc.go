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
package manifest

// RawThreshold is the size in bytes from which a file is a layer of its own.
const RawThreshold = 16 << 20
