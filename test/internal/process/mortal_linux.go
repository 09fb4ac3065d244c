package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starts receives the functions that start programs.
var starts = sync.OnceValue(func() chan func() {
	starts := make(chan func())
	go func() {
		// For the kernel, the parent is the thread that started a program. So one
		// thread, which stays until this process ends, starts all of them.
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// StartMortal starts a command that the kernel kills when this process ends.
func StartMortal(command *exec.Cmd) error {
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	result := make(chan error)
	starts() <- func() { result <- command.Start() }
	return <-result
}
