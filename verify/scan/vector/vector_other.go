//go:build !amd64 || purego

package vector

func countBlocks(p []byte, step int) Codes { return countCodesGo(p, step) }
func finiteBlocks([]byte, Float) int       { return 0 }
func literalBlocks([]byte, uint16) Run     { return Run{} }
