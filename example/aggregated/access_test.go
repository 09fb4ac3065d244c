package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

const path = "/apis/neutron.samplecrd.k8s.io/v1alpha1/"

// get sends a request.
func (s *site) get(client *http.Client, url string, header http.Header) (code int, body string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.Fatal(err)
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// TestAccess: a tenant sees the networks of its namespace, through kube-apiserver and past it.
func TestAccess(t *testing.T) {
	s := newSite(t)
	s.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: tenant}}`)
	s.Do("create", "serviceaccount", "-n", "tenant", "reader")
	s.Do("create", "rolebinding", "-n", "tenant", "reader",
		"--clusterrole=neutron-api-view", "--serviceaccount=tenant:reader")
	owner := neutron.Owner{Cluster: s.clusterName(), Namespace: "tenant", Name: "web"}
	id := s.create("own", owner.NetworkMarker("", false), "")
	secret := s.create("secret", "", "")
	s.wantObjects(metav1.ListOptions{FieldSelector: "metadata.namespace=tenant"}, "tenant/own: Orphaned")

	config := rest.AnonymousClientConfig(cluster.RESTConfig())
	config.BearerToken = strings.TrimSpace(s.Do("create", "token", "-n", "tenant", "reader"))
	tenant := clientOf(t, config)
	list, err := tenant.Namespace("tenant").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("the tenant sees %v, %v", list, err)
	}
	_, all := tenant.List(t.Context(), metav1.ListOptions{})
	_, others := tenant.Namespace("neutron-api").Get(t.Context(), secret, metav1.GetOptions{})
	for _, err := range []error{all, others} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("what the tenant may not see: %v, want 403", err)
		}
	}
	if _, err := tenant.Namespace("tenant").Get(t.Context(), secret, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a network of another namespace: %v, want 404", err)
	}

	// Past kube-apiserver.
	tls := rest.TLSClientConfig{CAFile: filepath.Join(s.folder, "apiserver.crt"), ServerName: dnsName}
	direct, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: tls})
	if err != nil {
		t.Fatal(err)
	}
	bearer := http.Header{"Authorization": {"Bearer " + config.BearerToken}}
	forged := http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
	for _, request := range []struct {
		path   string
		header http.Header
		want   int
	}{
		{path + "neutronnetworks", http.Header{}, http.StatusForbidden},
		{path + "neutronnetworks", forged, http.StatusForbidden},
		{path + "neutronnetworks", http.Header{"Authorization": {"Bearer x"}}, http.StatusUnauthorized},
		{"/metrics", forged, http.StatusForbidden},
		{"/readyz", http.Header{}, http.StatusOK},
		{path + "neutronnetworks", bearer, http.StatusForbidden},
		{path + "namespaces/neutron-api/neutronnetworks", bearer, http.StatusForbidden},
		{path + "namespaces/tenant/neutronnetworks/" + id, bearer, http.StatusOK},
	} {
		if code, body := s.get(direct, "https://127.0.0.1:"+s.port+request.path, request.header); code != request.want {
			t.Errorf("GET %s with %v: %d %s, want %d", request.path, request.header, code, body, request.want)
		}
	}
}

// TestWrites: a write is rejected, and none reaches Neutron, also after a restart. To
// Kubernetes, the account of the server may write nothing.
func TestWrites(t *testing.T) {
	s := newSite(t)
	id := s.create("kept", "", "")
	s.wantObjects(metav1.ListOptions{}, "neutron-api/kept: Foreign")
	before := len(s.neutron.Requests())
	for _, args := range [][]string{
		{"delete", "nn", id, "-n", "neutron-api"},
		{"label", "nn", id, "-n", "neutron-api", "a=b"},
		{"delete", "nn", "--all", "-n", "neutron-api"},
		{"patch", "nn", id, "-n", "neutron-api", "--type=merge", "-p", `{"status":{"name":"x"}}`},
	} {
		_, err := cluster.Kubectl(t.Context(), args...)
		if err == nil || !strings.Contains(err.Error(), "MethodNotAllowed") {
			t.Errorf("kubectl %s: %v, want 405", strings.Join(args, " "), err)
		}
	}
	s.program.Kill()
	s.start()
	s.wantObjects(metav1.ListOptions{}, "neutron-api/kept: Foreign")
	for _, request := range s.neutron.Requests()[before:] {
		if request.Method != http.MethodGet {
			t.Errorf("%s %s was sent to Neutron", request.Method, request.Path)
		}
	}
}

// TestHostileInput: what cannot be served is the client's error, and no crash.
func TestHostileInput(t *testing.T) {
	s := newSite(t)
	s.create("name\x1b[31m\"'<script>"+strings.Repeat("x", 200), "samplecrd.k8s.io network owner: a/b", "")
	s.create("\u202e", "samplecrd.k8s.io retained: /", "")
	s.wantObjects(metav1.ListOptions{Limit: 1, FieldSelector: "status.name=\u202e"}, "neutron-api/\u202e: Foreign")
	client, err := rest.HTTPClientFor(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"neutronnetworks?resourceVersion=x":                                              http.StatusBadRequest,
		"neutronnetworks?watch=true&resourceVersion=-1":                                  http.StatusBadRequest,
		"neutronnetworks?resourceVersion=18446744073709551615":                           http.StatusGatewayTimeout,
		"neutronnetworks?resourceVersion=1&resourceVersionMatch=Exact":                   http.StatusGone,
		"neutronnetworks?fieldSelector=spec.secret%3Dx":                                  http.StatusBadRequest,
		"neutronnetworks?fieldSelector=%3D%3D%3D":                                        http.StatusBadRequest,
		"neutronnetworks?sendInitialEvents=true":                                         http.StatusUnprocessableEntity,
		"namespaces/neutron-api/neutronnetworks/" + strings.Repeat("x", 4000):            http.StatusNotFound,
		"namespaces/neutron-api/neutronnetworks/..%2f..%2fx":                             http.StatusNotFound,
		"namespaces/neutron-api/neutronnetworks?labelSelector=" + strings.Repeat("(", 9): http.StatusBadRequest,
	} {
		if code, body := s.get(client, cluster.RESTConfig().Host+path+query, http.Header{}); code != want {
			t.Errorf("%.100s: %d %s, want %d", query, code, body, want)
		}
	}
	s.wantObjects(metav1.ListOptions{FieldSelector: "status.name=\u202e"}, "neutron-api/\u202e: Foreign")
}

// TestNeutronDown: what was listed is served with a warning. A server that has never listed
// Neutron says so, and is available nevertheless.
func TestNeutronDown(t *testing.T) {
	s := newSite(t)
	s.create("known", "", "")
	s.wantObjects(metav1.ListOptions{}, "neutron-api/known: Foreign")
	restore := s.neutron.Inject(embedded.Fault{Status: http.StatusServiceUnavailable})
	wantWarning := func(pattern string) {
		t.Helper()
		s.eventually(func() error {
			output, warnings, err := cluster.KubectlWarnings(t.Context(), "get", "nn", "-A")
			isShown := strings.Contains(string(output), "Foreign") && regexp.MustCompile(pattern).Match(warnings)
			if err == nil && !isShown {
				err = fmt.Errorf("kubectl prints %s and %s", output, warnings)
			}
			return err
		})
	}
	wantWarning("it cannot be listed now: ")
	restore()
	wantWarning("^$")

	restore = s.neutron.Inject(embedded.Fault{Status: http.StatusServiceUnavailable})
	s.program.Kill()
	s.start()
	s.eventually(func() error {
		_, err := s.client.List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "503") {
			return fmt.Errorf("the error is %w, want 503 with the failure of Neutron", err)
		}
		return nil
	})
	s.Do("wait", "--for=condition=Available", "--timeout=2m", "apiservice/v1alpha1.neutron.samplecrd.k8s.io")
	restore()
	s.wantObjects(metav1.ListOptions{}, "neutron-api/known: Foreign")
}
