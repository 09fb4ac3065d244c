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
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/plan"
)

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

// options are the values of the flags.
type options struct {
	kubeconfig, master string
	workers            int
	shutdownTimeout    time.Duration
	clusterName        string
	cloud              string
	neutronEndpoint    string
	neutronTimeout     time.Duration
	embeddedAddress    string
	resyncPeriod       time.Duration
	allowAdoption      bool
	deleteOrphans      bool
	orphanGracePeriod  time.Duration
	deployments        DeploymentOptions
	metricsAddress     string
	loggingFormat      string
}

// parseFlags reads the command line and sets up logging as it says.
func parseFlags(args []string) (options, error) {
	o := options{deployments: DeploymentOptions{ExcludedNamespaces: []string{metav1.NamespaceSystem}}}
	flags := flag.NewFlagSet(controllerName, flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`path` of the kubeconfig file. Without it, the in-cluster configuration is used.")
	flags.StringVar(&o.master, "master", "", "`URL` of the API server, in place of the one in the kubeconfig file.")
	flags.IntVar(&o.workers, "workers", 5, "How many Networks are worked on at the same time, from 1 to 100.")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "How long requests in flight may take to finish after SIGTERM or SIGINT.")
	flags.StringVar(&o.clusterName, "cluster-name", "", "`name` that tells this cluster's networks from other clusters' in the same OpenStack project. It must never change. By default, the UID of the namespace kube-system.")
	flags.StringVar(&o.cloud, "cloud", "", "`name` of the cloud in clouds.yaml whose Neutron to use. By default, the one in the environment variable OS_CLOUD. Without either, an embedded Neutron is used, which has networks in memory only.")
	flags.StringVar(&o.neutronEndpoint, "neutron-endpoint", "", "`URL` of a Neutron that asks for no authentication, such as http://127.0.0.1:9696, in place of -cloud.")
	flags.DurationVar(&o.neutronTimeout, "neutron-timeout", 30*time.Second, "How long one request to Neutron may take.")
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "127.0.0.1:0", "Loopback `address` at which the embedded Neutron listens; port 0 stands for a free one.")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 30*time.Second, "Within which time a change that somebody makes in Neutron is noticed and put right. It stretches where listing all that Neutron has takes more than a tenth of it.")
	flags.BoolVar(&o.allowAdoption, "allow-adoption", false, "Allow Networks to name a network that is in Neutron already (spec.networkID). Whoever may write Networks can then take over any network of the OpenStack project.")
	flags.BoolVar(&o.deleteOrphans, "delete-orphans", false, "Delete networks that are marked as this cluster's and whose Network does not exist. Without it, they are logged and counted.")
	flags.DurationVar(&o.orphanGracePeriod, "orphan-grace-period", 10*time.Minute, "For how long a network must have been seen to be an orphan before -delete-orphans deletes it.")
	flags.StringVar((*string)(&o.deployments.Which), "deployment-networks", string(AnnotatedDeployments), "Which Deployments get a Network of their own name: annotated, for those that ask for one by annotation; all, for each one that does not decline; or none.")
	flags.StringVar(&o.deployments.DefaultSubnetPool, "default-subnet-pool", "", "`name` or ID of the subnet pool for Deployments that do not say what they want, with -deployment-networks=all.")
	flags.Func("exclude-deployment-namespaces", "`names` of the namespaces, with commas between them, whose Deployments are not looked at. (default \"kube-system\")", func(names string) error {
		o.deployments.ExcludedNamespaces = strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
		return nil
	})
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "", "`address` at which metrics are served over HTTP, to everybody who can reach it, such as 127.0.0.1:8080. Without it, they are not.")
	flags.StringVar(&o.loggingFormat, "logging-format", "text", "text or json. With json, only -v of the klog flags has an effect.")
	klog.InitFlags(flags)

	flags.SetOutput(io.Discard) // the caller reports an error, in a line
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Printf("%s makes networks in OpenStack Neutron of Network objects in Kubernetes.\n\nFlags:\n", controllerName)
		flags.PrintDefaults()
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err == nil {
		err = o.check(flags.Args(), given)
	}
	if err != nil {
		return o, err
	}
	if !given["cloud"] && !given["neutron-endpoint"] && !given["embedded-neutron-address"] {
		o.cloud = os.Getenv("OS_CLOUD")
	}
	if o.loggingFormat == "json" {
		verbosity, _ := strconv.Atoi(flags.Lookup("v").Value.String())
		klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	}
	return o, nil
}

// clusterNames are the names that fit into the mark of what we make.
var clusterNames = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// maxNeutronTimeout bounds how long we wait for Neutron: what it is at for
// longer is not recognized as ours any more.
const maxNeutronTimeout = plan.TwinWindow - maxInFlight

// check says which flag has a value that cannot be.
func (o options) check(rest []string, given map[string]bool) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not a flag", rest[0])
	case given["cloud"] && given["neutron-endpoint"], given["cloud"] && given["embedded-neutron-address"], given["neutron-endpoint"] && given["embedded-neutron-address"]:
		return errors.New("-cloud, -neutron-endpoint and -embedded-neutron-address name different Neutrons: give one of them")
	case given["cloud"] && o.cloud == "":
		return errors.New("-cloud is empty: it must be the name of a cloud in clouds.yaml")
	case o.workers < 1 || o.workers > 100:
		return fmt.Errorf("-workers is %d: it must be from 1 to 100", o.workers)
	case o.shutdownTimeout <= 0:
		return fmt.Errorf("-shutdown-timeout is %v: it must be positive", o.shutdownTimeout)
	case o.neutronTimeout <= 0:
		return fmt.Errorf("-neutron-timeout is %v: it must be positive", o.neutronTimeout)
	case o.neutronTimeout > maxNeutronTimeout:
		return fmt.Errorf("-neutron-timeout is %v: it must be at most %v, so that a request that was given up can be told from somebody else's", o.neutronTimeout, maxNeutronTimeout)
	case o.resyncPeriod < time.Second:
		return fmt.Errorf("-resync-period is %v: it must be at least 1s", o.resyncPeriod)
	case o.deployments.Which != AnnotatedDeployments && o.deployments.Which != AllDeployments && o.deployments.Which != NoDeployments:
		return fmt.Errorf("-deployment-networks is %q: it must be annotated, all or none", o.deployments.Which)
	case o.deployments.Which == AllDeployments && o.deployments.DefaultSubnetPool == "":
		return errors.New("-deployment-networks=all needs -default-subnet-pool, for the Deployments that do not say what they want")
	case o.deployments.Which != AllDeployments && o.deployments.DefaultSubnetPool != "":
		return errors.New("-default-subnet-pool has no effect without -deployment-networks=all")
	case o.orphanGracePeriod <= 0:
		return fmt.Errorf("-orphan-grace-period is %v: it must be positive", o.orphanGracePeriod)
	case o.clusterName != "" && !clusterNames.MatchString(o.clusterName):
		return fmt.Errorf("-cluster-name is %q: it must have at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit", o.clusterName)
	case o.loggingFormat != "text" && o.loggingFormat != "json":
		return fmt.Errorf("-logging-format is %q: it must be text or json", o.loggingFormat)
	}
	return nil
}

// run runs the controller until the context ends.
func run(ctx context.Context, o options) error {
	config, err := kubernetesConfig(o)
	if err != nil {
		return err
	}
	kubeClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("using %s: %w", o.clusterSource(), err)
	}
	networkClient, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("using %s: %w", o.clusterSource(), err)
	}
	neutronClient, closeNeutron, err := connectNeutron(ctx, o)
	if err != nil {
		return err
	}
	defer closeNeutron()

	cluster, err := waitForKubernetes(ctx, config.Host, kubeClient, networkClient, o.clusterName)
	if err != nil {
		return nil // asked to stop before it came
	}

	// Events are sent in the background, and nobody waits for the last ones:
	// what they would tell is in the status, too.
	broadcaster := events.NewBroadcaster(eventSink{&events.EventSinkImpl{Interface: kubeClient.EventsV1()}})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("starting to send events: %w", err)
	}

	factory := informers.NewSharedInformerFactoryWithOptions(networkClient, 0, informers.WithTransform(dropManagedFields))
	controller, err := NewController(ctx, networkClient, factory.Samplecrd().V1().Networks(), neutronClient,
		broadcaster.NewRecorder(scheme.Scheme, controllerName), o.controllerOptions(cluster))
	if err != nil {
		return err
	}
	if err := serveMetrics(ctx, o.metricsAddress); err != nil {
		return err
	}
	if o.deployments.Which != NoDeployments {
		metadataClient, err := metadata.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("using %s: %w", o.clusterSource(), err)
		}
		deploymentFactory := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
		if err := controller.WatchDeployments(deploymentFactory.ForResource(deploymentResource).Informer(), metadataClient, o.deployments); err != nil {
			return err
		}
		deploymentFactory.Start(ctx.Done())
		defer deploymentFactory.Shutdown()
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	return controller.Run(ctx, o.workers, o.shutdownTimeout)
}

func (o options) controllerOptions(cluster string) Options {
	options := Options{Cluster: cluster, ResyncPeriod: o.resyncPeriod, AllowAdoption: o.allowAdoption}
	if o.deleteOrphans {
		options.OrphanGracePeriod = o.orphanGracePeriod
	}
	return options
}

// serveMetrics serves metrics in the background until the context ends.
func serveMetrics(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serving metrics at -metrics-bind-address %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving metrics ended")
		}
	}()
	klog.FromContext(ctx).Info("Serving metrics", "url", "http://"+listener.Addr().String()+"/metrics")
	return nil
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
	timeout := openstack.WithTimeout(o.neutronTimeout)
	if o.cloud != "" {
		client, err = openstack.NewFromCloud(o.cloud, timeout)
		if err != nil {
			return nil, nil, fmt.Errorf("-cloud or OS_CLOUD: %w", err)
		}
		tryNeutron(ctx, client, "cloud", o.cloud)
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
	client, err = openstack.New(endpoint, timeout)
	if err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("-neutron-endpoint: %w", err)
	}
	tryNeutron(ctx, client, "endpoint", endpoint)
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
