package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/running"
)

var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(c *controlplane.Cluster) { cluster = c }))
}

// TestHealth: /livez fails while a check fails, /readyz while something is missing.
func TestHealth(t *testing.T) {
	health, failure := NewHealth(), error(nil)
	health.AddLiveCheck("workers", func(*http.Request) error { return failure })
	get := func(path string) string {
		response := httptest.NewRecorder()
		health.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return http.StatusText(response.Code) + ": " + strings.TrimSpace(response.Body.String())
	}
	want := func(path, want string) {
		t.Helper()
		if got := get(path); got != want {
			t.Errorf("GET %s: got %q, want %q", path, got, want)
		}
	}
	want("/readyz", "Service Unavailable: waiting: the controller is starting")
	want("/livez", "OK: ok")
	health.WaitFor("Kubernetes")
	want("/readyz", "Service Unavailable: waiting: Kubernetes")
	health.ReadyAs("standby")
	want("/readyz", "OK: ok: standby")
	health.ReadyAs("")
	want("/readyz", "OK: ok")
	failure = errors.New("stuck")
	want("/livez", "Service Unavailable: workers: stuck")
	want("/readyz", "OK: ok")
}

// newToken returns a token of a new ServiceAccount in the namespace default.
func newToken(k running.Kubectl, name string) string {
	k.Helper()
	k.Do("create", "serviceaccount", name)
	return strings.TrimSpace(k.Do("create", "token", name))
}

// permit permits a ServiceAccount to get a path.
func permit(k running.Kubectl, account, path string) {
	k.Helper()
	k.Do("create", "clusterrole", account, "--verb=get", "--non-resource-url="+path)
	k.Do("create", "clusterrolebinding", account, "--clusterrole="+account, "--serviceaccount=default:"+account)
	wantAccess(k, account, path, "HELP|NotFound")
}

// wantAccess waits until the authorizer of the API server knows what an account may get.
func wantAccess(k running.Kubectl, account, path, pattern string) {
	k.Helper()
	k.Want(pattern, "get", "--raw", path, "--as=system:serviceaccount:default:"+account)
}

// TestAuthorizedMetrics: on an address other than loopback, metrics are served over
// TLS to those whom RBAC permits to read them.
func TestAuthorizedMetrics(t *testing.T) {
	client, k := kubernetes.NewForConfigOrDie(cluster.RESTConfig()), running.Kubectl{T: t, Cluster: cluster}
	reader, stranger := newToken(k, "reader"), newToken(k, "stranger")
	permit(k, "reader", "/metrics")
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the metrics") })
	endpoint, err := Options{metricsAddress: ":8443"}.metricsEndpoint(metrics, client)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(endpoint.Handler)
	server.TLS = endpoint.TLS
	server.StartTLS()
	defer server.Close()
	scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the certificate is self-signed
	const tokenRequired = "401 Unauthorized: a bearer token is required: the user or ServiceAccount must be permitted to get the nonResourceURL /metrics"
	for authorization, want := range map[string]string{
		"Bearer " + reader: "200 OK: the metrics", "Bearer " + stranger: "403 Forbidden: Forbidden",
		"Bearer nonsense": "401 Unauthorized: Unauthorized", "Basic " + reader: tokenRequired, "Bearer ": tokenRequired, "": tokenRequired,
	} {
		for _, again := range []string{"", ", again"} { // from the cache of decisions
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", authorization)
			response, err := scraper.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if got := response.Status + ": " + strings.TrimSpace(string(body)); got != want {
				t.Errorf("with %.20s%s: %.300s, want %s", authorization, again, got, want)
			}
		}
	}
}

// TestDecisionsExpire: a permission that was withdrawn ends with the lifetime of the
// decision. Strangers on the same host do not lock out who has one.
func TestDecisionsExpire(t *testing.T) {
	client, k := kubernetes.NewForConfigOrDie(cluster.RESTConfig()), running.Kubectl{T: t, Cluster: cluster}
	now := testingclock.NewFakePassiveClock(time.Now())
	authorizer := newAuthorizer(client, http.NotFoundHandler(), now)
	token := newToken(k, "leaving")
	permit(k, "leaving", "/leaving")
	want := func(want int) {
		t.Helper()
		if got, err := authorizer.decide(t.Context(), "10.0.0.1", token, "/leaving"); err != nil || got != want {
			t.Fatalf("decide() = %d, %v, want %d", got, err, want)
		}
	}
	want(http.StatusOK)
	authorizer.limits.Add("10.0.0.1", rate.NewLimiter(0, 0)) // as if strangers had used it up
	now.SetTime(now.Now().Add(2 * permissionLifetime))
	want(http.StatusOK)
	k.Do("delete", "clusterrolebinding", "leaving")
	wantAccess(k, "leaving", "/leaving", "Forbidden")
	want(http.StatusOK) // from the cache
	now.SetTime(now.Now().Add(2 * permissionLifetime))
	want(http.StatusForbidden)
}

// TestCertificateRenewal: a new certificate in the files is served at once.
func TestCertificateRenewal(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	var config *tls.Config
	for _, host := range []string{"first", "second"} {
		certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		if err := errors.Join(err, os.WriteFile(certFile, certificate, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
			t.Fatal(err)
		}
		if config == nil {
			if config, err = servingCertificate(certFile, keyFile); err != nil {
				t.Fatal(err)
			}
		}
		pair, err := config.GetCertificate(nil)
		if err != nil || pair.Leaf.VerifyHostname(host) != nil {
			t.Errorf("the certificate is not the one of %s (%v)", host, err)
		}
	}
}
