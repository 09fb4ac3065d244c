// Command samplecrd-controller creates and maintains a network in OpenStack Neutron
// for every Network object in a Kubernetes cluster.
//
// This file connects the parts and decides nothing. To learn how a controller works,
// read controller.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	_ "golang.org/x/crypto/x509roots/fallback" // for images without certificates

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/debugpage"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/instrument"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/server"
	"github.com/samplecrd/network-controller/pkg/store"
	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// controllerName identifies the controller in requests to Kubernetes and Neutron, in
// field managers and in events.
const controllerName = "samplecrd-controller"

// version is the version of this program. The linker sets it.
var version = "unknown"

// gcPercent is by how much memory may grow until the next garbage collection. Nearly
// all memory holds Networks and Neutron's state, which stay: Go's default of 100 would
// double it. The environment variable GOGC has priority.
const gcPercent = 40

func main() {
	// The first signal starts a graceful stop, the second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	if len(os.Args) > 1 && os.Args[1] == followCommand {
		os.Exit(runFollow(ctx, os.Args[2:]))
	}
	options, err := parseOptions(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v (run with -help for a list of flags)\n", controllerName, err)
		os.Exit(options.usageExitCode())
	}
	if options.plan {
		os.Exit(runPlan(ctx, options, os.Stdin, os.Stdout, os.Stderr))
	}
	err = run(klog.NewContext(ctx, options.logger), options)
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", controllerName, err)
		os.Exit(1)
	}
}

// run runs the controller until the context ends.
func run(ctx context.Context, o options) error {
	klog.FromContext(ctx).Info("Starting", "version", version, "flags", o.given)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	metrics.SetVersion(version)
	health := server.NewHealth()
	if err := errors.Join(o.server.ServeHealth(ctx, health), o.server.ServeProfiles(ctx)); err != nil {
		return err
	}
	endTracing, err := o.tracing.Export(ctx, controllerName, version)
	if err != nil {
		return err
	}
	defer endTracing()

	recorder, err := o.debugPage.Serve(ctx, debugpage.Process{Version: version, MaySlowDown: o.isDemo()}, o.workers)
	if err != nil {
		return err
	}
	config, clients, elector, err := connectKubernetes(ctx, o, recorder)
	if err != nil {
		return err
	}
	if err := o.server.ServeMetrics(ctx, metrics.Handler(), clients.kube); err != nil {
		return err
	}
	neutronClient, closeNeutron, err := connectNeutron(ctx, o, elector.Fence(), recorder)
	if err != nil {
		return err
	}
	defer closeNeutron()

	health.WaitFor("Kubernetes")
	cluster, forbidden, err := o.kube.Wait(ctx, clients.kube, config.Host, clients.resource(), health.WaitFor)
	if err != nil {
		return nil // stopped
	}
	parts, err := assemble(ctx, o, clients, neutronClient, cluster, recorder)
	if err != nil {
		return err
	}
	defer parts.stop()
	stuck := 2*o.neutronTimeout + 2*time.Minute // longer than the requests of a step can take
	health.AddLiveCheck("workers", func(*http.Request) error { return parts.watchdog.Check(stuck) })

	health.WaitFor("the informer caches and the cache of Neutron's state")
	parts.startInformers()
	if !parts.controller.WarmUp(ctx, forbidden...) {
		return nil // stopped
	}
	if lease := elector.Lease(); lease != "" {
		health.WaitFor("the Lease " + lease + ", which could not be read or created yet")
	}
	health.AddLiveCheck("lease", elector.Check)
	return elector.Run(ctx, health, func(ctx context.Context) error {
		metrics.CountNetworks(parts.networks.List)
		return parts.controller.Run(ctx, o.workers, o.shutdownTimeout)
	})
}

// connectKubernetes returns the configuration and clients for the cluster, and what
// elects the leader in it. It does not wait for the API server.
func connectKubernetes(ctx context.Context, o options, page *debugpage.Recorder) (config *rest.Config, c clients, elector *leaderelection.Elector, err error) {
	if config, err = o.kube.Config(ctx, controllerName, watchdog.Transport, page.Kubernetes); err != nil {
		return nil, c, nil, err
	}
	if c, err = newClients(config); err != nil {
		return nil, c, nil, err
	}
	if elector, err = o.leaderElection.New(config); err != nil {
		return nil, c, nil, err
	}
	page.ObserveLease(elector.Lease(), elector.Holder)
	return config, c, elector, nil
}

// clients are the clients of the API server. Requests of the first three are
// bounded, and syncs take turns; those of the others, which informers use, have no end.
type clients struct {
	kube     kubernetes.Interface
	networks clientset.Interface
	metadata metadata.Interface

	watchNetworks clientset.Interface
	watchMetadata metadata.Interface
}

func newClients(config *rest.Config) (c clients, err error) {
	bounded := kube.WithTurns(kube.WithTimeout(config))
	var errs [5]error
	c.kube, errs[0] = kubernetes.NewForConfig(kube.WithProtobuf(bounded))
	c.networks, errs[1] = clientset.NewForConfig(bounded)
	c.metadata, errs[2] = metadata.NewForConfig(bounded)
	c.watchNetworks, errs[3] = clientset.NewForConfig(config)
	c.watchMetadata, errs[4] = metadata.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return c, fmt.Errorf("creating clients for Kubernetes: %w", err)
	}
	return c, nil
}

// resource describes Networks.
func (c clients) resource() kube.Resource {
	return kube.Resource{
		GroupVersion: schema.GroupVersion(samplecrdv1.GroupVersion), Kind: "Network", Plural: "Networks",
		Spec: reflect.TypeFor[samplecrdv1.NetworkSpec](), Status: reflect.TypeFor[samplecrdv1.NetworkStatus](),
		List: func(ctx context.Context, namespace string) error {
			_, err := c.networks.SamplecrdV1().Networks(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		},
	}
}

// parts are what run needs of a controller that is not running yet.
type parts struct {
	controller     *Controller
	networks       *store.Networks
	watchdog       *watchdog.Watchdog
	startInformers func()
	stop           func()
}

// assemble creates a controller and everything that it consists of.
func assemble(ctx context.Context, o options, k clients, neutronClient neutron.Client, cluster string, page *debugpage.Recorder) (p parts, err error) {
	networkInformers, deploymentInformers := store.ByNamespace[networkinformers.TypedNetworkInformer]{}, store.ByNamespace[cache.SharedIndexInformer]{}
	var starts, stops []func()
	for _, namespace := range o.kube.Namespaces() {
		name, err := cache.NewInformerName(strings.TrimSuffix(controllerName+"/"+namespace, "/"))
		if err != nil {
			return p, fmt.Errorf("naming an informer: %w", err)
		}
		factory := informers.NewSharedInformerFactoryWithOptions(k.watchNetworks, 0,
			informers.WithNamespace(namespace), informers.WithInformerName(name))
		networkInformers[namespace] = factory.Samplecrd().V1().Networks()
		page.AddInformer("Network", namespace, factory.Samplecrd().V1().Networks().Informer().GetStore().ListKeys)
		starts, stops = append(starts, func() { factory.StartWithContext(ctx) }), append(stops, factory.Shutdown)

		if o.deployments.Which != deployments.None {
			factory := metadatainformer.NewFilteredSharedInformerFactory(k.watchMetadata, 0, namespace, nil)
			deploymentInformers[namespace] = factory.ForResource(deployments.Resource).Informer()
			page.AddInformer("Deployment", namespace, deploymentInformers[namespace].GetStore().ListKeys)
			starts, stops = append(starts, func() { factory.Start(ctx.Done()) }), append(stops, factory.Shutdown)
		}
	}
	p.startInformers = func() { callAll(starts) }
	recorder := kube.NewEventRecorder(ctx, k.kube, scheme.Scheme, controllerName)
	p.stop = func() { callAll(stops) }

	if p.networks, err = store.New(klog.FromContext(ctx), networkInformers, k.resource().LogWatchError(""), page); err != nil {
		return p, err
	}
	p.watchdog = watchdog.New(clock.RealClock{})
	neutronCache := neutron.NewCache(neutronClient, time.Now)
	page.ObserveCache(neutronCache.Size, neutronCache.KnownCloud)
	p.controller, err = newController(o.settings(cluster), k, p.networks, deploymentInformers, neutronCache, recorder, instrument.Observers{Watchdog: p.watchdog, Recorder: page})
	return p, err
}

func callAll(functions []func()) {
	for _, call := range functions {
		call()
	}
}

// settings are the options of the packages that make up the controller.
type settings struct {
	reconcile   reconcile.Options
	drift       drift.Options
	deployments deployments.Options
}

func (o options) settings(cluster string) settings {
	s := settings{
		reconcile: reconcile.Options{
			FieldManager: controllerName, Cluster: cluster, AllowAdoption: o.allowAdoption, ReportDrift: o.drift == driftReport, LeaveCloud: o.leaveCloud, OtherClusters: o.otherClusters, Alone: !o.leaderElection.IsEnabled(),
			MaxInFlight: limits.maxInFlight, MaxLateness: limits.maxLateness, MaxClockSkew: limits.maxClockSkew, Retry: limits.retry, MaxNetworksPerNamespace: o.maxNetworks,
		},
		drift:       drift.Options{Cluster: cluster, ResyncPeriod: o.resyncPeriod, StartTimeout: limits.startTimeout, MaxOrphanDeletions: o.orphanLimit},
		deployments: o.deployments,
	}
	if o.deleteOrphans {
		s.drift.OrphanGracePeriod = o.orphanGracePeriod
	}
	return s
}

// newController creates the packages that make up the controller, from the bottom up.
func newController(
	s settings, k clients, networks *store.Networks, deploymentInformers store.ByNamespace[cache.SharedIndexInformer],
	neutronCache *neutron.Cache, recorder record.EventRecorder, observers instrument.Observers,
) (*Controller, error) {
	neutronCache.NeedExtensions()
	guard := kube.NewCRDGuard(k.metadata, "networks."+samplecrdv1.GroupName, samplecrdv1.AnnotationAllowDeletion)
	if s.reconcile.IsDefinitionDeleted == nil { // a test may have its own
		s.reconcile.IsDefinitionDeleted = guard.BeingDeleted
	}
	reconciler := reconcile.New(k.networks, networks, neutronCache, recorder, clock.RealClock{}, s.reconcile)
	detector := drift.New(neutronCache, networks, reconciler, recorder, observers.Watchdog, clock.RealClock{}, s.drift)
	deployed, err := deployments.New(deploymentInformers, k.metadata, k.networks, networks, recorder, clock.RealClock{}, s.deployments)
	if err != nil {
		return nil, err
	}
	return NewController(networks, reconciler, detector, deployed, observers), nil
}

// connectNeutron returns a client for the Neutron that the flags name, and a function
// that closes what was opened for it. A Neutron that is unavailable is no error:
// Networks wait for it.
func connectNeutron(ctx context.Context, o options, fence *leaderelection.Fence, page *debugpage.Recorder) (client neutron.Client, closeAll func(), err error) {
	logger := klog.FromContext(ctx)
	limit := instrument.Budget(o.maxRequests)
	timeout, skipped := openstack.WithTimeout(o.neutronTimeout), openstack.OnSkipped(instrument.Skipped())
	observed := openstack.WithTransport(func(next http.RoundTripper) http.RoundTripper {
		fenced := fence.Transport(next, openstack.Fenced)
		return limit.Transport(page.Neutron(openstack.Operation)(instrument.Neutron(fenced)))
	})
	if o.cloud != "" {
		client, err = openstack.NewFromCloud(o.cloud, timeout, observed, skipped)
		if err != nil {
			return nil, nil, fmt.Errorf("-cloud or OS_CLOUD: %w", err)
		}
		go tryNeutron(ctx, client, "cloud", o.cloud)
		return client, func() {}, nil
	}
	endpoint, identity, closeAll := o.neutronEndpoint, "", func() {}
	if o.embeddedNeutron {
		server := embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})
		if err := server.Listen(o.embeddedAddress); err != nil {
			return nil, nil, fmt.Errorf("starting the embedded Neutron on -embedded-neutron-address %s: %w", o.embeddedAddress, err)
		}
		endpoint, identity, closeAll = server.URL(), "embedded", func() { _ = server.Close() }
		logger.Info("NO CLOUD CONFIGURED: using the embedded Neutron, whose networks exist only in the memory of this process. To list them: curl " + endpoint + "/v2.0/networks")
	}
	client, err = openstack.New(endpoint, timeout, observed, skipped, openstack.WithCloudIdentity(identity))
	if err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("-neutron-endpoint: %w", err)
	}
	go tryNeutron(ctx, client, "endpoint", endpoint)
	return client, closeAll, nil
}

// tryNeutron sends a request that changes nothing, and logs the result.
func tryNeutron(ctx context.Context, client neutron.Client, key, value string) {
	logger := klog.FromContext(ctx).WithValues(key, value)
	_, err := client.Networks(ctx, neutron.NetworkFilter{ID: "00000000-0000-0000-0000-000000000000"})
	var cloud string
	if err == nil {
		cloud, err = client.Cloud(ctx)
	}
	if described, ok := client.(fmt.Stringer); ok {
		logger = logger.WithValues("login", fmt.Sprint(described))
	}
	switch {
	case err == nil:
		logger.Info("Using Neutron", "identity", cloud)
	case ctx.Err() == nil:
		logger.Error(err, "Neutron is unavailable; starting anyway, Networks wait until it is available")
	}
}
