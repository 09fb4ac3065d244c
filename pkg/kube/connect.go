// Package kube connects a controller to a Kubernetes cluster: configuration,
// clients, waiting until the API server is usable, and what every informer and
// event recorder needs.
package kube

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// Options say which cluster to connect to, and which of its namespaces to watch.
type Options struct {
	kubeconfig, master string
	clusterName        string
	namespaces         []string // all if empty
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"The `path` to a kubeconfig file. "+
			"Defaults to the files in the environment variable KUBECONFIG, then to the in-cluster configuration of a pod, "+
			"then to ~/.kube/config.")
	flags.StringVar(&o.master, "master", "", "The `URL` of the API server. Overrides the server in the kubeconfig file.")
	flags.StringVar(&o.clusterName, "cluster-name", "",
		"The `name` that identifies this Kubernetes cluster in owner markers. "+
			"It must be unique in the OpenStack project and must never change. "+
			"Defaults to the UID of the namespace kube-system.")
	flags.Var((*CommaSeparated)(&o.namespaces), "namespaces", "Comma-separated `namespaces` whose Networks and "+
		"Deployments are watched. Defaults to all namespaces.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate(given map[string]bool) error {
	if o.clusterName != "" && (len(o.clusterName) > 63 || len(validation.IsValidLabelValue(o.clusterName)) > 0) {
		return fmt.Errorf("-cluster-name is %q: it must consist of at most 63 letters, digits, '-', '_' or '.', "+
			"and start and end with a letter or digit", o.clusterName)
	}
	if given["namespaces"] && len(o.namespaces) == 0 {
		return errors.New("-namespaces is empty: omit the flag to watch all namespaces")
	}
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); problems != nil {
			return fmt.Errorf("-namespaces contains %q, which is not a valid namespace name: %s", namespace, problems[0])
		}
	}
	return nil
}

// Namespaces returns the namespaces to watch: [metav1.NamespaceAll] for all.
func (o Options) Namespaces() []string {
	if len(o.namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return o.namespaces
}

// AreNamespacesLimited reports whether only some namespaces are watched.
func (o Options) AreNamespacesLimited() bool { return len(o.namespaces) > 0 }

// IsInPod reports whether the program runs in a pod: Kubernetes sets this variable in
// every container.
func IsInPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// namespaceFile contains the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// DefaultNamespace returns the namespace of objects that do not name one: that of the
// current context, as in kubectl, or of the pod that the program runs in.
func (o Options) DefaultNamespace() string {
	_, from, _ := o.load()
	return cmp.Or(from.namespace, metav1.NamespaceDefault)
}

// CommaSeparated is a flag with commas, or spaces, between its sorted values.
type CommaSeparated []string

// String implements flag.Value.
func (c *CommaSeparated) String() string { return strings.Join(*c, ",") }

// Set implements flag.Value.
func (c *CommaSeparated) Set(text string) error {
	values := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(values)
	*c = slices.Compact(values)
	return nil
}

// Config returns the configuration for the cluster, and logs its source. Transports
// wrap the one to the API server.
func (o Options) Config(
	ctx context.Context, userAgent string, transports ...func(http.RoundTripper) http.RoundTripper,
) (*rest.Config, error) {
	config, from, err := o.load()
	switch {
	case from.isDefault && clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no cluster configured: set -kubeconfig or KUBECONFIG, create ~/.kube/config, " +
			"or run the controller in a pod of the cluster with the token of a ServiceAccount")
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("reading %s: it does not exist, or it contains no cluster or no current context", from.name)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", from.name, err)
	}
	if server, err := url.Parse(config.Host); err != nil || server.User != nil || server.RawQuery != "" {
		return nil, fmt.Errorf("reading %s: the address of the API server must be a URL without user name, "+
			"password and query", from.name)
	}
	klog.FromContext(ctx).Info("Connecting to Kubernetes",
		"configuration", from.name, "context", from.context, "server", config.Host)
	config.UserAgent = userAgent
	config.QPS = -1 // the API server's priority and fairness limits clients better than they can themselves
	for _, transport := range transports {
		config.Wrap(transport)
	}
	return config, nil
}

// source is the origin of a configuration.
type source struct {
	name, context, namespace string
	isDefault                bool // no flag and no variable names it
}

// load returns the first configuration that there is, in the order of kubectl:
// -kubeconfig, KUBECONFIG, the pod, ~/.kube/config. Only the last one may be missing
// without an error, so that a mistyped path does not lead to another cluster.
func (o Options) load() (*rest.Config, source, error) {
	var rules clientcmd.ClientConfigLoadingRules
	var from source
	variable := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	switch {
	case o.kubeconfig != "":
		rules.ExplicitPath, from.name = o.kubeconfig, "-kubeconfig "+o.kubeconfig
	case variable != "":
		rules.Precedence, from.name = filepath.SplitList(variable), "KUBECONFIG "+variable
	default:
		if config, err := rest.InClusterConfig(); err == nil && o.master == "" {
			namespace, _ := os.ReadFile(namespaceFile)
			return config, source{name: "the in-cluster configuration", namespace: strings.TrimSpace(string(namespace))}, nil
		}
		from = source{name: "~/.kube/config", isDefault: true}
		if home, err := os.UserHomeDir(); err == nil {
			rules.Precedence = []string{filepath.Join(home, ".kube", "config")}
		}
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, from, err
	}
	if context := raw.Contexts[raw.CurrentContext]; context != nil {
		from.namespace = context.Namespace
	}
	if from.context = raw.CurrentContext; from.context == "" && o.master != "" && from.isDefault {
		from.name = "-master"
	}
	overrides := &clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: o.master}}
	config, err := clientcmd.NewDefaultClientConfig(*raw, overrides).ClientConfig()
	return config, from, err
}

// requestTimeout bounds a request to the API server, except for watches.
const requestTimeout = 30 * time.Second

// WithTimeout returns a copy of a configuration for requests that are bounded.
// Informers use the original: a watch does not end.
func WithTimeout(config *rest.Config) *rest.Config {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = requestTimeout
	return bounded
}

// ClusterName returns the name of the cluster: the one of the flag, or else a name
// that no other cluster has and that does not change as long as the cluster
// exists.
func (o Options) ClusterName(ctx context.Context, client kubernetes.Interface) (string, error) {
	if o.clusterName != "" {
		return o.clusterName, nil
	}
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the UID of the namespace %s, the default of -cluster-name: %w",
			metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
