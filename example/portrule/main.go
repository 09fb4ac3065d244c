// Command portrule is an agent for each node of a cluster. It makes the firewall of its node
// match the PortRules that concern it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	lesson "github.com/samplecrd/network-controller/docs/learn/code/start"
	"github.com/samplecrd/network-controller/pkg/glass"
)

// options are what an agent is started with.
type options struct {
	node        string
	removeRules bool        // when the agent stops
	page        *glass.Page // shows the queue, if that is requested
	// firewalls make each firewall of the node as desired. They read what is there, and change
	// it if it differs.
	firewalls []func(ctx context.Context, desired []access) error
	// watch calls a function after a change that others may have made, until the context or
	// the connection ends.
	watch func(ctx context.Context, changed func()) error
}

// resyncPeriod is the pause between two looks at the firewall, beside those after an event.
var resyncPeriod = time.Minute

func main() {
	var o options
	flag.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "`name` of this node; defaults to $NODE_NAME")
	flag.BoolVar(&o.removeRules, "remove-rules", false, "remove all rules from the node when the agent stops")
	netns := flag.String("netns", "", "`path` of a network namespace in place of that of the process; firewalld has none")
	lesson.MainWithPage(func(ctx context.Context, config *rest.Config, page *glass.Page) error {
		kernel := &nft{}
		o.page, o.watch, o.firewalls = page, kernel.Watch, append(o.firewalls, kernel.Sync, syncFirewalld)
		if *netns != "" {
			file, err := os.Open(*netns)
			if err != nil {
				return fmt.Errorf("-netns: %w", err)
			}
			defer func() { _ = file.Close() }()
			kernel.netns, o.firewalls = int(file.Fd()), o.firewalls[:1]
		}
		return run(ctx, config, o)
	})
}

// run runs the controller until the context ends.
func run(ctx context.Context, config *rest.Config, o options) error {
	if o.node == "" || len(fieldManager(o.node)) > 128 {
		return fmt.Errorf("-node: %q is not the name of a node with at most 119 characters", o.node)
	}
	c, err := NewController(ctx, config, o)
	if err == nil {
		err = c.Run(ctx)
	}
	return err
}
