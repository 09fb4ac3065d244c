// Package kube connects a controller to a Kubernetes cluster: configuration,
// clients, waiting until the API server is usable, and what every informer and
// event recorder needs.
package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say which cluster to connect to, and which of its namespaces to watch.
type Options struct {
	kubeconfig, master string
	clusterName        string
	namespaces         []string // all if empty
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "The `path` to a kubeconfig file. Defaults to the in-cluster configuration.")
	flags.StringVar(&o.master, "master", "", "The `URL` of the API server. Overrides the server in the kubeconfig file.")
	flags.StringVar(&o.clusterName, "cluster-name", "", "The `name` that identifies this Kubernetes cluster in owner markers. It must be unique in the OpenStack project and must never change. Defaults to the UID of the namespace kube-system.")
	flags.Var((*CommaSeparated)(&o.namespaces), "namespaces", "Comma-separated `namespaces` whose Networks and Deployments are watched. Defaults to all namespaces.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate(given map[string]bool) error {
	if o.clusterName != "" && (len(o.clusterName) > 63 || len(validation.IsValidLabelValue(o.clusterName)) > 0) {
		return fmt.Errorf("-cluster-name is %q: it must consist of at most 63 letters, digits, '-', '_' or '.', and start and end with a letter or digit", o.clusterName)
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

// namespaceFile contains the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// IsInCluster reports whether the in-cluster configuration is used.
func (o Options) IsInCluster() bool {
	return o.kubeconfig == "" && o.master == "" && OwnNamespace() != ""
}

// OwnNamespace returns the namespace of the pod that the program runs in, or an
// empty string outside of a cluster.
func OwnNamespace() string {
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// DefaultNamespace returns the namespace of objects that do not name one: that of the
// current context, as in kubectl, or of the pod that the program runs in.
func (o Options) DefaultNamespace() string {
	if o.kubeconfig != "" {
		config, err := clientcmd.LoadFromFile(o.kubeconfig)
		if err == nil && config.Contexts[config.CurrentContext] != nil && config.Contexts[config.CurrentContext].Namespace != "" {
			return config.Contexts[config.CurrentContext].Namespace
		}
	} else if namespace := OwnNamespace(); namespace != "" {
		return namespace
	}
	return metav1.NamespaceDefault
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

// Config returns the configuration for the cluster. Transports wrap the one to the
// API server.
func (o Options) Config(userAgent string, transports ...func(http.RoundTripper) http.RoundTripper) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if o.kubeconfig != "" || o.master != "" {
		config, err = clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	}
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, errors.New("no cluster configured: set -kubeconfig, or run the controller in a pod of the cluster")
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("reading %s: it contains no cluster or no current context", o.source())
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", o.source(), err)
	}
	if server, err := url.Parse(config.Host); err != nil || server.User != nil {
		return nil, fmt.Errorf("reading %s: the address of the API server must be a URL without user name and password", o.source())
	}
	config.UserAgent = userAgent
	config.QPS = -1 // the API server's priority and fairness limits clients better than they can themselves
	for _, transport := range transports {
		config.Wrap(transport)
	}
	return config, nil
}

// source names the origin of the configuration.
func (o Options) source() string {
	switch {
	case o.kubeconfig != "":
		return "-kubeconfig " + o.kubeconfig
	case o.master != "":
		return "-master"
	}
	return "the in-cluster configuration"
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
		return "", fmt.Errorf("reading the UID of the namespace %s, the default of -cluster-name: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
