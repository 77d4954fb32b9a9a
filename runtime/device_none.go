//go:build !cuda

package main

// backend is the most that this build can compute on.
const backend = "cpu"
