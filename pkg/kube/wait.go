package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Resource is the custom resource that a controller reconciles. Without a
// GroupVersion, it is a resource of Kubernetes, which needs no
// CustomResourceDefinition.
type Resource struct {
	schema.GroupVersion
	Kind string
	// Plural names several objects in messages, such as "Networks".
	Plural string
	// Spec and Status are the Go types of these fields.
	Spec, Status reflect.Type
	// List lists one object of a namespace at most.
	List func(ctx context.Context, namespace string) error
}

// Wait waits until the API server is usable: it serves the resource with all
// fields that the program knows, and permits to list it. It calls explain when the
// reason for waiting changes. Wait returns the name of the cluster, and those of
// several namespaces that the controller may not list: the others need not wait
// for them. It fails only if the context ends.
func (o Options) Wait(
	ctx context.Context, client kubernetes.Interface, resource Resource, explain func(string),
) (cluster string, forbidden []string, err error) {
	server, last := client.Discovery().RESTClient().Get().URL(), ""
	logger := klog.FromContext(ctx).WithValues("server", server.Scheme+"://"+server.Host)
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		if cluster, forbidden, err = o.try(ctx, client, resource); err == nil {
			return true, nil
		}
		if reason := resource.explain(err); reason != last {
			logger.Info("Waiting for Kubernetes", "reason", reason)
			last = reason
			explain("Kubernetes: " + reason)
		}
		return false, nil
	})
	if err == nil {
		logger.Info("Using Kubernetes", "clusterName", cluster)
	}
	return cluster, forbidden, err
}

// try sends the requests that must succeed before the controller can start.
func (o Options) try(
	ctx context.Context, client kubernetes.Interface, resource Resource,
) (cluster string, forbidden []string, err error) {
	for _, namespace := range o.Namespaces() {
		err := resource.List(ctx, namespace)
		switch {
		case apierrors.IsForbidden(err) && len(forbidden) < len(o.Namespaces())-1:
			klog.FromContext(ctx).Info("Starting without access to a namespace; its "+resource.Plural+
				" are reconciled once access is granted",
				"namespace", namespace, "reason", resource.explain(err))
			forbidden = append(forbidden, namespace)
		case err != nil:
			return "", nil, err
		}
	}
	if err := resource.checkSchema(ctx, client); err != nil {
		return "", nil, err
	}
	cluster, err = o.ClusterName(ctx, client)
	return cluster, forbidden, err
}

// explainedError is a text for users.
type explainedError string

func (e explainedError) Error() string { return string(e) }

// checkSchema returns an error if the CustomResourceDefinition is older than this
// program. If the controller may not read the schema, it is assumed to be right.
func (r Resource) checkSchema(ctx context.Context, client kubernetes.Interface) error {
	type properties map[string]struct{ Properties map[string]any }
	var api struct {
		Components struct {
			Schemas map[string]struct{ Properties properties }
		}
	}
	// The API server serves a new resource a moment before its schema.
	unpublished := explainedError("the API server does not publish the schema of " + r.Plural + " yet")
	text, err := client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis", r.GroupVersion.String()).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return unpublished
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(text, &api); err != nil {
		return fmt.Errorf("reading the schema of %s: %w", r.Plural, err)
	}
	for name, schema := range api.Components.Schemas {
		if !strings.HasSuffix(name, "."+r.Kind) {
			continue
		}
		var missing []string
		for part, fields := range map[string]reflect.Type{"spec": r.Spec, "status": r.Status} {
			for field := range fields.Fields() {
				key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if _, known := schema.Properties[part].Properties[key]; !known {
					missing = append(missing, part+"."+key)
				}
			}
		}
		if missing == nil {
			return nil
		}
		slices.Sort(missing)
		return explainedError(fmt.Sprintf("the CustomResourceDefinition is older than the controller "+
			"(it lacks the fields %s): install the matching version with kubectl apply -f crd/", strings.Join(missing, ", ")))
	}
	return unpublished
}

// explain says why the resource cannot be listed or watched, and what to do.
func (r Resource) explain(err error) string {
	var status apierrors.APIStatus
	var explained explainedError
	switch {
	case errors.As(err, &explained):
		return string(explained)
	case apierrors.IsNotFound(err) && isAboutNamespace(err):
		return err.Error()
	case apierrors.IsNotFound(err) && r.Empty():
		return "the API server does not serve " + r.Plural + ": check the address of the API server, " +
			"and its flag --runtime-config"
	case apierrors.IsNotFound(err):
		return "the CustomResourceDefinition for " + r.Plural + " is not installed: run kubectl apply -f crd/"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the API server denied access: %v", err)
	case errors.As(err, &status):
		return fmt.Sprintf("the API server returned an error: %v", err)
	}
	return fmt.Sprintf("the API server is unavailable: %v", err)
}

// isAboutNamespace reports whether an error of the API server names a namespace.
func isAboutNamespace(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// Explain returns an error that says what an error of the API server means, and what to do.
func (r Resource) Explain(err error) error { return explainedError(r.explain(err)) }

// LogWatchError returns a handler that logs why an informer has lost its watch,
// followed by a hint. The informer retries by itself, in the end about three
// times a minute. A watch that ends, or that has become too old, is routine. That the
// CustomResourceDefinition is missing may last: it is logged once, and again only if
// the informer has listed objects meanwhile.
func (r Resource) LogWatchError(hint string) cache.WatchErrorHandlerWithContext {
	var missing sync.Map // the last resource version of each reflector that has logged it
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		logger, message := klog.FromContext(ctx), "The watch for "+r.Plural+" was interrupted; retrying"+hint
		isRepeated := false
		if apierrors.IsNotFound(err) && !r.Empty() {
			version := reflector.LastSyncResourceVersion()
			before, isKnown := missing.Swap(reflector, version)
			isRepeated = isKnown && before == version
		}
		if isRepeated || apierrors.IsResourceExpired(err) || errors.Is(err, io.EOF) {
			logger.V(4).Info(message, "reason", r.explain(err))
			return
		}
		logger.Error(nil, message, "reason", r.explain(err))
	}
}
