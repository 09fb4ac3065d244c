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
	"net"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	_ "golang.org/x/crypto/x509roots/fallback" // for images without certificates

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/clouds"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/queue"
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
		os.Exit(glass.RunFollow(ctx, append([]string{controllerName}, os.Args[2:]...), os.Stdout, os.Stderr))
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
		os.Exit(options.previewCommand().Run(ctx, os.Stdin, os.Stdout, os.Stderr))
	}
	err = run(klog.NewContext(ctx, options.logger), options)
	klog.Flush()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", controllerName, err)
		os.Exit(1)
	}
}

// begin logs the start, and sets what belongs to the process and not to a part of it.
func begin(ctx context.Context, o options) {
	klog.FromContext(ctx).Info("Starting", "version", version, "flags", o.given)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	metrics.SetVersion(version)
}

// run runs the controller until the context ends.
func run(ctx context.Context, o options) error {
	begin(ctx, o)
	health := server.NewHealth()
	if err := errors.Join(o.server.ServeHealth(ctx, health), o.server.ServeProfiles(ctx)); err != nil {
		return err
	}
	endTracing, err := o.tracing.Export(ctx, controllerName, version)
	if err != nil {
		return err
	}
	defer endTracing()

	page, err := o.debugPage.Serve(ctx, glass.Process{Name: controllerName, Version: version})
	if err != nil {
		return err
	}
	observers := newObservers(page, o)
	config, clients, err := connectKubernetes(ctx, o, observers.networks)
	if err != nil {
		return err
	}
	elector, err := o.leaderElection.New(ctx, config, wallClock, health)
	if err != nil {
		return err
	}
	if err := o.server.ServeMetrics(ctx, metrics.Handler(), clients.kube); err != nil {
		return err
	}
	gate := newNeutronGate(o)
	metrics.CountRequests(gate.Load)
	neutronClient, closeNeutron, err := connectNeutron(ctx, o, neutronTransport(elector.Fence(), gate, observers.networks))
	if err != nil {
		return err
	}
	defer closeNeutron()

	health.WaitFor("Kubernetes")
	cluster, forbidden, err := o.kube.Wait(ctx, clients.kube, clients.resource(), health.WaitFor)
	if err != nil {
		return nil // stopped
	}
	parts, err := assemble(ctx, o.forCluster(cluster), connections{clients, neutronClient, elector.Fence()}, observers)
	if err != nil {
		return err
	}
	defer parts.informers.stop()
	parts.forbidden, parts.clouds.SkipNamespaces = forbidden, forbidden
	page.Server(glass.Server{
		Name: metrics.Neutron, Limit: o.maxRequests, Instance: parts.neutron.KnownCloud, Cache: parts.neutronCache,
	})
	page.Leader(glass.Leader{Holder: elector.Holder, Leads: parts.leads.Load})
	return parts.lead(ctx, o, health, elector)
}

// lead fills the caches, and runs the controllers when this replica leads.
func (p *parts) lead(ctx context.Context, o options, health *server.Health, elector *leaderelection.Elector) error {
	stuck := 2*o.neutronTimeout + 2*time.Minute // longer than the requests of a step can take
	health.AddLiveCheck("workers", func(*http.Request) error { return p.watchdog.Check(stuck) })

	health.WaitFor("the informer caches and the cache of Neutron's state")
	p.informers.start(ctx)
	if !p.WarmUp(ctx, p.forbidden...) {
		return nil // stopped
	}
	if lease := elector.Lease(); lease != "" {
		health.WaitFor("the Lease " + lease + ", which could not be read or created yet")
	}
	health.AddLiveCheck("lease", elector.Check)
	return elector.Run(ctx, func(ctx context.Context) error {
		p.leads.Store(true)
		metrics.CountNetworks(p.allNetworks.List)
		return p.Run(ctx, o.workers, o.shutdownTimeout)
	})
}

// observers are those of the two controllers. The first ones see all requests, too.
type observers struct {
	watchdog              *watchdog.Watchdog
	networks, deployments observe.Observer
	page                  *glass.Page
	shown                 *glass.Controller // the Networks on the page
}

func newObservers(page *glass.Page, o options) observers {
	watchdog := watchdog.New(clock.RealClock{})
	stages := []glass.Stage{glass.StageDesired, glass.StageActual, glass.StagePlan, glass.StageApply, glass.StageReport}
	networks := page.Controller(glass.Config{Name: "Networks", Resource: "networks", Workers: o.workers, Stages: stages})
	deployments := page.Controller(glass.Config{Name: "Deployments", Resource: "deployments", Workers: o.workers})
	return observers{
		watchdog: watchdog, page: page, shown: networks,
		networks:    observe.All{o.tracing.NewObserver(), watchdog, metrics.Observer{}, networks},
		deployments: observe.All{o.tracing.NewObserver(), watchdog, deployments},
	}
}

// transport wraps a connection.
type transport = func(http.RoundTripper) http.RoundTripper

// clients are the clients of the API server. Requests of the first three are
// bounded, and syncs take turns; those of the others, which informers use, have no end.
type clients struct {
	kube     kubernetes.Interface
	networks clientset.Interface
	metadata metadata.Interface

	watchNetworks clientset.Interface
	watchMetadata metadata.Interface
}

// connectKubernetes returns the configuration and clients for the cluster. It does not
// wait for the API server.
func connectKubernetes(
	ctx context.Context, o options, observer observe.Observer, transports ...transport,
) (config *rest.Config, c clients, err error) {
	observed := observe.Transport(observer, observe.Kubernetes, observe.KubernetesOperation)
	config, err = o.kube.Config(ctx, controllerName, append(transports, observed)...)
	if err != nil {
		return nil, c, err
	}
	bounded := kube.WithTimeout(config)
	bounded.Wrap(queue.NewKubernetesGate().Transport)
	compact := rest.CopyConfig(bounded) // for what is part of Kubernetes; custom resources have only JSON
	compact.ContentType = runtime.ContentTypeProtobuf
	compact.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	var errs [5]error
	c.kube, errs[0] = kubernetes.NewForConfig(compact)
	c.networks, errs[1] = clientset.NewForConfig(bounded)
	c.metadata, errs[2] = metadata.NewForConfig(bounded)
	c.watchNetworks, errs[3] = clientset.NewForConfig(config)
	c.watchMetadata, errs[4] = metadata.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, c, fmt.Errorf("creating clients for Kubernetes: %w", err)
	}
	return config, c, nil
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

// connections are what the controllers send requests with.
type connections struct {
	clients
	neutron neutron.Client        // of the controller's own cloud
	fence   *leaderelection.Fence // for the clients of other clouds
}

// parts are controllers that are not running yet, and what run needs of them.
type parts struct {
	*Controller
	clouds      *clouds.Set
	allNetworks *store.Networks
	deployments *deployments.Controller
	informers   *informerSet
	watchdog    *watchdog.Watchdog
	neutron     *neutron.Cache
	forbidden   []string    // namespaces that need not be ready for the start
	leads       atomic.Bool // whether this replica leads
}

// assemble creates the controllers and everything that they consist of, from the bottom up.
func assemble(ctx context.Context, o options, c connections, observers observers) (*parts, error) {
	informers, err := newInformers(o, c.clients, observers)
	if err != nil {
		return nil, err
	}
	onWatchError := c.resource().LogWatchError("")
	networks, err := store.New(klog.FromContext(ctx), informers.networks, onWatchError, observers.networks)
	if err != nil {
		return nil, err
	}
	recorder := kube.NewEventRecorder(ctx, c.kube, scheme.Scheme, controllerName)
	guard := kube.NewCRDGuard(c.metadata, samplecrdv1.DefinitionName, samplecrdv1.AnnotationAllowDeletion)
	o.reconcile.IsDefinitionDeleted = guard.BeingDeleted
	forCloud := func(cache *neutron.Cache, networks *store.Networks) ofCloud {
		reconciler := reconcile.New(reconcile.Dependencies{
			Client: c.networks, Networks: networks, Neutron: cache, Events: recorder, Clock: clock.RealClock{},
		}, o.reconcile)
		detector := drift.New(drift.Dependencies{
			Neutron: cache, Networks: networks, Reconciler: reconciler,
			Events: recorder, Observer: observers.networks, Clock: clock.RealClock{},
		}, o.drift)
		return ofCloud{NewController(networks, reconciler, detector, observers.networks), reconciler}
	}
	neutronCache := neutron.NewCache(c.neutron, time.Now)
	set, err := clouds.New(clouds.Config{
		Options: o.clouds, Networks: networks, Secrets: c.kube.CoreV1(),
		Connect: func() openstack.Options {
			return o.neutronSettings(neutronTransport(c.fence, newNeutronGate(o), observers.networks))
		},
		New: func(client neutron.Client, networks *store.Networks) clouds.Controller {
			return forCloud(neutron.NewCache(client, time.Now), networks)
		},
		Identity: func() (string, bool) {
			identity, isKnown := neutronCache.KnownCloud()
			return identity, isKnown || !o.hasOwnNeutron()
		},
	})
	if err != nil {
		return nil, err
	}
	controller := forCloud(neutronCache, set.Rest()).Controller
	forDeployments, err := deployments.New(deployments.Config{
		Informers: informers.deployments, Networks: networks, Metadata: c.metadata, Client: c.networks,
		Events: recorder, Options: o.deployments, Observer: observers.deployments,
	})
	observers.shown.Shows(controller.queue)
	return &parts{
		Controller: controller, clouds: set, allNetworks: networks,
		deployments: forDeployments, informers: informers, watchdog: observers.watchdog, neutron: neutronCache,
	}, err
}

// neutronCache describes the cache of Neutron's state for the debug page.
func (p *parts) neutronCache() glass.Cache {
	networks, subnets, listedAt := p.neutron.Size()
	text := fmt.Sprintf("%s, %d %s", plural(networks, "network"), subnets, plural(subnets, "subnet"))
	shown := glass.Cache{Objects: networks, Text: text}
	if !listedAt.IsZero() {
		shown.Refreshed = &listedAt
	}
	return shown
}

func plural(count int, singular string) string {
	if count == 1 {
		return singular
	}
	return singular + "s"
}

// ofCloud is the Controller for a cloud.
type ofCloud struct {
	*Controller
	*reconcile.Reconciler
}

// Run runs both controllers until the context ends, or one of them fails.
func (p *parts) Run(ctx context.Context, workers int, timeout time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- p.deployments.Run(ctx, workers)
	}()
	err := p.clouds.Run(ctx, ofCloud{p.Controller, p.reconciler}, workers, timeout)
	cancel()
	return errors.Join(err, <-ended)
}

// informerSet has the informers, by the watched namespace.
type informerSet struct {
	networks    store.ByNamespace[networkinformers.TypedNetworkInformer]
	deployments store.ByNamespace[cache.SharedIndexInformer]
	starts      []func(context.Context)
	stops       []func()
}

func newInformers(o options, c clients, observers observers) (*informerSet, error) {
	s := &informerSet{
		networks:    store.ByNamespace[networkinformers.TypedNetworkInformer]{},
		deployments: store.ByNamespace[cache.SharedIndexInformer]{},
	}
	for _, namespace := range o.kube.Namespaces() {
		name, err := cache.NewInformerName(strings.TrimSuffix(o.name+"/"+namespace, "/"))
		if err != nil {
			return nil, fmt.Errorf("naming an informer: %w", err)
		}
		factory := informers.NewSharedInformerFactoryWithOptions(c.watchNetworks, 0,
			informers.WithNamespace(namespace), informers.WithInformerName(name))
		s.networks[namespace] = factory.Samplecrd().V1().Networks()
		observers.page.Informer(pathOf("networks", namespace), s.networks[namespace].Informer())
		s.starts, s.stops = append(s.starts, factory.StartWithContext), append(s.stops, factory.Shutdown)

		if o.deployments.Which != deployments.None {
			factory := metadatainformer.NewFilteredSharedInformerFactory(c.watchMetadata, 0, namespace, nil)
			informer := factory.ForResource(deployments.Resource).Informer()
			s.deployments[namespace] = observe.Informer(observers.deployments, informer)
			observers.page.Informer(pathOf("deployments", namespace), informer)
			s.starts = append(s.starts, func(ctx context.Context) { factory.Start(ctx.Done()) })
			s.stops = append(s.stops, factory.Shutdown)
		}
	}
	return s, nil
}

// pathOf returns the end of the path of requests for a resource.
func pathOf(resource, namespace string) string {
	if namespace == metav1.NamespaceAll {
		return resource
	}
	return "namespaces/" + namespace + "/" + resource
}

func (s *informerSet) start(ctx context.Context) {
	for _, start := range s.starts {
		start(ctx)
	}
}

// stop waits for the informers, whose context has ended.
func (s *informerSet) stop() {
	for _, stop := range s.stops {
		stop()
	}
}

// connectNeutron returns a client for the Neutron that the flags name, and a function
// that closes what was opened for it. A Neutron that is unavailable is no error:
// Networks wait for it.
func connectNeutron(
	ctx context.Context, o options, wrap transport,
) (client neutron.Client, closeAll func(), err error) {
	closeAll = func() {}
	if !o.hasOwnNeutron() {
		return openstack.NewUnavailable(func() neutron.Error { return neutron.Error{Message: withoutNeutron} }), closeAll, nil
	}
	if o.embeddedNeutron {
		server := embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})
		if err := server.Listen(o.embeddedAddress); err != nil {
			const failed = "starting the embedded Neutron on -embedded-neutron-address %s: %w"
			return nil, nil, fmt.Errorf(failed, o.embeddedAddress, err)
		}
		o.neutronEndpoint, o.neutronIdentity, closeAll = server.URL(), "embedded", func() { _ = server.Close() }
		klog.FromContext(ctx).Info("NO CLOUD CONFIGURED: using the embedded Neutron, whose networks exist only in the " +
			"memory of this process. To list them: curl " + o.neutronEndpoint + "/v2.0/networks")
	}
	if client, err = newNeutronClient(o, wrap); err != nil {
		closeAll()
		return nil, nil, err
	}
	if o.cloud != "" {
		go tryNeutron(ctx, client, "cloud", o.cloud)
	} else {
		go tryNeutron(ctx, client, "endpoint", o.neutronEndpoint)
	}
	return client, closeAll, nil
}

// newNeutronGate returns what bounds the requests to Neutron at a time.
func newNeutronGate(o options) *queue.Gate {
	return queue.NewGate(queue.GateOptions{Places: o.maxRequests, Passes: openstack.IsLogin, NotSent: openstack.NotSent})
}

// neutronTransport returns a function that wraps the connection to Neutron. The fence is
// checked last, after everything that waits.
func neutronTransport(fence *leaderelection.Fence, gate *queue.Gate, observer observe.Observer) transport {
	return func(next http.RoundTripper) http.RoundTripper {
		fenced := fence.Transport(next, openstack.Fenced)
		return gate.Transport(observe.Transport(observer, metrics.Neutron, openstack.Operation)(fenced))
	}
}

// withoutNeutron is what a Network in a namespace without a cloud waits for.
const withoutNeutron = "the controller has no cloud of its own, and finds no Secret " + clouds.SecretName +
	" in the namespace that it may read. Create that Secret with the key clouds.yaml, and the Role and RoleBinding of " +
	"deploy/cloud-of-namespace, which let the controller read it (docs/operate/clouds.md)"

// neutronSettings returns the options for a client.
func (o options) neutronSettings(wrap transport) openstack.Options {
	return openstack.Options{Timeout: o.neutronTimeout, Transport: wrap, Skipped: metrics.CountSkipped}
}

// newNeutronClient returns a client for the cloud or the endpoint of the options.
func newNeutronClient(o options, wrap transport) (neutron.Client, error) {
	settings := o.neutronSettings(wrap)
	settings.CloudIdentity = o.neutronIdentity
	if o.cloud != "" {
		client, err := openstack.NewFromCloud(o.cloud, settings)
		if err != nil {
			return nil, fmt.Errorf("-cloud or OS_CLOUD: %w", err)
		}
		return client, nil
	}
	client, err := openstack.New(o.neutronEndpoint, settings)
	if err != nil {
		return nil, fmt.Errorf("-neutron-endpoint: %w", err)
	}
	return client, nil
}

// neutronOfPlan returns a client for the Neutron that a controller uses. That can be the
// embedded Neutron of another process.
func neutronOfPlan(o options) (neutron.Client, error) {
	if !o.hasOwnNeutron() {
		return nil, errors.New("the controller has no cloud of its own: set -namespaces to one namespace that has " +
			"the Secret " + clouds.SecretName + ", and read it with your rights or in a Pod of the controller")
	}
	if o.embeddedNeutron {
		if _, port, _ := net.SplitHostPort(o.embeddedAddress); port == "" || port == "0" {
			return nil, errors.New("the Neutron of the controller is unknown: set -cloud, OS_CLOUD or -neutron-endpoint; " +
				"or, for the embedded Neutron of a running controller, -embedded-neutron-address to the address in its log")
		}
		o.neutronEndpoint, o.neutronIdentity = "http://"+o.embeddedAddress, "embedded"
	}
	return newNeutronClient(o, transportOfPlan(o))
}

func transportOfPlan(o options) transport {
	neverOpen := new(leaderelection.Fence) // a plan changes nothing
	return neutronTransport(neverOpen, newNeutronGate(o), observe.Nothing{})
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
