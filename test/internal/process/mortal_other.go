//go:build !linux

package process

import "os/exec"

// StartMortal starts a command. Only its standard input ends with this process.
func StartMortal(command *exec.Cmd) error { return command.Start() }
