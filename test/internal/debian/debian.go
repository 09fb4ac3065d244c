// Package debian installs packages of Debian 12 for the programs in test that run
// real servers. It needs root. The packages stay installed.
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

	"github.com/samplecrd/network-controller/test/internal/require"
)

// version is the version whose packages are known to work.
const (
	version  = "12"
	codename = "bookworm"
)

// Check returns an error if packages cannot be installed on this machine. It is a
// require.ErrSkipped.
func Check() error {
	if os.Geteuid() == 0 && isDebian() {
		return nil
	}
	return fmt.Errorf("%w: the servers are installed from the packages of Debian %s, by root", require.ErrSkipped, version)
}

func isDebian() bool {
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
	return release["ID"] == "debian" && release["VERSION_ID"] == version
}

// Install installs those of the packages that are missing, and prints their names
// before. No service of theirs is started.
func Install(ctx context.Context, packages ...string) error {
	missing, err := missingOf(ctx, packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	fmt.Fprintf(os.Stderr, "Installing %s (about a minute).\n", strings.Join(missing, ", "))
	restore, err := keepServicesDown()
	if err != nil {
		return fmt.Errorf("keeping services down: %w", err)
	}
	defer restore()
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if err := aptGet(ctx, install...); err == nil || ctx.Err() != nil {
		return err
	}
	// The package lists are missing or too old.
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, install...)
}

// Extract extracts packages of another release, and those that they depend on, into a
// folder that becomes the root folder of their programs. It runs none of their scripts
// and mounts nothing. They come from where this machine gets its own packages.
func Extract(ctx context.Context, release, folder string, packages ...string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := Install(ctx, "mmdebstrap"); err != nil {
		return err
	}
	mirrors, err := linesOf(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
		"Release: "+codename)
	if err != nil {
		return err
	}
	settings, err := linesOf(ctx, "apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`)
	if err != nil {
		return err
	}
	// Python's requests needs the file, which a script of ca-certificates would make.
	const certificates = `cat "$1"/usr/share/ca-certificates/mozilla/*.crt >"$1/etc/ssl/certs/ca-certificates.crt"`
	args := []string{
		"--mode=root", "--variant=extract", "--format=directory", "--extract-hook=" + certificates,
		"--include=base-files,ca-certificates," + strings.Join(packages, ","),
	}
	for _, setting := range settings {
		if strings.HasPrefix(setting, "Acquire::") && !strings.HasPrefix(setting, "Acquire::IndexTargets") {
			args = append(args, "--aptopt="+setting)
		}
	}
	fmt.Fprintf(os.Stderr, "Extracting %s of Debian %s (about a minute).\n", strings.Join(packages, ", "), release)
	unfinished := folder + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	args = append(args, release, unfinished, mirrors[0])
	output, err := exec.CommandContext(ctx, "mmdebstrap", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("extracting packages of %s: %w\n%s", release, err, bytes.TrimSpace(output))
	}
	return os.Rename(unfinished, folder)
}

// linesOf returns the lines that a command prints, which are at least one.
func linesOf(ctx context.Context, name string, args ...string) ([]string, error) {
	output, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", name, err)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n"), nil
}

// missingOf returns those of the packages that are not installed.
func missingOf(ctx context.Context, packages []string) ([]string, error) {
	query := exec.CommandContext(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"},
		packages...)...)
	output, err := query.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // the exit code is not 0 if it does not know a package
		return nil, fmt.Errorf("looking for installed packages: %w", err)
	}
	lines := strings.Split(string(output), "\n")
	return slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(lines, name+" installed")
	}), nil
}

// aptGet runs apt-get. It is not interrupted: a half-installed package would be
// in the way of the next run.
func aptGet(ctx context.Context, args ...string) error {
	args = append([]string{"-q", "-o", "DPkg::Lock::Timeout=400"}, args...)
	command := exec.Command("apt-get", args...) //nolint:noctx // see above
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

// keepServicesDown keeps packages from starting their services while they are
// installed.
func keepServicesDown() (restore func(), err error) {
	const path = "/usr/sbin/policy-rc.d" // dpkg's scripts run it before they start a service
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil // the machine has a policy, which we don't change
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
