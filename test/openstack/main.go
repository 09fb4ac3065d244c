// Command openstack brings up a real Keystone and two real Neutrons from
// Debian's packages, for tests of what only the real ones do:
//
//	go run ./test/openstack up      # starts them and prints what to export
//	go run ./test/openstack down    # takes them down and leaves nothing
//	go run ./test/openstack exec -- COMMAND ARGS…
//
// The last one starts them for one command, which gets their addresses in its
// environment (see environment.go), and takes them down when it ends. Its exit
// code is the command's – but `go run` makes 1 of every code but 0, so where the
// code matters, build this first.
//
// It needs Debian 12 and root, since it installs packages. Elsewhere the exit
// code is 3, which says that nothing was tried; with CI set in the environment,
// where nobody would notice, it is 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

const (
	exitFailed  = 1
	exitUsage   = 2
	exitSkipped = 3
)

const usage = `usage: openstack up [-lifetime 4h]       start a Keystone and two Neutrons, print what to export
       openstack down                     take them down
       openstack exec -- COMMAND ARGS…    start others of them for one command
`

func main() {
	if len(os.Args) < 2 {
		os.Exit(explain())
	}
	exitCode, err := run(os.Args[1], os.Args[2:])
	switch {
	case errors.Is(err, errSkipped) && os.Getenv("CI") == "":
		exitCode = exitSkipped
	case err != nil:
		exitCode = max(exitCode, exitFailed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openstack:", err)
	}
	os.Exit(exitCode)
}

// run runs a command of this program.
func run(name string, args []string) (exitCode int, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() { explain() }
	lifetime := new(time.Duration)
	if name == "up" || name == superviseCommand {
		lifetime = flags.Duration("lifetime", 4*time.Hour, "")
	}
	if err := flags.Parse(args); err != nil {
		return exitUsage, nil //nolint:nilerr // the flag package has told it
	}
	switch {
	case name == "up" && flags.NArg() == 0:
		return 0, up(*lifetime)
	case name == "down" && flags.NArg() == 0:
		return 0, down()
	case name == "exec" && flags.NArg() > 0:
		return execute(flags.Args())
	case name == superviseCommand && flags.NArg() == 1:
		return 0, supervise(flags.Arg(0), *lifetime)
	default:
		return explain(), nil
	}
}

// explain says how this program is used, and returns the exit code for that.
func explain() int {
	fmt.Fprint(os.Stderr, usage)
	return exitUsage
}

// tell tells how things go, apart from what other programs may want to read.
func tell(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
