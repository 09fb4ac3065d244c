package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/cert"
)

// TestProbes: a process that waits for Kubernetes is alive and not ready, and
// says what for.
func TestProbes(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "nobody.kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, "-kubeconfig="+kubeconfig, "-health-probe-bind-address=127.0.0.1:0")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	p.waitFor(t, `Waiting for Kubernetes`)
	readyz := p.readyz()
	h := &harness{T: t}
	h.eventually(func() error {
		return answers(readyz, http.StatusServiceUnavailable, "waiting: Kubernetes: the API server does not answer")
	})
	if err := answers(strings.Replace(readyz, "/readyz", "/livez", 1), http.StatusOK, "ok"); err != nil {
		t.Error(err)
	}
}

// TestLiveness: a sync that does not get on is told from one that does, and from
// one that has ended.
func TestLiveness(t *testing.T) {
	p, health := newPulse(), newHealth()
	health.mustHold("workers", func(*http.Request) error { return p.hangs(time.Minute) })
	server := httptest.NewServer(health.handler())
	defer server.Close()
	key := cache.NewObjectName("default", "example")

	p.beat(key)
	if err := answers(server.URL+"/livez", http.StatusOK, "ok"); err != nil {
		t.Error("a worker at work:", err)
	}
	p.working[key] = time.Now().Add(-2 * time.Minute)
	if err := answers(server.URL+"/livez", http.StatusServiceUnavailable, "workers: the sync of default/example hangs: it has not got on for 2m0s"); err != nil {
		t.Error("one that hangs:", err)
	}
	p.end(key)
	if err := answers(server.URL+"/livez", http.StatusOK, "ok"); err != nil {
		t.Error("one that has ended:", err)
	}
}

// TestWorkerThatHangs: a controller tells of its own.
func TestWorkerThatHangs(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	if err := h.controller.Hangs(0); err == nil || !strings.Contains(err.Error(), h.namespace+"/example") {
		t.Errorf("Hangs() = %v, want the Network whose request is not answered", err)
	}
	close(release)
	h.waitReady("example")
	h.eventually(func() error { return h.controller.Hangs(0) })
}

// TestMetricsAreGuarded: beyond loopback they are for those whom RBAC allows
// them, over TLS.
func TestMetricsAreGuarded(t *testing.T) {
	h := newHarness(t)
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := h.kube.CoreV1().ServiceAccounts(h.namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		request, err := h.kube.CoreV1().ServiceAccounts(h.namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	reader, stranger := token("reader"), token("stranger")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.namespace},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: h.namespace, Name: "reader"}}}
	if _, err := h.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e, err := metricsEndpoint(servingOptions{metricsAddress: ":8443"}, h.kube)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(e.handler)
	server.TLS = e.tls
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // as a scraper does: nobody knows the certificate

	for name, test := range map[string]struct {
		authorization string
		status        int
		text          string
	}{
		"a reader":                 {"Bearer " + reader, http.StatusOK, "samplecrd_drift_repaired_total"},
		"somebody without a token": {"", http.StatusUnauthorized, "a bearer token is needed"},
		"a made-up token":          {"Bearer nonsense", http.StatusUnauthorized, ""},
		"a password":               {"Basic " + reader, http.StatusUnauthorized, "a bearer token is needed"},
		"one who may not":          {"Bearer " + stranger, http.StatusForbidden, ""},
	} {
		for _, again := range []string{"", ", again"} { // by what was said a moment ago
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", test.authorization)
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body := new(strings.Builder)
			_, _ = io.Copy(body, response.Body)
			_ = response.Body.Close()
			if response.StatusCode != test.status || !strings.Contains(body.String(), test.text) || test.status != http.StatusOK && strings.Contains(body.String(), "samplecrd_drift_repaired_total") {
				t.Errorf("%s%s: got %.300s, want status %d and %q", name, again, body, test.status, test.text)
			}
		}
	}
}

// TestStrangersAreBounded: whoever tries tokens out does not make the API server
// review them all.
func TestStrangersAreBounded(t *testing.T) {
	h := newHarness(t)
	gate := newGate(h.kube, http.NotFoundHandler())
	refused := 0
	for i := range 200 {
		request, answer := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody), httptest.NewRecorder()
		request.Header.Set("Authorization", "Bearer "+strings.Repeat("x", i+1))
		gate.ServeHTTP(answer, request)
		if answer.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 100 {
		t.Errorf("%d of 200 made-up tokens were refused without asking, want most of them", refused)
	}
}

// TestScraperIsNotKeptOut: strangers do not use up what those need who were let
// in before.
func TestScraperIsNotKeptOut(t *testing.T) {
	h := newHarness(t)
	token, err := h.kube.CoreV1().ServiceAccounts(h.namespace).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	for apierrors.IsNotFound(err) && t.Context().Err() == nil { // which a new namespace gets a moment later
		token, err = h.kube.CoreV1().ServiceAccounts(h.namespace).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	gate := newGate(h.kube, http.NotFoundHandler())
	// RBAC lets everybody who is known get /healthz.
	if status, err := gate.ask(t.Context(), token.Status.Token, "/healthz"); err != nil || status != http.StatusOK {
		t.Fatalf("the token gives %d, %v", status, err)
	}
	for about, last := range gate.known { // a minute later
		last.until = time.Now()
		gate.known[about] = last
	}
	gate.limit.SetLimit(0)
	gate.limit.SetBurst(0) // as strangers have left it
	if status, err := gate.ask(t.Context(), token.Status.Token, "/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("the token gives %d, %v when strangers have come in between", status, err)
	}
}

// TestCertificateIsRenewed: files that change are served with at once.
func TestCertificateIsRenewed(t *testing.T) {
	folder := t.TempDir()
	o := servingOptions{metricsAddress: ":8443", certFile: filepath.Join(folder, "tls.crt"), keyFile: filepath.Join(folder, "tls.key")}
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
