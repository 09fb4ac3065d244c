// Command samplecrd-controller makes a network and a subnet in OpenStack
// Neutron of every Network object in a Kubernetes cluster.
//
// This file puts the program together: flags, clients, informers, the
// controller. What the controller does is in controller.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	_ "golang.org/x/crypto/x509roots/fallback" // for images that have no certificates

	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// version is the version of this program, which the linker sets.
var version = "unknown"

func main() {
	options, err := parseFlags(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v (run with -help to see the flags)\n", controllerName, err)
		os.Exit(2)
	}
	// The first signal asks for a clean stop, the second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	err = run(klog.NewContext(ctx, klog.Background()), options)
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", controllerName, err)
		os.Exit(1)
	}
}

// run runs the controller until the context ends.
func run(ctx context.Context, o options) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version, "settings", o.settings)
	metrics.SetVersion(version)
	health := newHealth()
	for _, e := range []endpoint{
		{name: "health", path: "/readyz", flag: "-health-probe-bind-address", address: o.serving.healthAddress, handler: health.handler()},
		{name: "profiles", path: "/debug/pprof/", flag: "-profiling-bind-address", address: o.serving.profilingAddress, handler: profiling()},
	} {
		if err := e.serve(ctx); err != nil {
			return err
		}
	}
	endTracing, err := o.tracing.start(ctx)
	if err != nil {
		return err
	}
	defer endTracing()
	k, err := connectKubernetes(o)
	if err != nil {
		return err
	}
	metricsServer, err := metricsEndpoint(o.serving, k.kube)
	if err != nil {
		return err
	}
	if err := metricsServer.serve(ctx); err != nil {
		return err
	}
	neutronClient, closeNeutron, err := connectNeutron(ctx, o)
	if err != nil {
		return err
	}
	defer closeNeutron()

	health.waitFor("Kubernetes")
	cluster, forbidden, err := waitForKubernetes(ctx, k, o, health.waitFor)
	if err != nil {
		return nil // asked to stop before it came
	}
	controller, stopInformers, err := startController(ctx, o, k, neutronClient, cluster)
	if err != nil {
		return err
	}
	defer stopInformers()
	health.mustHold("workers", func(*http.Request) error { return controller.Hangs(2*o.neutronTimeout + 2*time.Minute) })

	health.waitFor("the caches")
	if !controller.WarmUp(ctx, forbidden...) {
		return nil // asked to stop before it began
	}
	work := func(ctx context.Context) error { return controller.Run(ctx, o.workers, o.shutdownTimeout) }
	if !o.election.enabled {
		health.waitFor("")
		return work(ctx)
	}
	health.waitFor("the Lease " + k.lock.Describe() + ": it could neither be read nor made yet")
	k.lock.found = sync.OnceFunc(func() { health.waitFor("") })
	watchDog := leaderelection.NewLeaderHealthzAdaptor(o.election.retryPeriod)
	health.mustHold("lease", watchDog.Check)
	return o.election.lead(ctx, k.lock, watchDog, work)
}

// startController makes a controller and starts its informers.
func startController(ctx context.Context, o options, k kubernetesClients, neutronClient neutron.Client, cluster string) (*Controller, func(), error) {
	// Events are sent in the background, and nobody waits for the last ones:
	// what they would tell is in the status, too.
	broadcaster := events.NewBroadcaster(eventSink{&events.EventSinkImpl{Interface: k.kube.EventsV1()}})
	stop := []func(){broadcaster.Shutdown}
	stopAll := func() {
		for _, stop := range slices.Backward(stop) {
			stop()
		}
	}
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("starting to send events: %w", err)
	}
	networks, deployments := map[string]networkinformers.TypedNetworkInformer{}, map[string]cache.SharedIndexInformer{}
	var start []func()
	for _, namespace := range o.watched() {
		name, err := cache.NewInformerName(strings.TrimSuffix(controllerName+"/"+namespace, "/"))
		if err != nil {
			return nil, nil, fmt.Errorf("naming an informer: %w", err)
		}
		factory := informers.NewSharedInformerFactoryWithOptions(k.watchedNetworks, 0,
			informers.WithNamespace(namespace), informers.WithTransform(dropManagedFields), informers.WithInformerName(name))
		networks[namespace] = factory.Samplecrd().V1().Networks()
		start, stop = append(start, func() { factory.StartWithContext(ctx) }), append(stop, factory.Shutdown)

		ofDeployments := metadatainformer.NewFilteredSharedInformerFactory(k.watchedMetadata, 0, namespace, nil)
		if o.deployments.Which != NoDeployments {
			deployments[namespace] = ofDeployments.ForResource(deploymentResource).Informer()
			start, stop = append(start, func() { ofDeployments.Start(ctx.Done()) }), append(stop, ofDeployments.Shutdown)
		}
	}
	controller, err := NewController(ctx, k.networks, networks, neutronClient, broadcaster.NewRecorder(scheme.Scheme, controllerName), o.controllerOptions(cluster))
	if err == nil && o.deployments.Which != NoDeployments {
		err = controller.WatchDeployments(deployments, k.metadata, o.deployments)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, start := range start {
		start()
	}
	return controller, stopAll, nil
}

func (o options) controllerOptions(cluster string) Options {
	options := Options{Cluster: cluster, ResyncPeriod: o.resyncPeriod, AllowAdoption: o.allowAdoption}
	if o.deleteOrphans {
		options.OrphanGracePeriod = o.orphanGracePeriod
	}
	return options
}

// eventSink sends events, except to a namespace that is being deleted: it takes
// none any more, and each would be logged as an error.
type eventSink struct{ events.EventSink }

func (s eventSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return event, nil
	}
	return created, err
}

// connectNeutron returns a client for the Neutron that the flags name, and a
// function that closes what was opened for it. That a Neutron is away is no
// error: it is waited for.
func connectNeutron(ctx context.Context, o options) (client neutron.Client, closeAll func(), err error) {
	logger := klog.FromContext(ctx)
	timeout, observed := openstack.WithTimeout(o.neutronTimeout), openstack.WithTransport(observeNeutron)
	if o.cloud != "" {
		client, err = openstack.NewFromCloud(o.cloud, timeout, observed)
		if err != nil {
			return nil, nil, fmt.Errorf("-cloud or OS_CLOUD: %w", err)
		}
		go tryNeutron(ctx, client, "cloud", o.cloud)
		return client, func() {}, nil
	}
	endpoint, closeAll := o.neutronEndpoint, func() {}
	if endpoint == "" {
		server := embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})
		if err := server.Listen(o.embeddedAddress); err != nil {
			return nil, nil, fmt.Errorf("starting the embedded Neutron at -embedded-neutron-address %s: %w", o.embeddedAddress, err)
		}
		endpoint, closeAll = server.URL(), func() { _ = server.Close() }
		logger.Info("NO OPENSTACK IS NAMED: networks exist only in the memory of this process, and end with it. To look at them: curl " + endpoint + "/v2.0/networks")
	}
	client, err = openstack.New(endpoint, timeout, observed)
	if err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("-neutron-endpoint: %w", err)
	}
	go tryNeutron(ctx, client, "endpoint", endpoint)
	return client, closeAll, nil
}

// tryNeutron makes a request that changes nothing, and says how it went.
func tryNeutron(ctx context.Context, client neutron.Client, key, value string) {
	logger := klog.FromContext(ctx).WithValues(key, value)
	_, err := client.Networks(ctx, neutron.NetworkFilter{ID: "00000000-0000-0000-0000-000000000000"})
	if described, ok := client.(fmt.Stringer); ok {
		logger = logger.WithValues("login", fmt.Sprint(described))
	}
	switch {
	case err == nil:
		logger.Info("Using Neutron")
	case ctx.Err() == nil:
		logger.Error(err, "Neutron gives no usable answer; starting all the same: Networks wait until it does")
	}
}
