package kube

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestLogWatchError: only a custom resource lacks a CustomResourceDefinition.
func TestLogWatchError(t *testing.T) {
	for name, test := range map[string]struct {
		resource Resource
		want     string
	}{
		"a custom resource":      {Resource{GroupVersion: schema.GroupVersion{Group: "samplecrd.k8s.io", Version: "v1"}, Plural: "Networks"}, "the CustomResourceDefinition for Networks is not installed: run kubectl apply -f crd/"},
		"a resource of the core": {Resource{Plural: "Deployments"}, "the API server does not serve Deployments: check the address of the API server, and its flag --runtime-config"},
	} {
		t.Run(name, func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			notFound := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true)
			test.resource.LogWatchError("")(klog.NewContext(t.Context(), logger), nil, notFound)
			underlier, ok := logger.GetSink().(ktesting.Underlier)
			if !ok {
				t.Fatal("the logger has no buffer")
			}
			if got := underlier.GetBuffer().String(); !strings.Contains(got, test.want) {
				t.Errorf("the log is %s, want %q", got, test.want)
			}
		})
	}
}
