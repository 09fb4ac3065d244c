package main

import (
	"flag"
	"strings"

	"github.com/samplecrd/network-controller/test/internal/require"
)

// Commands of this program that users do not type. Each is a process that is
// started by the one before it:
//
//	exec    what was typed
//	keep    owns the run folder and the cgroups, and removes them
//	init    process 1 of the namespaces, which adopts orphans and waits for them
//	manage  starts all programs, and runs the command
//
// Each gets the path of the run folder and the arguments of exec.
const (
	keepCommand   = "keep"
	initCommand   = "init"
	manageCommand = "manage"
)

// options are the arguments of exec.
type options struct {
	images  []string // archives
	command []string
}

// parseOptions parses the arguments of exec. It prints what is wrong with them.
func parseOptions(args []string) (options, bool) {
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	flags.Usage = func() { explain() }
	images := flags.String("images", "", "")
	if err := flags.Parse(args); err != nil {
		return options{}, false
	}
	if flags.NArg() == 0 {
		explain()
		return options{}, false
	}
	o := options{command: flags.Args()}
	if *images != "" {
		o.images = strings.Split(*images, ",")
	}
	return o, true
}

// run runs a command of this program.
func run(name string, args []string) (exitCode int, err error) {
	switch name {
	case "exec":
		if o, ok := parseOptions(args); ok {
			return execute(o, args)
		}
		return require.ExitUsage, nil
	case pauseCommand:
		pause()
		return 0, nil
	}
	if len(args) < 2 {
		return explain(), nil
	}
	switch name {
	case keepCommand:
		return keep(args[0], args)
	case initCommand:
		return beInit(args)
	case manageCommand:
		if o, ok := parseOptions(args[1:]); ok {
			return manage(args[0], o)
		}
	}
	return explain(), nil
}
