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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	clientset "github.com/samplecrd/network-controller/example/portrule/client/clientset/versioned"
	informersv1 "github.com/samplecrd/network-controller/example/portrule/client/informers/externalversions/firewalld/v1"
)

// resyncPeriod is the pause between two looks at the firewall, beside those after an event.
var resyncPeriod = time.Minute

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`path` of a kubeconfig file; defaults to the configuration of the pod")
	node := flag.String("node", os.Getenv("NODE_NAME"), "`name` of this node; defaults to $NODE_NAME")
	netns := flag.String("netns", "", "`path` of a network namespace in place of that of the process; firewalld has none")
	removeRules := flag.Bool("remove-rules", false, "remove all rules from the node when the agent stops")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *node, *netns, *removeRules)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "portrule:", err)
		os.Exit(1)
	}
}

// run connects the parts.
func run(ctx context.Context, kubeconfig, node, netns string, removeRules bool) error {
	if node == "" || len(fieldManager(node)) > 128 {
		return fmt.Errorf("-node: %q is not the name of a node with at most 119 characters", node)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if netns == "" {
		return runController(ctx, config, node, removeRules, &nft{}, firewalld{})
	}
	file, err := os.Open(netns) //nolint:gosec // the administrator names it
	if err != nil {
		return fmt.Errorf("-netns: %w", err)
	}
	defer func() { _ = file.Close() }()
	return runController(ctx, config, node, removeRules, &nft{netns: int(file.Fd())})
}

// runController runs the controller and its informers, until the context ends.
func runController(
	ctx context.Context, config *rest.Config, node string, removeRules bool, firewalls ...firewall,
) error {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "portrule" // the API server has its own limits
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	rules := informersv1.NewPortRuleInformer(client, 0, cache.Indexers{})
	nodes := coreinformers.NewFilteredNodeInformer(kube, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = "metadata.name=" + node
	})
	c, err := NewController(ctx, node, client.FirewalldV1().PortRules(), rules, nodes, firewalls...)
	if err != nil {
		return err
	}
	go rules.RunWithContext(ctx)
	go nodes.RunWithContext(ctx)
	return c.Run(ctx, removeRules)
}
