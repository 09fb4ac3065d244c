// Command openstack starts a real Keystone and two real Neutrons from Debian's
// packages, for tests of what only the real ones do:
//
//	build/bin/openstack                         # prints what to export, and runs until Ctrl-C
//	build/bin/openstack exec -- COMMAND ARGS…
//
// The second one starts them for one command, which gets their addresses in its
// environment (see environment below), and stops them when the command ends. Its exit
// code is that of the command. `make openstack` builds and runs this program.
//
// OPENSTACK_RELEASE=trixie starts those of Debian 13, OPENSTACK_RELEASE=sid those of
// Debian unstable.
//
// It needs Debian 12 and root, because it installs packages. On other systems the
// exit code is 3 and nothing was changed. If TEST_REQUIRE_ALL=yes is set, the exit
// code is 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/test/internal/debian"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/require"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// packages must be installed; others come with them.
var packages = []string{"neutron-server", "keystone", "uwsgi-core", "uwsgi-plugin-python3"}

func main() {
	exitCode, err := run(os.Args[1:])
	require.Exit("openstack", exitCode, err)
}

// run starts the servers, and stops them when the command ends, or at a signal. If this
// process is killed, the kernel kills them, and the next run removes their folder.
func run(args []string) (exitCode int, err error) {
	var command []string
	switch {
	case len(args) > 2 && args[0] == "exec" && args[1] == "--":
		command = args[2:]
		if _, err := exec.LookPath(command[0]); err != nil {
			return 0, fmt.Errorf("finding the command: %w", err)
		}
	case len(args) > 0:
		fmt.Fprintln(os.Stderr, "usage: openstack [exec -- COMMAND ARGS…]")
		return require.ExitUsage, nil
	}
	received := process.Signals()
	ctx, started := signal.NotifyContext(context.Background(), process.StopSignals...)
	defer started()
	c, err := prepare(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.folder.Remove()) }()
	defer c.stop()
	if err := c.start(ctx); err != nil {
		return 0, err
	}
	if len(command) == 0 {
		// OpenStack's own clients do not look for secure.yaml beside clouds.yaml.
		for _, line := range append(c.environment(), "OS_CLIENT_SECURE_FILE="+filepath.Join(c.dir, "secure.yaml")) {
			name, value, _ := strings.Cut(line, "=")
			fmt.Printf("export %s='%s'\n", name, value)
		}
		<-ctx.Done()
		return 0, nil
	}
	program := exec.Command(command[0], command[1:]...) //nolint:noctx // it gets signals
	inherited := slices.DeleteFunc(os.Environ(), func(line string) bool { return strings.HasPrefix(line, "OS_") })
	program.Env = slices.Concat(inherited, c.environment())
	return process.Run(program, received)
}

// prepare installs the packages, one process at a time, and makes the run folder.
func prepare(ctx context.Context) (*cloud, error) {
	if err := debian.Check(); err != nil {
		return nil, err
	}
	module, err := runfolder.ModuleRoot()
	if err != nil {
		return nil, err
	}
	build := filepath.Join(module, "build")
	lock, err := runfolder.Lock(ctx, filepath.Join(build, "openstack-lock"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	c := &cloud{}
	if release := os.Getenv(releaseVariable); release != "" {
		c.root = filepath.Join(build, "openstack-"+release)
		err = debian.Extract(ctx, release, c.root, packages...)
	} else {
		err = debian.Install(ctx, packages...)
	}
	if err != nil {
		return nil, err
	}
	if c.folder, err = runfolder.New(ctx, filepath.Join(build, "run"), "openstack-*", os.RemoveAll); err != nil {
		return nil, fmt.Errorf("making a run folder: %w", err)
	}
	c.dir = c.folder.Path
	return c, nil
}

// cloudNames are the clouds in clouds.yaml. The first one is for the controller.
const cloudNames = "ours ours-app short other-tenant admin"

// environment returns the variables of a program that uses the cloud, as NAME=value.
// They contain no secret.
func (c *cloud) environment() []string {
	return []string{
		// A Neutron without authentication.
		"NEUTRON_ENDPOINT=" + c.neutronNoAuth.URL(),
		"NEUTRON_SET_QUOTAS=1", // the command is its only user
		// The clouds with Keystone, and the default.
		"OS_CLIENT_CONFIG_FILE=" + filepath.Join(c.dir, "clouds.yaml"),
		"OS_CLOUD=ours",
		"OPENSTACK_CLOUDS=" + cloudNames,
		// The Neutron in their catalog.
		"NEUTRON_KEYSTONE_ENDPOINT=" + c.neutron.URL(),
	}
}

// logf prints progress. The standard output is for what other programs read.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
