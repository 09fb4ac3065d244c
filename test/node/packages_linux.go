package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/samplecrd/network-controller/test/internal/debian"
)

// packages are what has to be installed; the rest comes with them. Other versions
// of containerd and runc may want another configuration.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "iproute2"}

// checkHost returns an error when the packages cannot be installed here.
func checkHost() error {
	if !debian.CanInstall() {
		return fmt.Errorf("%w: a node takes containerd and runc from the packages of Debian %s, and root", errSkipped, debian.Version)
	}
	return nil
}

// installPackages installs the packages that are missing.
func installPackages(ctx context.Context) error {
	return debian.Install(ctx, func(missing []string) {
		tell("Installing %s.", strings.Join(missing, ", "))
	}, packages...)
}
