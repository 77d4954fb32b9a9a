// Package config reads what people write in HCL: bundle.hcl and task profiles.
// It is the only importer of hcl and hands out plain Go values.
//
// Reading is strict. Only literal values are taken; an unknown argument or
// block, one given twice, a value outside its range and a path that leaves the
// folder are errors. All problems of a file are reported together, each with
// its place, the line it stands on and what to write instead; only a file that
// is not HCL at all is reported by its syntax errors alone.
//
// Paths are relative to the folder of bundle.hcl, slash-separated, and stay
// below it; "." is the folder itself. Whether they exist is seen when the
// bundle's files are listed, except for the two whose meaning depends on it:
// a profile's file and a quantization manifest.
package config
