package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samplecrd/network-controller/test/internal/debian"
)

// packages are what has to be installed; the rest comes with them. Later versions
// of Debian have a Neutron that is started in another way.
var packages = []string{"neutron-server", "keystone", "uwsgi-core", "uwsgi-plugin-python3"}

// errSkipped says that this host cannot be used, so that nothing was tried.
var errSkipped = errors.New("skipped")

// checkHost returns an error when the packages cannot be installed here.
func checkHost() error {
	if !debian.CanInstall() {
		return fmt.Errorf("%w: Keystone and Neutron are installed from the packages of Debian %s, which takes that system, and root", errSkipped, debian.Version)
	}
	return nil
}

// installPackages installs the packages that are missing.
func installPackages(ctx context.Context) error {
	return debian.Install(ctx, func(missing []string) {
		tell("Installing %s (about a minute).", strings.Join(missing, ", "))
	}, packages...)
}
