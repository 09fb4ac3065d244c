package observe

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestKubernetesOperation(t *testing.T) {
	for request, want := range map[[2]string]string{
		{http.MethodGet, "/apis/samplecrd.k8s.io/v1/networks"}:                               "list networks",
		{http.MethodGet, "/apis/samplecrd.k8s.io/v1/namespaces/shop/networks?watch=true"}:    "watch networks",
		{http.MethodGet, "/apis/samplecrd.k8s.io/v1/namespaces/shop/networks/web"}:           "get networks",
		{http.MethodPatch, "/apis/samplecrd.k8s.io/v1/namespaces/shop/networks/web/status"}:  "patch networks status",
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a"}:     "update leases",
		{http.MethodPost, "/api/v1/namespaces/shop/events"}:                                  "create events",
		{http.MethodGet, "/api/v1/namespaces/kube-system"}:                                   "get namespaces",
		{http.MethodGet, "/api/v1/namespaces"}:                                               "list namespaces",
		{http.MethodDelete, "/apis/samplecrd.k8s.io/v1/namespaces/shop/networks/namespaces"}: "delete networks",
		{http.MethodGet, "/apis"}: "get",
		{http.MethodGet, "/"}:     "list ",
	} {
		if got := KubernetesOperation(httptest.NewRequest(request[0], request[1], http.NoBody)); got != want {
			t.Errorf("KubernetesOperation(%s %s) = %q, want %q", request[0], request[1], got, want)
		}
	}
}
