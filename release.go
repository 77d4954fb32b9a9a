//go:build release

package main

import _ "embed"

// A release is built in two steps, so that bundling needs no Go:
//
//	go run . build --out dist/submission
//	cp dist/submission/runtime/serve dist/serve-cpu
//	go build -tags release -o slipway .
//
//go:embed dist/serve-cpu
var serveCPU []byte

func init() { runtimes = map[string][]byte{"cpu": serveCPU} }
