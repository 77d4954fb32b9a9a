// Package benchmarks measures building and verifying against a bare SHA-256 of
// the same files, in one run, and asserts how much memory they take. It has
// tests only; docs/benchmarks.md says how to run them and what came out.
package benchmarks
