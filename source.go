package main

import "embed"

// source is what the runtime is built from: its packages, those of this module
// that it imports, and the module files. A bundle ships it as
// runtime/source.tar.
//
//go:embed go.mod go.sum LICENSE
//go:embed manifest/*.go manifest/safetensors/*.go
//go:embed runtime/*.go runtime/runtime.lock runtime/*/*.go runtime/*/*.s runtime/*/*/*.go
var source embed.FS

// runtimes are the built runtimes that a release carries, by device; a clone
// builds them. See release.go.
var runtimes map[string][]byte
