package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
)

// How Kubernetes is reached, what is waited for there, and what is said when it
// does not come.

// dropManagedFields keeps out of the cache what nobody reads there, and what
// often is the larger part of an object.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// kubernetesConfig returns how to reach the API server.
func kubernetesConfig(o options) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if o.kubeconfig != "" || o.master != "" {
		config, err = clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	}
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, errors.New("no cluster to work for: this does not run in a pod of a cluster, and -kubeconfig is not given")
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("reading %s: it names no cluster, or has no current context", o.clusterSource())
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", o.clusterSource(), err)
	}
	if server, err := url.Parse(config.Host); err != nil || server.User != nil {
		return nil, fmt.Errorf("reading %s: the address of the API server is no URL, or holds a user name or password, which does not belong there", o.clusterSource())
	}
	config.UserAgent = controllerName
	config.QPS = -1 // the API server's priority and fairness shares it out better than each client can
	return config, nil
}

// clusterSource says where it is written which cluster to work for.
func (o options) clusterSource() string {
	switch {
	case o.kubeconfig != "":
		return "-kubeconfig " + o.kubeconfig
	case o.master != "":
		return "-master"
	}
	return "the in-cluster configuration"
}

// kubernetesClients are all that speaks to the API server.
type kubernetesClients struct {
	host     string
	kube     kubernetes.Interface
	networks clientset.Interface
	metadata metadata.Interface
	lock     *leaseLock // nil where there is no election

	// What informers use: their requests have no end.
	watchedNetworks clientset.Interface
	watchedMetadata metadata.Interface
}

// kubernetesTimeout is how long one request to the API server may take.
const kubernetesTimeout = 30 * time.Second

// connectKubernetes makes them. It makes no request.
func connectKubernetes(o options) (k kubernetesClients, err error) {
	config, err := kubernetesConfig(o)
	if err != nil {
		return k, err
	}
	k.host = config.Host
	bounded := rest.CopyConfig(config)
	bounded.Timeout = kubernetesTimeout
	var errs [5]error
	k.kube, errs[0] = kubernetes.NewForConfig(bounded)
	k.networks, errs[1] = clientset.NewForConfig(bounded)
	k.metadata, errs[2] = metadata.NewForConfig(bounded)
	k.watchedNetworks, errs[3] = clientset.NewForConfig(config)
	k.watchedMetadata, errs[4] = metadata.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return k, fmt.Errorf("using %s: %w", o.clusterSource(), err)
	}
	k.lock, err = o.election.lock(config)
	return k, err
}

// waitForKubernetes waits until the API server answers and knows Networks, and
// says what it waits for. It returns the name of the cluster, and which of the
// namespaces may not be looked at: the others need not suffer for that. It fails
// only when the context ends.
func waitForKubernetes(ctx context.Context, k kubernetesClients, o options, tell func(string)) (cluster string, forbidden []string, err error) {
	logger, said := klog.FromContext(ctx), ""
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if cluster, forbidden, err = tryKubernetes(ctx, k, o); err == nil {
			return true, nil
		}
		if why := explain(err); why != said {
			logger.Info("Waiting for Kubernetes", "server", k.host, "why", why)
			said = why
			tell("Kubernetes: " + why)
		}
		return false, nil
	})
	if err == nil {
		logger.Info("Using Kubernetes", "server", k.host, "clusterName", cluster)
	}
	return cluster, forbidden, err
}

// tryKubernetes makes the requests that must succeed before there is any use in
// starting.
func tryKubernetes(ctx context.Context, k kubernetesClients, o options) (cluster string, forbidden []string, err error) {
	for _, namespace := range o.watched() {
		_, err := k.networks.SamplecrdV1().Networks(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsForbidden(err) && len(forbidden) < len(o.watched())-1:
			klog.FromContext(ctx).Info("Starting without a namespace: its Networks are looked at when that is allowed", "namespace", namespace, "why", explain(err))
			forbidden = append(forbidden, namespace)
		case err != nil:
			return "", nil, err
		}
	}
	if err := knowsAllFields(ctx, k.kube); err != nil {
		return "", nil, err
	}
	if o.clusterName != "" {
		return o.clusterName, forbidden, nil
	}
	cluster, err = nameOfCluster(ctx, k.kube)
	return cluster, forbidden, err
}

// oldCRD are the fields of Networks that the API server does not know: it would
// refuse every status that has one.
type oldCRD []string

func (e oldCRD) Error() string { return "it does not know " + strings.Join(e, ", ") }

// errNoSchema: the API server serves Networks a moment before it tells their
// schema.
var errNoSchema = errors.New("the schema of Networks is not there yet")

// knowsAllFields returns an error where the CustomResourceDefinition is older
// than this program. Where we may not ask, it is believed to be right.
func knowsAllFields(ctx context.Context, kubeClient kubernetes.Interface) error {
	type properties map[string]struct{ Properties map[string]any }
	var api struct {
		Components struct {
			Schemas map[string]struct{ Properties properties }
		}
	}
	text, err := kubeClient.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis", samplecrdv1.GroupVersion.String()).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return errNoSchema
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil // we may not ask
	case err != nil:
		return err
	}
	if err := json.Unmarshal(text, &api); err != nil {
		return fmt.Errorf("reading the schema of Networks: %w", err)
	}
	var unknown oldCRD
	found := false
	for name, schema := range api.Components.Schemas {
		if !strings.HasSuffix(name, ".Network") {
			continue
		}
		found = true
		for part, of := range map[string]reflect.Type{"spec": reflect.TypeFor[samplecrdv1.NetworkSpec](), "status": reflect.TypeFor[samplecrdv1.NetworkStatus]()} {
			for field := range of.Fields() {
				key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if _, known := schema.Properties[part].Properties[key]; !known {
					unknown = append(unknown, part+"."+key)
				}
			}
		}
	}
	if slices.Sort(unknown); unknown != nil {
		return unknown
	}
	if !found {
		return errNoSchema
	}
	return nil
}

// nameOfCluster returns what stays the same for as long as a cluster exists,
// and is different in every cluster.
func nameOfCluster(ctx context.Context, kubeClient kubernetes.Interface) (string, error) {
	namespace, err := kubeClient.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the namespace %s for the cluster's name, which -cluster-name makes needless: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// explain puts into words why Networks cannot be listed or watched.
func explain(err error) string {
	var status apierrors.APIStatus
	var old oldCRD
	switch {
	case errors.Is(err, errNoSchema):
		return err.Error()
	case errors.As(err, &old):
		return fmt.Sprintf("the CustomResourceDefinition is older than this controller (%v): install the one that belongs to it with kubectl apply -f crd/", old)
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return err.Error()
	case apierrors.IsNotFound(err):
		return "the API server does not know Networks: install the CustomResourceDefinition with kubectl apply -f crd/"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the API server does not allow it: %v", err)
	case errors.As(err, &status):
		return fmt.Sprintf("the API server answers with an error: %v", err)
	}
	return fmt.Sprintf("the API server does not answer: %v", err)
}

// logWatchError says why the informer has lost its watch. It tries again by
// itself. A watch that just ends, or has become too old, is nothing unusual.
func logWatchError(ctx context.Context, _ *cache.Reflector, err error) {
	logInterrupted(ctx, "Watching Networks was interrupted, and is tried again", err)
}

// logDeploymentWatchError does the same for Deployments.
func logDeploymentWatchError(ctx context.Context, _ *cache.Reflector, err error) {
	logInterrupted(ctx, "Watching Deployments was interrupted, and is tried again (it is not needed with -deployment-networks=none)", err)
}

func logInterrupted(ctx context.Context, text string, err error) {
	logger := klog.FromContext(ctx)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
		logger = logger.V(4)
	}
	logger.Info(text, "why", explain(err))
}
