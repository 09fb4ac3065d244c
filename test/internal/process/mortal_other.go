//go:build !linux

package process

import "os/exec"

// StartMortal starts a command. Other kernels than that of Linux do not kill it.
func StartMortal(command *exec.Cmd) error { return command.Start() }
