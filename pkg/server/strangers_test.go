package server

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/samplecrd/network-controller/test/running"
)

// serveForTest serves something on loopback until the test ends, and returns the
// address.
func serveForTest(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	if err := (Endpoint{Name: "health", Path: "/readyz", Address: "127.0.0.1:0", Handler: handler}).Serve(ctx); err != nil {
		t.Fatal(err)
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	_, rest, _ := strings.Cut(log, "http://")
	address, _, _ = strings.Cut(rest, "/")
	return address
}

// connect opens connections that end with the test.
func connect(t *testing.T, address string, count int) []net.Conn {
	t.Helper()
	connections := make([]net.Conn, count)
	for i := range connections {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		_ = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
		connections[i] = connection
	}
	return connections
}

// TestSlowBodies: a request with a body that does not arrive is rejected at once,
// and its connection closed.
func TestSlowBodies(t *testing.T) {
	connections := connect(t, serveForTest(t, NewHealth().handler()), 50)
	for _, connection := range connections {
		_, _ = io.WriteString(connection, "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\na")
	}
	for _, connection := range connections {
		response, err := io.ReadAll(connection) // until the server closes it
		if err != nil || !strings.HasPrefix(string(response), "HTTP/1.1 413 ") {
			t.Fatalf("a connection is still open: %v (%.50q)", err, response)
		}
	}
}

// TestDNSRebinding: a web page of another site, whose name leads to this machine, reads nothing
// that is served on loopback, such as profiles.
func TestDNSRebinding(t *testing.T) {
	address := serveForTest(t, NewHealth().handler())
	for host, want := range map[string]int{"evil.example": 403, "127.0.0.1.evil.example:1": 403, "localhost:1": 200, "[::1]": 200} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/livez", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with the host %s, the status is %d, want %d", host, response.StatusCode, want)
		}
	}
}

// TestConnectionLimit: connections that send nothing are closed when there are too
// many, and do not keep out others.
func TestConnectionLimit(t *testing.T) {
	address := serveForTest(t, NewHealth().handler())
	silent := connect(t, address, 2*maxConnections)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatalf("a probe beside %d silent connections: %v", len(silent), err)
	}
	_ = response.Body.Close()
	for i, connection := range silent[:maxConnections] {
		if _, err := connection.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Fatalf("connection %d of %d is still open: %v", i, len(silent), err)
		}
	}
}

// request sends a request from an address with a token, and returns the status code.
func request(ctx context.Context, handler http.Handler, from, token string) int {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/healthz", http.NoBody)
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+token)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, r)
	return response.Code
}

// These return tokens that no API server knows. Signed ones have the form of those of
// ServiceAccounts.
func unsigned() string { return rand.Text() }
func signed() string   { return rand.Text() + "." + rand.Text() + "." + rand.Text() }

// TestNewScraperAmongStrangers: while strangers send random tokens, a client with a
// new valid token is permitted at once.
func TestNewScraperAmongStrangers(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	permitted := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for from, randomToken := range map[string]func() string{
		"10.0.0.9:1": unsigned, // its own host
		"10.0.0.8:1": signed,
	} {
		authorizer := newAuthorizer(client, permitted, clocktesting.NewFakePassiveClock(time.Now()))
		token := newToken(running.Kubectl{T: t, Cluster: cluster}, strings.ToLower(rand.Text()))
		ctx, stop := context.WithCancel(t.Context())
		limited := make(chan struct{})
		limitedOnce := sync.OnceFunc(func() { close(limited) })
		var strangers sync.WaitGroup
		for range 8 {
			strangers.Go(func() {
				for ctx.Err() == nil {
					if request(ctx, authorizer, from, randomToken()) == http.StatusTooManyRequests {
						limitedOnce()
					}
				}
			})
		}
		<-limited
		if got := request(t.Context(), authorizer, "10.0.0.9:2", token); got != http.StatusOK {
			t.Errorf("the first request of a new client among strangers from %s: %d", from, got)
		}
		stop()
		strangers.Wait()
	}
}

// TestTokensAreNotLogged: client-go logs the bodies of requests and responses at
// -v=8 and above. Those of a TokenReview contain the token.
func TestTokensAreNotLogged(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	for _, token := range []string{newToken(running.Kubectl{T: t, Cluster: cluster}, "unlogged"), signed()} {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(10)))
		authorizer := newAuthorizer(client, http.NotFoundHandler(), clocktesting.NewFakePassiveClock(time.Now()))
		request(klog.NewContext(t.Context(), logger), authorizer, "10.0.0.9:1", token)
		log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		if strings.Contains(log, "Body") || strings.Contains(log, token) {
			t.Errorf("the log has the body of a request with the token %.20s:\n%.500s", token, log)
		}
	}
}
