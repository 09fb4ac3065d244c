// Package debian installs packages of Debian 12 for the programs in hack that
// run real servers. It takes root, and leaves the packages where they are.
package debian

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Version is the version whose packages are known to work.
const Version = "12"

// CanInstall reports whether packages can be installed here: it is that Debian, and
// we are root.
func CanInstall() bool {
	file, err := os.Open("/etc/os-release")
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	release := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		release[name] = strings.Trim(value, `"`)
	}
	return release["ID"] == "debian" && release["VERSION_ID"] == Version && os.Geteuid() == 0
}

// Install installs those of the packages that are missing, after it has told
// which. No service of theirs is started.
func Install(ctx context.Context, tell func(missing []string), packages ...string) error {
	missing, err := missingOf(ctx, packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	tell(missing)
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

// VersionOf returns the version of an installed package.
func VersionOf(ctx context.Context, name string) (string, error) {
	output, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", name).Output()
	if err != nil {
		return "", fmt.Errorf("finding the version of %s: %w", name, err)
	}
	return string(output), nil
}

// missingOf returns those of the packages that are not installed.
func missingOf(ctx context.Context, packages []string) ([]string, error) {
	query := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, packages...)...)
	output, err := query.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // it ends with an exit code where there are packages that it does not know
		return nil, fmt.Errorf("looking for installed packages: %w", err)
	}
	lines := strings.Split(string(output), "\n")
	return slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(lines, name+" installed")
	}), nil
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
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, bytes.TrimSpace(output))
	}
	return nil
}

// keepServicesDown keeps packages from starting services of their own while they
// are installed.
func keepServicesDown() (restore func(), err error) {
	const path = "/usr/sbin/policy-rc.d" // what it says is asked before a service is started
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil // whoever made it has a policy, which is not ours to change
	}
	if err != nil {
		return nil, err
	}
	restore = func() { _ = os.Remove(path) }
	_, err = file.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, file.Close()); err != nil {
		restore()
		return nil, err
	}
	return restore, nil
}
