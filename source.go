package main

import (
	"embed"
	"io/fs"
)

// source is what the runtime is built from: its packages, those of this module
// that it imports, what the build for CUDA needs and was made with, and the
// module files. A bundle ships it as runtime/source.tar.
//
//go:embed go.mod go.sum LICENSE
//go:embed manifest/*.go manifest/safetensors/*.go
//go:embed runtime/*.go runtime/runtime.lock runtime/*/*.go runtime/*/*.s runtime/*/*.h runtime/*/*/*.go
//go:embed runtime/kernels/cuda internal/cudastub internal/generate/cuda/*.go internal/generate/kernels/*.go
var source embed.FS

// runtimes are the built runtimes that a release carries, serve-DEVICE each; a
// clone builds them. See release.go.
var runtimes fs.FS
