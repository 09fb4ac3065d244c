// Command portrule is an agent for each node of a cluster. It makes the firewall of its node
// match the PortRules that concern it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	v1 "github.com/samplecrd/network-controller/example/portrule/v1"
)

type options struct {
	kubeconfig, node, netns, dbusAddress string
	reloadFirewalld, removeRules         bool
	resyncPeriod                         time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "",
		"`path` of a kubeconfig file; defaults to the configuration of the pod")
	flag.StringVar(&o.node, "node", os.Getenv("NODE_NAME"),
		"`name` of this node; defaults to $NODE_NAME")
	flag.StringVar(&o.netns, "netns", "",
		"`path` of the network namespace with the firewall; defaults to that of the process")
	flag.StringVar(&o.dbusAddress, "dbus-address", "unix:path=/run/dbus/system_bus_socket",
		"`address` of the D-Bus on which firewalld may be")
	flag.BoolVar(&o.reloadFirewalld, "reload-firewalld", false,
		"reload firewalld once, so that it knows the new policy; it forgets what is not permanent")
	flag.BoolVar(&o.removeRules, "remove-rules", false,
		"remove all rules from the node when the agent stops")
	flag.DurationVar(&o.resyncPeriod, "resync-period", time.Minute,
		"`pause` between two looks at the firewall, beside those after a notification")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "portrule:", err)
		os.Exit(1)
	}
}

// run connects the parts.
func run(ctx context.Context, o options) error {
	if o.node == "" || len(fieldManager(o.node)) > 128 {
		return fmt.Errorf("-node: %q is not the name of a node with at most 119 characters", o.node)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	kernel := &nft{}
	if o.netns != "" {
		netns, err := os.Open(o.netns)
		if err != nil {
			return fmt.Errorf("-netns: %w", err)
		}
		defer func() { _ = netns.Close() }()
		kernel.netns = int(netns.Fd())
	}
	return runController(ctx, config, o, kernel, &firewalld{address: o.dbusAddress, reload: o.reloadFirewalld})
}

// runController runs the controller and its informers, until the context ends.
func runController(ctx context.Context, config *rest.Config, o options, firewalls ...firewall) error {
	ports, err := clientFor(config, "/apis", v1.GroupVersion, v1.AddToScheme)
	if err != nil {
		return err
	}
	core, err := clientFor(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return err
	}
	rules := informerFor(ports, "ports", &v1.PortRule{}, fields.Everything())
	nodes := informerFor(core, "nodes", &corev1.Node{}, fields.OneTermEqualSelector("metadata.name", o.node))
	c, err := NewController(ctx, o.node, ports, rules, nodes, firewalls...)
	if err != nil {
		return err
	}
	go rules.RunWithContext(ctx)
	go nodes.RunWithContext(ctx)
	return c.Run(ctx, o.resyncPeriod, o.removeRules)
}

// clientFor returns a client of one API group.
func clientFor(
	config *rest.Config, path string, version schema.GroupVersion, addToScheme func(*runtime.Scheme) error,
) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.UserAgent = path, &version, "portrule"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1 // the API server has its own limits
	return rest.RESTClientFor(config)
}

// informerFor returns an informer of a cluster-scoped resource, without resync.
func informerFor(
	client rest.Interface, resource string, kind runtime.Object, selector fields.Selector,
) cache.SharedIndexInformer {
	listWatch := cache.NewListWatchFromClient(client, resource, "", selector)
	return cache.NewSharedIndexInformer(listWatch, kind, 0, cache.Indexers{})
}
