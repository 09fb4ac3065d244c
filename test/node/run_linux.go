package main

import (
	"flag"
	"strings"
)

// The commands of this program that nobody types. Each is a process that is
// started by the one before it:
//
//	exec    what was typed
//	keep    owns the run folder and the cgroups, and removes them
//	init    process 1 of the namespaces, which adopts and buries orphans
//	manage  starts all programs, and runs the command
//
// Each gets the arguments of exec, after the path of the run folder.
const (
	keepCommand   = "keep"
	initCommand   = "init"
	manageCommand = "manage"
)

// order is what a user of exec wants.
type order struct {
	images   []string // archives
	auditLog string   // a file; empty: one in the run folder
	command  []string
}

// parseOrder reads the arguments of exec. The flag package tells what is wrong.
func parseOrder(args []string) (order, bool) {
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	flags.Usage = func() { explain() }
	images := flags.String("images", "", "")
	auditLog := flags.String("audit-log", "", "")
	if err := flags.Parse(args); err != nil {
		return order{}, false
	}
	if flags.NArg() == 0 {
		explain()
		return order{}, false
	}
	o := order{auditLog: *auditLog, command: flags.Args()}
	if *images != "" {
		o.images = strings.Split(*images, ",")
	}
	return o, true
}

// run runs a command of this program.
func run(name string, args []string) (exitCode int, err error) {
	switch name {
	case "exec":
		if o, ok := parseOrder(args); ok {
			return execute(o, args)
		}
		return exitUsage, nil
	case "load":
		if len(args) == 0 {
			return explain(), nil
		}
		return 0, load(args)
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
		if o, ok := parseOrder(args[1:]); ok {
			return manage(args[0], o)
		}
	}
	return explain(), nil
}
