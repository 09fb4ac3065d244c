//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
)

// Elsewhere nothing is started; see checkHost.

func dieWithParent(*syscall.SysProcAttr) {}

func redirectOutput(*os.File) error {
	return errors.ErrUnsupported
}
