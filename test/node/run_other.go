//go:build !linux

package main

import "fmt"

func run(string, []string) (exitCode int, err error) {
	tell("A node takes the namespaces of Linux.")
	return exitFailed, fmt.Errorf("%w: this is no Linux", errSkipped)
}
