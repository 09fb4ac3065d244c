package server

import (
	"context"
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
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/samplecrd/network-controller/test/controlplane"
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
func newToken(t *testing.T, client kubernetes.Interface, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// permit permits a ServiceAccount in the namespace default to get a path, and waits until the
// authorizer of the API server knows it.
func permit(t *testing.T, client kubernetes.Interface, account, path string) {
	t.Helper()
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{path}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: account}}}
	role.Name, binding.Name = account, account
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	untilPermitted(t, client, account, path, true)
}

func untilPermitted(t *testing.T, client kubernetes.Interface, account, path string, want bool) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:                  "system:serviceaccount:default:" + account,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed == want, err
	})
	if err != nil {
		t.Fatalf("whether %s may get %s: %v", account, path, err)
	}
}

// TestAuthorizedMetrics: on an address other than loopback, metrics are served over
// TLS to those whom RBAC permits to read them.
func TestAuthorizedMetrics(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	reader, stranger := newToken(t, client, "reader"), newToken(t, client, "stranger")
	permit(t, client, "reader", "/metrics")
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the metrics") })
	endpoint, err := Options{metricsAddress: ":8443"}.metricsEndpoint(metrics, client)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(endpoint.handler)
	server.TLS = endpoint.tls
	server.StartTLS()
	defer server.Close()
	scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the certificate is self-signed

	for name, test := range map[string]struct {
		authorization string
		status        int
		text          string
	}{
		"a reader":       {"Bearer " + reader, http.StatusOK, "the metrics"},
		"no token":       {"", http.StatusUnauthorized, "a bearer token is required"},
		"an empty token": {"Bearer ", http.StatusUnauthorized, "a bearer token is required"},
		"an unknown one": {"Bearer nonsense", http.StatusUnauthorized, ""},
		"a password":     {"Basic " + reader, http.StatusUnauthorized, "a bearer token is required"},
		"no permission":  {"Bearer " + stranger, http.StatusForbidden, ""},
	} {
		for _, again := range []string{"", ", again"} { // from the cache of decisions
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", test.authorization)
			response, err := scraper.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != test.status || !strings.Contains(string(body), test.text) || test.status != http.StatusOK && strings.Contains(string(body), "the metrics") {
				t.Errorf("%s%s: got %s %.300s, want status %d and %q", name, again, response.Status, body, test.status, test.text)
			}
		}
	}
}

// TestDecisionsExpire: a permission that was withdrawn ends with the lifetime of the
// decision. Strangers on the same host do not lock out who has one.
func TestDecisionsExpire(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	now := testingclock.NewFakePassiveClock(time.Now())
	authorizer := newAuthorizer(client, http.NotFoundHandler(), now)
	token := newToken(t, client, "leaving")
	permit(t, client, "leaving", "/leaving")
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
	if err := client.RbacV1().ClusterRoleBindings().Delete(t.Context(), "leaving", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	untilPermitted(t, client, "leaving", "/leaving", false)
	want(http.StatusOK) // from the cache
	now.SetTime(now.Now().Add(2 * permissionLifetime))
	want(http.StatusForbidden)
}

// TestCertificateRenewal: a new certificate in the files is served at once.
func TestCertificateRenewal(t *testing.T) {
	folder := t.TempDir()
	o := Options{metricsAddress: ":8443", certFile: filepath.Join(folder, "tls.crt"), keyFile: filepath.Join(folder, "tls.key")}
	write := func(host string) {
		certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{o.certFile: certificate, o.keyFile: key} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("first")
	config, err := servingCertificate(o.certFile, o.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"first", "second"} {
		write(host)
		pair, err := config.GetCertificate(nil)
		if err != nil || pair.Leaf.VerifyHostname(host) != nil {
			t.Errorf("the certificate is not the one of %s (%v)", host, err)
		}
	}
}
