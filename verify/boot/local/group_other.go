//go:build !unix

package local

import "os/exec"

// slipway does not run here; this lets it be compiled to say so.

func ownGroup(*exec.Cmd) {}

func groupLives(*exec.Cmd) bool { return false }

func endGroup(command *exec.Cmd, _ bool) { _ = command.Process.Kill() }
