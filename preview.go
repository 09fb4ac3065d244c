package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/debugpage"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/preview"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
)

// planCommand is the command that shows what the controller would do.
const planCommand = "plan"

// planDescription is the beginning of the output of plan -help.
const planDescription = controllerName + ` plan shows what the controller would do for each Network, and why. It changes nothing.

It accepts the flags of the controller. Set those that the controller has: above all -kubeconfig, -cloud or
-neutron-endpoint, -cluster-name, -namespaces, -allow-adoption and -delete-orphans.

The exit code is 0 if there is nothing to do, 2 if there is, and 1 after an error.

Examples:
  ` + controllerName + ` plan -cloud=mycloud
  ` + controllerName + ` plan -cloud=mycloud -f networks/ -o json
  kubectl exec deploy/` + controllerName + ` -- /` + controllerName + ` plan`

// neutronOfPlan returns a client for the Neutron that a controller uses. That can be the
// embedded Neutron of another process.
func neutronOfPlan(ctx context.Context, o options) (client neutron.Client, closeAll func(), err error) {
	if o.cloud != "" || o.neutronEndpoint != "" {
		neverOpen := new(leaderelection.Fence) // a plan changes nothing
		return connectNeutron(ctx, o, neverOpen, debugpage.Off())
	}
	if _, port, _ := net.SplitHostPort(o.embeddedAddress); port == "" || port == "0" {
		return nil, nil, errors.New("the Neutron of the controller is unknown: set -cloud, OS_CLOUD or -neutron-endpoint; " +
			"or, for the embedded Neutron of a running controller, -embedded-neutron-address to the address in its log")
	}
	client, err = openstack.New("http://"+o.embeddedAddress, openstack.WithTimeout(o.neutronTimeout), openstack.WithCloudIdentity("embedded"))
	if err != nil {
		return nil, nil, fmt.Errorf("-embedded-neutron-address: %w", err)
	}
	return client, func() {}, nil
}

// usageExitCode is the exit code after an invalid flag.
func (o options) usageExitCode() int {
	if o.plan {
		return 1 // 2 means that there is something to do
	}
	return 2
}

// runPlan prints the plan and returns the exit code.
func runPlan(ctx context.Context, o options, stdin io.Reader, stdout *os.File, stderr io.Writer) int {
	// The connection logs at level info; the output of a plan is the plan.
	plan, err := makePlan(klog.NewContext(ctx, klog.Logger{}), o, stdin)
	if err == nil {
		err = plan.Print(stdout, o.preview.Format, preview.IsColourWanted(stdout))
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", controllerName, err)
		return 1
	}
	return plan.ExitCode()
}

// makePlan reads the cluster and Neutron, and returns the plan.
func makePlan(ctx context.Context, o options, stdin io.Reader) (p preview.Plan, err error) {
	if err := o.preview.Validate(); err != nil {
		return p, err
	}
	neutronClient, closeNeutron, err := neutronOfPlan(ctx, o)
	if err != nil {
		return p, err
	}
	defer closeNeutron()
	config, err := o.kube.Config(ctx, controllerName, onlyReads)
	if err != nil {
		return p, err
	}
	k, err := newClients(config)
	if err != nil {
		return p, err
	}
	cluster, err := o.kube.ClusterName(ctx, k.kube)
	if err != nil {
		return p, k.resource().Explain(err)
	}
	listed, err := listNetworks(ctx, k, o.kube.Namespaces())
	if err != nil {
		return p, err
	}
	selected, err := selectNetworks(listed, o, stdin)
	if err != nil {
		return p, err
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
	s := o.settings(cluster)
	return preview.New(ctx, preview.Input{
		Cluster: cluster, Networks: networks, Selected: selected, Neutron: snapshot, DeleteOrphans: o.deleteOrphans,
		Reconciler: reconcile.New(k.networks, networks, neutronCache, &record.FakeRecorder{}, clock.RealClock{}, s.reconcile),
	}), ctx.Err()
}

// listNetworks lists the Networks of the watched namespaces.
func listNetworks(ctx context.Context, k clients, namespaces []string) (store.ByNamespace[[]*samplecrdv1.Network], error) {
	listed := store.ByNamespace[[]*samplecrdv1.Network]{}
	for _, namespace := range namespaces {
		listed[namespace] = nil
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return k.networks.SamplecrdV1().Networks(namespace).List(ctx, options)
		})
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			listed[namespace] = append(listed[namespace], object.(*samplecrdv1.Network))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing Networks: %w", k.resource().Explain(err))
		}
	}
	return listed, nil
}

// selectNetworks returns the Networks to plan. With -f, these are the Networks in the
// files, which replace those in the list.
func selectNetworks(listed store.ByNamespace[[]*samplecrdv1.Network], o options, stdin io.Reader) (selected []*samplecrdv1.Network, err error) {
	if len(o.preview.Files) == 0 {
		for _, some := range listed {
			selected = append(selected, some...)
		}
		return selected, nil
	}
	manifests, err := preview.ReadManifests(o.preview.Files, stdin, o.kube.DefaultNamespace())
	if err != nil {
		return nil, err
	}
	positions := map[cache.ObjectName]int{}
	for _, some := range listed {
		for i, network := range some {
			positions[cache.MetaObjectToName(network)] = i
		}
	}
	for _, manifest := range manifests {
		source := metav1.NamespaceAll
		if o.kube.AreNamespacesLimited() {
			source = manifest.Namespace
		}
		if _, watched := listed[source]; !watched {
			return nil, fmt.Errorf("the Network %s/%s is not in a namespace of -namespaces: the controller would ignore it", manifest.Namespace, manifest.Name)
		}
		if i, exists := positions[cache.MetaObjectToName(manifest)]; exists {
			applied := preview.Apply(listed[source][i], manifest)
			listed[source][i], selected = applied, append(selected, applied)
		} else {
			applied := preview.Apply(nil, manifest)
			listed[source], selected = append(listed[source], applied), append(selected, applied)
		}
	}
	return selected, nil
}

// onlyReads returns a transport that rejects every request that could change
// something.
func onlyReads(next http.RoundTripper) http.RoundTripper { return readTransport{next} }

type readTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t readTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return nil, fmt.Errorf("plan changes nothing, and must not send %s %s", request.Method, request.URL.Path)
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper gives client-go access to the transport inside.
func (t readTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
