package main

import (
	"flag"
	"strings"

	"github.com/samplecrd/network-controller/test/internal/require"
)

// manageCommand is the command of process 1 of the namespaces, which starts all programs
// and runs the command. It gets the path of the run folder and the arguments of exec. When
// it ends, the kernel kills all others. It waits for no orphans: they end soon enough.
const manageCommand = "manage"

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
	if name == manageCommand && len(args) > 1 {
		if o, ok := parseOptions(args[1:]); ok {
			return manage(args[0], o)
		}
	}
	return explain(), nil
}
