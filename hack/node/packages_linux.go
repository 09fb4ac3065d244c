package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// packages are what has to be installed; the rest comes with them.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "iproute2"}

// debian12 is what /etc/os-release says there. Other versions of containerd and
// runc may want another configuration.
var debian12 = regexp.MustCompile(`(?m)^ID=debian$(?s:.*)^VERSION_ID="12"$|^VERSION_ID="12"$(?s:.*)^ID=debian$`)

// checkHost returns an error when the packages cannot be installed here.
func checkHost() error {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !debian12.Match(release) || os.Geteuid() != 0 {
		return fmt.Errorf("%w: a node takes containerd and runc from the packages of Debian 12, and root", errSkipped)
	}
	return nil
}

// installPackages installs the packages that are missing.
func installPackages(ctx context.Context) error {
	query := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, packages...)...)
	output, err := query.Output() // it fails when there are packages that it does not know
	if err := notAnExit(err); err != nil {
		return fmt.Errorf("looking for installed packages: %w", err)
	}
	installed := strings.Split(string(output), "\n")
	missing := slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(installed, name+" installed")
	})
	if len(missing) == 0 {
		return nil
	}
	tell("Installing %s.", strings.Join(missing, ", "))
	restore, err := keepServicesDown()
	if err != nil {
		return fmt.Errorf("keeping services down: %w", err)
	}
	defer restore()
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if err := aptGet(ctx, install...); err == nil || ctx.Err() != nil {
		return err
	}
	// The lists of packages are missing, or too old.
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, install...)
}

// aptGet runs apt-get. Nothing but itself ends it: a half-installed package would
// be in everybody's way.
func aptGet(ctx context.Context, args ...string) error {
	command := exec.Command("apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=400"}, args...)...) //nolint:noctx // see above
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, lastLines(output))
	}
	return nil
}

// keepServicesDown keeps the packages from starting a containerd of the machine
// when they are installed.
func keepServicesDown() (restore func(), err error) {
	const path = "/usr/sbin/policy-rc.d" // what it says is asked before a service is started
	if _, err := os.Stat(path); err == nil {
		return func() {}, nil // whoever made it has a policy, which is not ours to change
	}
	err = os.WriteFile(path, []byte("#!/bin/sh\nexit 101\n"), 0o755)
	restore = func() { _ = os.Remove(path) }
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return restore, nil
}
