package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// debian is the version whose packages this is known to work with. Later ones
// have a Neutron that is started in another way.
const debian = "12"

// packages are what has to be installed; the rest comes with them.
var packages = []string{"neutron-server", "keystone", "uwsgi-core", "uwsgi-plugin-python3"}

// errSkipped says that this host cannot be used, so that nothing was tried.
var errSkipped = errors.New("skipped")

// checkHost returns an error when the packages cannot be installed here.
func checkHost() error {
	release := map[string]string{}
	if file, err := os.Open("/etc/os-release"); err == nil && runtime.GOOS == "linux" {
		defer func() { _ = file.Close() }()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), "=")
			release[name] = strings.Trim(value, `"`)
		}
	}
	if release["ID"] != "debian" || release["VERSION_ID"] != debian || os.Geteuid() != 0 {
		return fmt.Errorf("%w: Keystone and Neutron are installed from the packages of Debian %s, which takes that system, and root", errSkipped, debian)
	}
	return nil
}

// installPackages installs the packages that are missing.
func installPackages(ctx context.Context) error {
	missing, err := missingPackages(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	tell("Installing %s (about a minute).", strings.Join(missing, ", "))
	restore, err := keepServicesDown()
	if err != nil {
		return err
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

// missingPackages returns those of the packages that are not installed.
func missingPackages(ctx context.Context) ([]string, error) {
	query := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, packages...)...)
	output, err := query.Output() // it fails when there are packages that it does not know
	if err := notAnExit(err); err != nil {
		return nil, fmt.Errorf("looking for installed packages: %w", err)
	}
	lines := strings.Split(string(output), "\n")
	return slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(lines, name+" installed")
	}), nil
}

// packageVersion returns the version of an installed package.
func packageVersion(ctx context.Context, name string) (string, error) {
	output, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", name).Output()
	if err != nil {
		return "", fmt.Errorf("finding the version of %s: %w", name, err)
	}
	return string(output), nil
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
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, lastLines(bytes.TrimSpace(output)))
	}
	return nil
}

// keepServicesDown keeps the packages from starting services of their own while
// they are installed.
func keepServicesDown() (restore func(), err error) {
	const path = "/usr/sbin/policy-rc.d" // what it says is asked before a service is started
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil // whoever made it has a policy, which is not ours to change
	}
	if err != nil {
		return nil, fmt.Errorf("keeping services down: %w", err)
	}
	restore = func() { _ = os.Remove(path) }
	_, err = file.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, file.Close()); err != nil {
		restore()
		return nil, fmt.Errorf("keeping services down: %w", err)
	}
	return restore, nil
}
