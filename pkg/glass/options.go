package glass

import (
	"context"
	"flag"
	"fmt"
	"net"
)

// Options configure the debug page.
type Options struct {
	address string // not served if empty
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "debug-bind-address", "",
		"Loopback `address` that serves the debug page, such as 127.0.0.1:8123: "+
			"a live picture of the path of each key through the controller. Port 0 selects a free port. "+
			"If empty, the page is not served and nothing is recorded.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	if o.address == "" {
		return nil
	}
	return checkAddress("-debug-bind-address", o.address)
}

// checkAddress returns an error unless an address is one of this machine (or pod) only.
func checkAddress(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if _, invalid := net.ResolveTCPAddr("tcp", address); err == nil && invalid == nil && port != "" && isLoopback(host) {
		return nil
	}
	return fmt.Errorf("%s is %q: it must be a loopback address with a port, such as 127.0.0.1:8123, because "+
		"the page has no authentication; to see the page of another machine, use kubectl port-forward or ssh -L",
		flag, address)
}

// isLoopback reports whether a host can be reached from this machine (or pod) only.
func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Serve serves a page in the background until the context ends. If no address is set, it
// returns the zero Page.
func (o Options) Serve(ctx context.Context, process Process) (*Page, error) {
	if o.address == "" {
		return new(Page), nil
	}
	page := New(ctx, process)
	if err := page.Serve(ctx, o.address); err != nil {
		return nil, fmt.Errorf("-debug-bind-address: %w", err)
	}
	return page, nil
}
