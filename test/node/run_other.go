//go:build !linux

package main

import (
	"fmt"

	"github.com/samplecrd/network-controller/test/internal/require"
)

func run(string, []string) (exitCode int, err error) {
	return 0, fmt.Errorf("%w: a node needs the namespaces of Linux", require.ErrSkipped)
}
