package main

import (
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill a process when the thread ends that started
// it.
func dieWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGKILL
}

// redirectOutput lets all that this process writes go to a file.
func redirectOutput(file *os.File) error {
	for _, output := range []*os.File{os.Stdout, os.Stderr} {
		if err := syscall.Dup3(int(file.Fd()), int(output.Fd()), 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return nil
}
