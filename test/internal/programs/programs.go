// Package programs has what the programs in hack have in common that run other
// programs: how these end, what they said last, which folder belongs to whom.
package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// ExitCode returns an exit code as a shell does.
func ExitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		return StatusCode(status)
	}
	return state.ExitCode()
}

// StatusCode does so for a process that was waited for by hand.
func StatusCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// NotAnExit returns an error of Wait, unless it just says that the program ended
// with an exit code.
func NotAnExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// LastLines returns the last lines of a text, indented.
func LastLines(text []byte) string {
	const lines = 20
	all := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// Lock opens a file, which it makes if need be, and locks it as syscall.Flock
// does: with syscall.LOCK_NB, the error is syscall.EWOULDBLOCK where another
// process has it. Closing the file releases the lock. The programs that this
// process starts don't inherit it.
func Lock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}

// Poll calls a function again and again until it says that what is waited for
// has come, or returns an error. Where the context ends first, it returns why.
func Poll(ctx context.Context, every time.Duration, come func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := come(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
