// Command openstack starts a real Keystone and two real Neutrons from Debian's
// packages, for tests of what only the real ones do:
//
//	build/bin/openstack up      # starts them and prints what to export
//	build/bin/openstack down    # stops them and leaves nothing
//	build/bin/openstack exec -- COMMAND ARGS…
//
// The last one starts others of them for one command, which gets their addresses
// in its environment (see environment.go), and stops them when the command ends.
// Its exit code is that of the command. `make openstack` builds this program.
//
// OPENSTACK_RELEASE=trixie starts those of Debian 13, OPENSTACK_RELEASE=sid those of
// Debian unstable.
//
// It needs Debian 12 and root, because it installs packages. On other systems the
// exit code is 3 and nothing was changed. If TEST_REQUIRE_ALL=yes is set, the exit
// code is 1.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/samplecrd/network-controller/test/internal/require"
)

const usage = `usage: openstack up [-lifetime 4h]       start a Keystone and two Neutrons, print what to export
       openstack down                     stop them
       openstack exec -- COMMAND ARGS…    start others of them for one command
`

func main() {
	if len(os.Args) < 2 {
		os.Exit(explain())
	}
	exitCode, err := run(os.Args[1], os.Args[2:])
	require.Exit("openstack", exitCode, err)
}

// run runs a command of this program.
func run(name string, args []string) (exitCode int, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() { explain() }
	lifetime := new(time.Duration)
	if name == "up" || name == keepCommand {
		lifetime = flags.Duration("lifetime", 4*time.Hour, "")
	}
	if err := flags.Parse(args); err != nil {
		return require.ExitUsage, nil //nolint:nilerr // the flag package has printed it
	}
	switch {
	case name == "up" && flags.NArg() == 0:
		return 0, up(*lifetime)
	case name == "down" && flags.NArg() == 0:
		return 0, down()
	case name == "exec" && flags.NArg() > 0:
		return execute(flags.Args())
	case name == keepCommand && flags.NArg() > 0:
		return keep(flags.Arg(0), *lifetime, flags.Args()[1:])
	default:
		return explain(), nil
	}
}

// explain prints how this program is used, and returns the exit code for that.
func explain() int {
	fmt.Fprint(os.Stderr, usage)
	return require.ExitUsage
}

// logf prints progress. The standard output is for what other programs read.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
