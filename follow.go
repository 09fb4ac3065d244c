package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/samplecrd/network-controller/pkg/commandline"
	"github.com/samplecrd/network-controller/pkg/debugpage"
)

// followCommand is the command that follows a key.
const followCommand = "follow"

// followDescription is the beginning of the output of follow -help.
const followDescription = controllerName + ` follow prints what happens to one Network in a running controller, one line at a time.

The controller needs -debug-bind-address. Without a Network, the command lists some.

Example:
  ` + controllerName + ` follow default/example -address=127.0.0.1:8123`

// runFollow follows a key until the context ends, and returns the exit code.
func runFollow(ctx context.Context, args []string) int {
	var o debugpage.FollowOptions
	flags, key := commandline.New(controllerName+" "+followCommand), ""
	flags.Group("Follow", o.AddFlags)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		key, args = args[0], args[1:]
	}
	err := flags.Parse(args)
	if rest := flags.Args(); err == nil && key == "" && len(rest) > 0 { // the flags came first
		key, args = rest[0], rest[1:]
		err = flags.Parse(args)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.Help(os.Stdout, followDescription)
		return 0
	case err == nil && len(flags.Args()) > 0:
		err = errors.New("follow accepts one Network, as namespace/name")
	case err == nil:
		err = o.Follow(ctx, key, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", controllerName, followCommand, err)
		return 1
	}
	return 0
}
