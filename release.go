//go:build release

package main

import (
	"embed"
	"io/fs"
)

// A release is built in steps, so that bundling needs neither Go nor gcc. The
// runtime with CUDA may be left out:
//
//	go run . build --out dist/submission
//	cp dist/submission/runtime/serve dist/serve-cpu
//	go run . build --out dist/submission examples/abacus/ternary-cuda.hcl
//	cp dist/submission/runtime/serve dist/serve-cuda
//	go build -tags release -o slipway .
//
//go:embed dist/serve-*
var built embed.FS

func init() {
	var err error
	if runtimes, err = fs.Sub(built, "dist"); err != nil {
		panic(err) // the name is valid
	}
}
