//go:build !linux

package process

import "os/exec"

// startMortal starts a command. Only its standard input ends with this process.
func startMortal(command *exec.Cmd) error { return command.Start() }
