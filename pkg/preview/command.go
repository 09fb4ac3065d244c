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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
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
  kubectl -n samplecrd-system exec deploy/` + program + ` -- /` + program + ` plan`
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
	flags.Func("f", "A `file` or folder with Networks to plan, as if they were applied, "+
		"instead of all Networks in the cluster; - is the standard input. Can be repeated.",
		func(path string) error {
			o.files = append(o.files, path)
			return nil
		})
	flags.StringVar(&o.format, "o", "text", "The output `format`: text or json.")
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
	// Kube names the cluster, and its namespaces with Networks. Connect returns clients for it,
	// whose requests pass through a transport.
	Kube    kube.Options
	Connect func(ctx context.Context, wrap func(http.RoundTripper) http.RoundTripper) (
		kubernetes.Interface, clientset.Interface, error)
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
func (c Command) Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	// The connection logs at level info; the output of a plan is the plan.
	plan, err := c.makePlan(klog.NewContext(ctx, klog.Logger{}), stdin)
	if err == nil {
		err = plan.print(stdout, c.format)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", c.Program, err)
		return 1
	}
	return plan.ExitCode()
}

// makePlan reads the cluster and Neutron, and returns the plan.
func (c Command) makePlan(ctx context.Context, stdin io.Reader) (p Plan, err error) {
	if c.format != "text" && c.format != "json" {
		return p, fmt.Errorf("-o is %q: it must be text or json", c.format)
	}
	if _, err := c.Neutron(); err != nil && !c.NamespacesHaveClouds {
		return p, err
	}
	kubeClient, networkClient, err := c.Connect(ctx, onlyReads)
	if err != nil {
		return p, err
	}
	cluster, err := c.Kube.ClusterName(ctx, kubeClient)
	if err != nil {
		return p, c.Explain(err)
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
	reconciler := reconcile.New(reconcile.Dependencies{
		Client: networkClient, Networks: networks, Neutron: snapshot, Events: &record.FakeRecorder{},
		Clock: clock.RealClock{},
	}, c.Reconcile(cluster))
	p = New(ctx, Input{
		Cluster: cluster, Neutron: snapshot, Networks: networks, Selected: selected.networks, Invalid: selected.errors,
		Reconciler: reconciler, DeleteOrphans: c.DeleteOrphans,
	})
	if p.CloudOf = whose; whose != "" {
		p.Cloud, _ = snapshot.KnownCloud()
	}
	return p, ctx.Err()
}

// chooseNeutron returns a client for the one cloud that the plan is for, and whose that is: if
// only one namespace is planned, the cloud that it has of its own, and otherwise that of the
// controller. Networks of other clouds are rejected.
func (c Command) chooseNeutron(
	ctx context.Context, client kubernetes.Interface, selected *manifests,
) (chosen neutron.Client, whose string, err error) {
	if !c.NamespacesHaveClouds {
		chosen, err = c.Neutron()
		return chosen, "", err
	}
	if namespaces := c.Kube.Namespaces(); c.Kube.AreNamespacesLimited() && len(namespaces) == 1 {
		chosen, err = c.OfNamespace(ctx, client, namespaces[0])
		if chosen != nil || err != nil {
			return chosen, "of the namespace " + namespaces[0], err
		}
	} else {
		c.rejectOtherClouds(ctx, client, selected)
	}
	chosen, err = c.Neutron()
	return chosen, "of the controller", err
}

// rejectOtherClouds rejects the Networks of namespaces that have, or may have, a cloud of
// their own.
func (c Command) rejectOtherClouds(ctx context.Context, client kubernetes.Interface, selected *manifests) {
	isOther, all := map[string]bool{}, selected.networks
	selected.networks = []*samplecrdv1.Network{}
	for _, network := range all {
		namespace := network.Namespace
		if _, known := isOther[namespace]; !known {
			own, err := c.OfNamespace(ctx, client, namespace)
			if isOther[namespace] = own != nil || err != nil; err != nil {
				selected.reject("%v", err)
			} else if own != nil {
				selected.reject("the namespace %s has a cloud of its own: plan it with -namespaces=%[1]s", namespace)
			}
		}
		if !isOther[namespace] {
			selected.networks = append(selected.networks, network)
		}
	}
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
