// Command aggregated is an API server without storage: kubectl get neutronnetworks shows
// what Neutron has. It is registered as an APIService, so kube-apiserver passes requests for
// its group on to it. It only reads, and never writes to Neutron or to Kubernetes.
//
// view.go computes the objects, state.go gives them versions, and storage.go serves them.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"

	"github.com/samplecrd/network-controller/example/aggregated/openapi"
	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// program is also the namespace of the networks that belong to no namespace of this cluster.
const program = "neutron-api"

// dnsName is the name of the Service in the certificate.
const dnsName = "neutron-api.neutron-api.svc"

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // what every API server returns
}

// options are the values of the flags.
type options struct {
	server *genericoptions.RecommendedOptions

	cloud, endpoint, embeddedAddress, cluster string
	resyncPeriod                              time.Duration
}

func main() {
	options, err := parse(os.Args[1:])
	if err == nil {
		err = run(genericapiserver.SetupSignalContext(), options)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}

// parse returns what the command line requests. Left out of what is recommended for an API
// server are etcd, admission (nothing is written), and priority and fairness (kube-apiserver
// has it).
func parse(arguments []string) (o options, err error) {
	o.server = genericoptions.NewRecommendedOptions("", nil)
	o.server.Etcd, o.server.Admission, o.server.Features = nil, nil, nil
	o.server.SecureServing.BindPort = 6443
	flags := pflag.NewFlagSet(program, pflag.ExitOnError)
	o.server.AddFlags(flags)
	flags.StringVar(&o.cloud, "cloud", os.Getenv("OS_CLOUD"), "The `name` of the cloud in clouds.yaml.")
	flags.StringVar(&o.endpoint, "neutron-endpoint", "", "The `URL` of a Neutron without authentication.")
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "",
		"The `address` of the embedded Neutron of a running controller.")
	flags.StringVar(&o.cluster, "cluster-name", "",
		"The `name` of the cluster in owner markers, as for the controller. Defaults to the UID of kube-system.")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 30*time.Second, "The pause between two lists of Neutron.")
	_ = flags.Parse(arguments) // it exits
	kubeconfig := o.server.CoreAPI.CoreAPIKubeconfigPath
	o.server.Authentication.RemoteKubeConfigFile, o.server.Authorization.RemoteKubeConfigFile = kubeconfig, kubeconfig
	if o.resyncPeriod <= 0 {
		return o, fmt.Errorf("--resync-period is %v: it must be positive", o.resyncPeriod)
	}
	return o, errors.Join(o.server.Validate()...)
}

// run serves until the context ends.
func run(ctx context.Context, o options) error {
	neutronClient, err := connectNeutron(o)
	if err != nil {
		return err
	}
	config, err := serverConfig(o)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(kube.WithTimeout(config.ClientConfig))
	if err != nil {
		return err
	}
	if o.cluster == "" {
		if o.cluster, err = (kube.Options{}).ClusterName(ctx, client); err != nil {
			return err
		}
	}
	view, err := newView(ctx, neutronClient, config.ClientConfig, o)
	if err != nil {
		return err
	}
	server, err := config.Complete().New(program, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return err
	}
	served := v1alpha1.GroupVersion
	group := genericapiserver.NewDefaultAPIGroupInfo(served.Group, scheme, metav1.ParameterCodec, codecs)
	resources := map[string]rest.Storage{v1alpha1.Resource: networks{&view.present}}
	group.VersionedResourcesStorageMap[served.Version] = resources
	if err := server.InstallAPIGroup(&group); err != nil {
		return err
	}
	go view.run(ctx)
	return server.PrepareRun().RunWithContext(ctx)
}

// connectNeutron returns a client for the Neutron that the flags name, as the command plan
// of the controller does.
func connectNeutron(o options) (neutron.Client, error) {
	switch {
	case o.embeddedAddress != "":
		return openstack.New("http://"+o.embeddedAddress, openstack.Options{CloudIdentity: "embedded"})
	case o.endpoint != "":
		return openstack.New(o.endpoint, openstack.Options{})
	case o.cloud != "":
		return openstack.NewFromCloud(o.cloud, openstack.Options{})
	}
	return nil, errors.New("no Neutron configured: set --cloud, --neutron-endpoint or --embedded-neutron-address")
}

// serverConfig returns what the API server is made of. k8s.io/apiserver does nearly all of it:
// TLS, who the client is and what it may do, discovery, OpenAPI, encodings, audit, metrics.
func serverConfig(o options) (*genericapiserver.RecommendedConfig, error) {
	config := genericapiserver.NewRecommendedConfig(codecs)
	namer := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	// A watch has no end: without this, a stop waits a minute for the clients to leave.
	config.ShutdownWatchTerminationGracePeriod = time.Second
	return config, cmp.Or(
		o.server.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", []string{dnsName}, nil),
		o.server.ApplyTo(config),
	)
}
