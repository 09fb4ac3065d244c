package kube

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestLogWatchError: only a custom resource lacks a CustomResourceDefinition.
func TestLogWatchError(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
	reflector := cache.NewReflector(nil, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	Resource{Plural: "Deployments"}.LogWatchError("")(klog.NewContext(t.Context(), logger), reflector, notFound)
	const want = "the API server does not serve Deployments: check the address of the API server, and its flag --runtime-config"
	if got := logged(t, logger); !strings.Contains(got, want) {
		t.Errorf("the log is %s, want %q", got, want)
	}
}

// TestMissingCRD: while the CustomResourceDefinition is missing, an informer sends few
// requests, and logs that once. It logs it again if the same happens later.
func TestMissingCRD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		networks := Resource{GroupVersion: schema.GroupVersion{Group: "samplecrd.k8s.io", Version: "v1"}, Plural: "Networks"}
		var lists atomic.Int32
		var listed atomic.Pointer[metav1.PartialObjectMetadataList]
		notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
		informer := cache.NewSharedInformer(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				lists.Add(1)
				if list := listed.Load(); list != nil {
					return list, nil
				}
				return nil, notFound
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return nil, notFound
			},
		}, &metav1.PartialObjectMetadata{}, 0)
		if err := informer.SetWatchErrorHandlerWithContext(networks.LogWatchError("")); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()

		missing := func(when string, wantLogs int) {
			t.Helper()
			listed.Store(nil)
			lists.Store(0)
			time.Sleep(time.Hour) //nolint:forbidigo // no time passes in a bubble
			if n := lists.Load(); n < 60 || n > 300 {
				t.Errorf("%s, the informer lists %d times in an hour, want 60 to 300", when, n)
			}
			if n := strings.Count(logged(t, logger), "is not installed: run kubectl apply -f crd/"); n != wantLogs {
				t.Errorf("%s, it is logged %d times in all, want %d", when, n, wantLogs)
			}
		}
		missing("at first", 1)
		listed.Store(&metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
		time.Sleep(2 * time.Minute) //nolint:forbidigo // no time passes in a bubble
		missing("later", 2)
		cancel()
		<-done
	})
}
