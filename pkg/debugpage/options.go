package debugpage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Options configure the debug page.
type Options struct {
	address string // not served if empty
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "debug-bind-address", "", "Loopback `address` that serves the debug page, such as 127.0.0.1:8090: a live picture of the path of each key through the controller. Port 0 selects a free port. If empty, the page is not served and nothing is recorded.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	if o.address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(o.address)
	if err != nil || port == "" || !isLoopback(host) {
		return fmt.Errorf("-debug-bind-address is %q: it must be a loopback address with a port, such as 127.0.0.1:8090, because the page has no authentication; to see it from another machine, use kubectl port-forward or ssh -L", o.address)
	}
	if _, err := net.ResolveTCPAddr("tcp", o.address); err != nil {
		return fmt.Errorf("-debug-bind-address is %q: it must have a port from 0 to 65535, such as 127.0.0.1:8090", o.address)
	}
	return nil
}

// isLoopback reports whether a host can be reached from this machine (or pod) only.
func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Serve serves the debug page in the background until the context ends. It returns the
// Recorder to connect, which is off if no address is set.
func (o Options) Serve(ctx context.Context, process Process, workers int) (*Recorder, error) {
	if o.address == "" {
		return Off(), nil
	}
	recorder := newRecorder(ctx, clock.RealClock{}, process, workers)
	return recorder, recorder.serve(ctx, o.address)
}

// namespaceOf returns the namespace in the name of an informer: name/namespace.
func namespaceOf(name string) string {
	_, namespace, _ := strings.Cut(name, "/")
	return namespace
}

// errNoKey describes a key that is none.
var errNoKey = errors.New("key must be the namespace and name of a Network, such as default/example")

// parseKey parses the namespace and name of a Network.
func parseKey(text string) (cache.ObjectName, error) {
	key, err := cache.ParseObjectName(text)
	if err != nil || key.Namespace == "" || key.Name == "" {
		return key, errNoKey
	}
	return key, nil
}
