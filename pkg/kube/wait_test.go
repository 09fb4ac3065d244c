package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestLogWatchError: a watch that ends, or is too old, is not logged. Only a custom resource
// lacks a CustomResourceDefinition.
func TestLogWatchError(t *testing.T) {
	notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	reflector := cache.NewReflector(nil, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	for err, want := range map[error]string{
		notFound: "the API server does not serve Deployments: check the address of the API server",
		apierrors.NewInternalError(errors.New("etcd")): "the API server returned an error: ",
		apierrors.NewResourceExpired("too old"):        "",
		fmt.Errorf("watching: %w", io.EOF):             "",
	} {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		Resource{Plural: "Deployments"}.LogWatchError("")(klog.NewContext(t.Context(), logger), reflector, err)
		if got := logged(t, logger); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: the log is %q, want %q", err, got, want)
		}
	}
}

// TestMissingCRD: that the CustomResourceDefinition is missing is logged once, and again if an
// informer has listed objects meanwhile.
func TestMissingCRD(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	ctx := klog.NewContext(t.Context(), logger)
	notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	reflector := cache.NewReflector(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, notFound },
	}, &metav1.PartialObjectMetadata{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	lost := Resource{GroupVersion: schema.GroupVersion{Group: "samplecrd.k8s.io", Version: "v1"}, Plural: "Networks"}.LogWatchError("")
	want := func(when string, logs int) {
		t.Helper()
		for range 3 {
			lost(ctx, reflector, notFound)
		}
		if n := strings.Count(logged(t, logger), "is not installed: run kubectl apply -f crd/"); n != logs {
			t.Errorf("%s, it is logged %d times in all, want %d", when, n, logs)
		}
	}
	want("at first", 1)
	_ = reflector.ListAndWatchWithContext(ctx)
	want("after a list", 2)
}

// TestForbiddenNamespace: the start does not wait for a namespace that the controller may not
// list, but for one that it cannot list for another reason.
func TestForbiddenNamespace(t *testing.T) {
	client := newForbiddenClient()
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no rule"))
	for name, test := range map[string]struct {
		errs map[string]error // by namespace
		want int              // forbidden namespaces, or -1 if the start has to wait
	}{
		"all permitted":     {nil, 0},
		"one forbidden":     {map[string]error{"b": forbidden}, 1},
		"all forbidden":     {map[string]error{"a": forbidden, "b": forbidden}, -1},
		"one not available": {map[string]error{"b": errors.New("timeout")}, -1},
		"one is not there":  {map[string]error{"b": apierrors.NewNotFound(schema.GroupResource{}, "")}, -1},
	} {
		options := Options{clusterName: "test", namespaces: []string{"a", "b"}}
		resource := Resource{List: func(_ context.Context, namespace string) error { return test.errs[namespace] }}
		_, got, err := options.try(t.Context(), client, resource)
		if (err != nil) != (test.want < 0) || err == nil && len(got) != test.want {
			t.Errorf("%s: the forbidden namespaces are %v (%v), want %d", name, got, err, test.want)
		}
	}
}

// TestReasonForWaiting: the reason is explained and logged when it changes, and not with each
// attempt.
func TestReasonForWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		away := errors.New("connection refused")
		notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")
		attempts := []error{away, away, away, notFound, notFound, away, away, nil}
		resource := Resource{Plural: "Networks", List: func(context.Context, string) error {
			err := attempts[0]
			attempts = attempts[1:]
			return err
		}}
		const unavailable = "Kubernetes: the API server is unavailable: connection refused"
		want := []string{unavailable, `Kubernetes: namespaces "kube-system" not found`, unavailable}
		var explained []string
		cluster, _, err := Options{clusterName: "test"}.Wait(klog.NewContext(t.Context(), logger), newForbiddenClient(),
			resource, func(reason string) { explained = append(explained, reason) })
		if logs := strings.Count(logged(t, logger), "Waiting for Kubernetes"); err != nil || cluster != "test" ||
			logs != len(want) || !slices.Equal(explained, want) {
			t.Errorf("the cluster is %q (%v), and %d reasons are logged: %q, want %q", cluster, err, logs, explained, want)
		}
	})
}

// newForbiddenClient returns a client that may read nothing.
func newForbiddenClient() kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(&rest.Config{Transport: forbidding{}})
}

type forbidding struct{}

func (forbidding) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody}, nil
}
