package preview

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Description returns the beginning of the output of plan -help.
func Description(program string) string {
	return program + ` plan shows what the controller would do for each Network, and why. It changes nothing.

It accepts the flags of the controller. Set those that the controller has: above all -kubeconfig, -cloud or
-neutron-endpoint, -cluster-name, -namespaces, -allow-adoption and -delete-orphans. In a container of the
controller, it has the controller's flags already.

The exit code is 0 if there is nothing to do, 2 if there is, 3 if a Network would only be blocked, and 1 after an error.

Examples:
  ` + program + ` plan -cloud=mycloud
  ` + program + ` plan -cloud=mycloud -f networks/ -o json
  kubectl exec deploy/` + program + ` -- /` + program + ` plan`
}

// Options are the values of the flags of the command plan.
type Options struct {
	// files are the files and folders with Networks to preview; "-" is the standard
	// input. They are empty for the Networks of the cluster.
	files  []string
	format string // of the output
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.Var((*paths)(&o.files), "f", "A `file` or folder with Networks to plan, as if they were applied, "+
		"instead of all Networks in the cluster; - is the standard input. Can be repeated.")
	flags.StringVar(&o.format, "o", "text", "The output `format`: text or json.")
}

// validate returns an error that names the flag with an invalid value.
func (o Options) validate() error {
	if o.format != "text" && o.format != "json" {
		return fmt.Errorf("-o is %q: it must be text or json", o.format)
	}
	return nil
}

// paths is a flag that can be repeated.
type paths []string

// String implements flag.Value.
func (p *paths) String() string { return strings.Join(*p, ",") }

// Set implements flag.Value.
func (p *paths) Set(path string) error {
	*p = append(*p, path)
	return nil
}

// firstProcess has the command line of the first process of a container.
const firstProcess = "/proc/1/cmdline"

// InheritedFlags returns the flags of the controller in this container, or nothing outside
// of one.
func InheritedFlags(program string) []string {
	commandLine, err := os.ReadFile(firstProcess)
	if err != nil {
		return nil
	}
	return flagsIn(string(commandLine), program)
}

// flagsIn returns the flags in the command line of a controller.
func flagsIn(commandLine, program string) []string {
	args := strings.Split(strings.TrimSuffix(commandLine, "\x00"), "\x00")
	isController := filepath.Base(args[0]) == program && len(args) > 1 && strings.HasPrefix(args[1], "-")
	if !isController {
		return nil
	}
	return args[1:]
}

// Command is the command plan: it shows what a controller with the same options would do.
type Command struct {
	Options
	// Program is the name of the program.
	Program string
	// Kube names the cluster, and its namespaces with Networks.
	Kube kube.Options
	// Explain adds to an error of the API server what to do.
	Explain func(error) error
	// Neutron connects to the controller's Neutron.
	Neutron func() (neutron.Client, error)
	// NamespacesHaveClouds is true if a namespace can have a cloud of its own. OfNamespace
	// returns a client for it, or nil if the namespace has none.
	NamespacesHaveClouds bool
	OfNamespace          func(ctx context.Context, client kubernetes.Interface, namespace string) (neutron.Client, error)
	// Reconcile returns the options of the controller in a cluster.
	Reconcile func(cluster string) reconcile.Options
	// DeleteOrphans is true if the controller deletes orphans.
	DeleteOrphans bool
}

// Run prints the plan and returns the exit code.
func (c Command) Run(ctx context.Context, stdin io.Reader, stdout *os.File, stderr io.Writer) int {
	// The connection logs at level info; the output of a plan is the plan.
	plan, err := c.makePlan(klog.NewContext(ctx, klog.Logger{}), stdin)
	if err == nil {
		err = plan.print(stdout, c.format, isColourWanted(stdout))
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", c.Program, err)
		return 1
	}
	return plan.ExitCode()
}

// makePlan reads the cluster and Neutron, and returns the plan.
func (c Command) makePlan(ctx context.Context, stdin io.Reader) (p Plan, err error) {
	if err := c.validate(); err != nil {
		return p, err
	}
	if _, err := c.Neutron(); err != nil && !c.NamespacesHaveClouds {
		return p, err
	}
	cluster, kubeClient, networkClient, err := c.connect(ctx)
	if err != nil {
		return p, err
	}
	listed, err := c.list(ctx, networkClient)
	if err != nil {
		return p, err
	}
	selected, err := c.selectFrom(listed, stdin)
	if err != nil {
		return p, err
	}
	neutronClient, whose, err := c.chooseNeutron(ctx, kubeClient, &selected)
	if err != nil {
		return p, err
	}
	if len(selected.networks) == 0 && selected.errors != nil {
		return p, errors.New(strings.Join(selected.errors, "; ")) // there is nothing to plan
	}
	networks, err := store.NewStatic(klog.FromContext(ctx), listed)
	if err != nil {
		return p, err
	}
	snapshot, err := neutron.NewSnapshot(ctx, neutronClient)
	if err != nil {
		return p, fmt.Errorf("reading Neutron's state: %w", err)
	}
	neutronCache := neutron.NewCache(snapshot, time.Now)
	if _, err := neutronCache.Refresh(ctx); err != nil {
		return p, fmt.Errorf("reading Neutron's state: %w", err)
	}
	reconciler := reconcile.New(reconcile.Dependencies{
		Client: networkClient, Networks: networks, Neutron: neutronCache, Events: &record.FakeRecorder{},
		Clock: clock.RealClock{},
	}, c.Reconcile(cluster))
	cloud, _ := neutronCache.KnownCloud()
	return New(ctx, Input{
		Cluster: cluster, Cloud: cloud, CloudOf: whose, Neutron: snapshot,
		Networks: networks, Selected: selected.networks, Invalid: selected.errors,
		Reconciler: reconciler, DeleteOrphans: c.DeleteOrphans,
	}), ctx.Err()
}

// connect returns the name of the cluster, and clients for it and its Networks.
func (c Command) connect(
	ctx context.Context,
) (cluster string, kubeClient kubernetes.Interface, networks clientset.Interface, err error) {
	config, err := c.Kube.Config(ctx, c.Program, onlyReads)
	if err != nil {
		return "", nil, nil, err
	}
	config = kube.WithTimeout(config)
	kubeClient, err = kubernetes.NewForConfig(config)
	if err != nil {
		return "", nil, nil, fmt.Errorf("creating a client for Kubernetes: %w", err)
	}
	if networks, err = clientset.NewForConfig(config); err != nil {
		return "", nil, nil, fmt.Errorf("creating a client for Networks: %w", err)
	}
	if cluster, err = c.Kube.ClusterName(ctx, kubeClient); err != nil {
		return "", nil, nil, c.Explain(err)
	}
	return cluster, kubeClient, networks, nil
}

// onlyReads returns a transport that rejects every request that could change
// something.
func onlyReads(next http.RoundTripper) http.RoundTripper { return readTransport{next} }

type readTransport struct{ next http.RoundTripper }

func (t readTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return nil, fmt.Errorf("plan changes nothing, and must not send %s %s", request.Method, request.URL.Path)
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper gives client-go access to the transport inside.
func (t readTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
