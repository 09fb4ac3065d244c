// Command aggregated is an API server without storage: kubectl get neutronnetworks shows
// what Neutron has. It is registered as an APIService, so kube-apiserver passes requests for
// its group on to it. It only reads, and never writes to Neutron or to Kubernetes.
//
// view.go computes the objects, history.go gives them versions, and storage.go serves them.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/example/aggregated/openapi"
	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/store"
)

const program = "neutron-api"

// dnsName is the name of the Service in the certificate.
const dnsName = "neutron-api.neutron-api.svc"

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	v1 := schema.GroupVersion{Version: "v1"} // of what every API server returns
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})
}

// options are the values of the flags.
type options struct {
	serving        *genericoptions.SecureServingOptionsWithLoopback
	authentication *genericoptions.DelegatingAuthenticationOptions
	authorization  *genericoptions.DelegatingAuthorizationOptions
	kube           kube.Options

	cloud, endpoint, embeddedAddress, foreignNamespace, cluster string
	resyncPeriod                                                time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options, err := parse(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, options)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}

func parse(arguments []string) (o options, err error) {
	o = options{
		serving:        genericoptions.NewSecureServingOptions().WithLoopback(),
		authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
	}
	o.serving.BindPort, o.serving.HTTP2MaxStreamsPerConnection = 6443, 1000 // all clients share a connection
	flags := pflag.NewFlagSet(program, pflag.ContinueOnError)
	o.serving.AddFlags(flags)
	cluster := flag.NewFlagSet("", flag.ContinueOnError)
	o.kube.AddFlags(cluster)
	flags.AddGoFlag(cluster.Lookup("kubeconfig"))
	flags.AddGoFlag(cluster.Lookup("cluster-name"))
	flags.StringVar(&o.cloud, "cloud", os.Getenv("OS_CLOUD"), "The `name` of the cloud in clouds.yaml.")
	flags.StringVar(&o.endpoint, "neutron-endpoint", "", "The `URL` of a Neutron without authentication.")
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "",
		"The `address` of the embedded Neutron of a running controller.")
	flags.StringVar(&o.foreignNamespace, "foreign-namespace", "neutron-api",
		"The `namespace` that shows the networks that belong to no namespace of this cluster.")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 30*time.Second, "The pause between two lists of Neutron.")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	kubeconfig := cluster.Lookup("kubeconfig").Value.String()
	o.authentication.RemoteKubeConfigFile, o.authorization.RemoteKubeConfigFile = kubeconfig, kubeconfig
	if o.resyncPeriod <= 0 {
		return o, fmt.Errorf("--resync-period is %v: it must be positive", o.resyncPeriod)
	}
	return o, errors.Join(o.serving.Validate()...)
}

// run serves until the context ends.
func run(ctx context.Context, o options) error {
	client, err := connectNeutron(o)
	if err != nil {
		return err
	}
	config, err := o.kube.Config(ctx, program)
	if err != nil {
		return err
	}
	kubeClient, err := kubernetes.NewForConfig(kube.WithTimeout(config))
	if err != nil {
		return err
	}
	if o.cluster, err = o.kube.ClusterName(ctx, kubeClient); err != nil {
		return err
	}
	networkClient, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(networkClient, 0)
	resource := kube.Resource{GroupVersion: schema.GroupVersion(samplecrdv1.GroupVersion), Plural: "Networks"}
	existing, err := store.New(klog.FromContext(ctx), store.ByNamespace[networkinformers.TypedNetworkInformer]{
		metav1.NamespaceAll: factory.Samplecrd().V1().Networks(),
	}, resource.LogWatchError(""), observe.Nothing{})
	if err != nil {
		return err
	}
	view, err := newView(client, existing, newHistory(time.Now), o)
	if err != nil {
		return err
	}
	server, err := newServer(o, networks{view.history, view.state})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	go view.run(ctx)
	return server.PrepareRun().RunWithContext(ctx)
}

// connectNeutron returns a client for the Neutron that the flags name, as the command plan
// of the controller does.
func connectNeutron(o options) (client neutron.Client, err error) {
	switch {
	case o.embeddedAddress != "":
		client, err = openstack.New("http://"+o.embeddedAddress, openstack.Options{CloudIdentity: "embedded"})
	case o.endpoint != "":
		client, err = openstack.New(o.endpoint, openstack.Options{})
	case o.cloud != "":
		client, err = openstack.NewFromCloud(o.cloud, openstack.Options{})
	default:
		err = errors.New("no Neutron configured: set --cloud, --neutron-endpoint or --embedded-neutron-address")
	}
	return client, err
}

// newServer returns the API server. k8s.io/apiserver does nearly all of it: TLS, who the
// client is and what it may do, discovery, OpenAPI, encodings, audit, metrics. Left out are
// etcd, admission (nothing is written), and priority and fairness (kube-apiserver has it).
func newServer(o options, resource networks) (*genericapiserver.GenericAPIServer, error) {
	config := genericapiserver.NewRecommendedConfig(codecs)
	namer := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = program, program
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	// A watch has no end: without this, a stop waits a minute for the clients to leave.
	config.ShutdownWatchTerminationGracePeriod = time.Second
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(readOnly(handler), c)
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	if err := cmp.Or(
		o.serving.MaybeDefaultWithSelfSignedCerts("localhost", []string{dnsName}, loopback),
		o.serving.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig),
		o.authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig),
		o.authorization.ApplyTo(&config.Authorization),
	); err != nil {
		return nil, err
	}
	server, err := config.Complete().New(program, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	served := v1alpha1.GroupVersion
	group := genericapiserver.NewDefaultAPIGroupInfo(served.Group, scheme, metav1.ParameterCodec, codecs)
	group.VersionedResourcesStorageMap[served.Version] = map[string]rest.Storage{v1alpha1.Resource: resource}
	return server, server.InstallAPIGroup(&group)
}

// readOnly rejects writes, with what to do instead. It comes after authorization, so those who
// may not write anyway get 403.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		err := apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb)
		err.ErrStatus.Message = fmt.Sprintf("%s show what Neutron has, and cannot be changed (%s). Change the Network in "+
			"status.network instead: kubectl edit networks.samplecrd.k8s.io. If there is none, use the command openstack.",
			info.Resource, info.Verb)
		responsewriters.ErrorNegotiated(err, codecs, v1alpha1.GroupVersion, w, r)
	})
}
