package openstack_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// Every secret contains this text, so that a test can search for it.
const secret = "SECRET"

const (
	password  = "pass-" + secret
	appSecret = "app-" + secret
)

type object = map[string]any

// keystone is a small Keystone, and a Neutron that accepts its tokens.
type keystone struct {
	*httptest.Server                  // Keystone
	front            *httptest.Server // Neutron, which requires a token
	neutron          *embedded.Server // the same Neutron, without a token

	mu       sync.Mutex
	password string
	app      string         // the secret of the application credential "app-id"
	uses     int            // how many requests a new token is valid for; 0 for all
	tokens   map[string]int // how many requests each is still valid for
	issued   int
	logins   int // requests to Keystone, successful or not
	fault    http.HandlerFunc
	catalog  []object // in place of the usual one
	project  any      // of a token; nil for none
	asked    []asked
}

// asked is a request to Neutron.
type asked struct {
	*http.Request
	body string
}

func startKeystone(t *testing.T, options embedded.Options) *keystone {
	t.Helper()
	k := &keystone{neutron: start(t, options), password: password, app: appSecret, tokens: map[string]int{}, project: object{"id": "fake_project_id", "name": "ours"}}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(k.Close)
	k.front = httptest.NewServer(http.HandlerFunc(k.serveNeutron))
	t.Cleanup(k.front.Close)
	return k
}

// set changes the fields of the Keystone.
func (k *keystone) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// fail answers requests to Keystone with a fault; nil removes it.
func (k *keystone) fail(fault http.HandlerFunc) { k.set(func() { k.fault = fault }) }

// revoke makes all tokens invalid.
func (k *keystone) revoke() { k.set(func() { k.tokens = map[string]int{} }) }

// wantLogins compares the number of requests to Keystone, and resets it.
func (k *keystone) wantLogins(t *testing.T, want int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.logins != want {
		t.Errorf("there were %d requests to Keystone, want %d", k.logins, want)
	}
	k.logins = 0
}

// requests returns the requests to Neutron since its last call.
func (k *keystone) requests() []asked {
	k.mu.Lock()
	defer k.mu.Unlock()
	since := k.asked
	k.asked = nil
	return since
}

func (k *keystone) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.mu.Lock()
	k.logins++
	fault := k.fault
	k.mu.Unlock()
	if fault != nil {
		fault(w, r)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !strings.HasPrefix(r.UserAgent(), "samplecrd-controller/"):
		refuse(w, http.StatusForbidden, "Forbidden", "User-Agent is "+r.UserAgent())
	case r.URL.Path != "/v3/auth/tokens":
		refuse(w, http.StatusNotFound, "Not Found", "there is no "+r.URL.Path)
	case r.Method == http.MethodPost:
		if status, message := k.check(body); status != 0 {
			refuse(w, status, http.StatusText(status), message)
			return
		}
		k.issued++
		token := fmt.Sprintf("token-%s-%d", secret, k.issued)
		k.tokens[token] = k.uses
		k.grant(w, http.StatusCreated, token, !strings.Contains(string(body), "unscoped"))
	case r.Method == http.MethodGet:
		token := r.Header.Get("X-Subject-Token")
		if _, ok := k.tokens[token]; !ok || r.Header.Get("X-Auth-Token") != token {
			refuse(w, http.StatusUnauthorized, "Unauthorized", "The request you have made requires authentication.")
			return
		}
		k.grant(w, http.StatusOK, token, true)
	}
}

// check returns what is wrong with a login; 0 if nothing is.
func (k *keystone) check(body []byte) (status int, message string) {
	type user struct {
		ID, Name, Password string
		Domain             struct{ ID, Name string }
	}
	var login struct {
		Auth struct {
			Identity struct {
				Methods     []string
				Password    struct{ User user }
				Token       struct{ ID string }
				Application struct {
					ID, Name, Secret string
					User             user
				} `json:"application_credential"`
			}
			Scope *struct {
				Project struct {
					ID, Name string
					Domain   struct{ ID, Name string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &login); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	known := func(u user) bool {
		return u.ID == "user-id" || u.Name == "me" && (u.Domain.ID == "default" || u.Domain.Name == "Default")
	}
	identity, scope := login.Auth.Identity, login.Auth.Scope
	if scope != nil {
		if p := scope.Project; p.ID != "project-id" && (p.Name != "ours" || p.Domain.ID != "default" && p.Domain.Name != "Default") {
			return http.StatusUnauthorized, "no such project"
		}
	}
	switch app := identity.Application; strings.Join(identity.Methods, " ") {
	case "password":
		if u := identity.Password.User; known(u) && u.Password == k.password {
			return 0, ""
		}
	case "application_credential":
		switch {
		case scope != nil:
			return http.StatusUnauthorized, "Application credentials cannot request a scope."
		case k.app == "":
			return http.StatusNotFound, "Could not find Application Credential: app-id."
		case (app.ID == "app-id" || app.Name == "app" && known(app.User)) && app.Secret == k.app:
			return 0, ""
		}
	case "token":
		if _, ok := k.tokens[identity.Token.ID]; ok {
			return 0, ""
		}
	}
	return http.StatusUnauthorized, "The request you have made requires authentication."
}

func (k *keystone) grant(w http.ResponseWriter, status int, token string, scoped bool) {
	answer := object{"expires_at": "2030-01-01T00:00:00.000000Z", "methods": []string{"password"}, "catalog": k.catalog}
	if k.project != nil {
		answer["project"] = k.project
	}
	if k.catalog == nil && scoped {
		answer["catalog"] = []object{networkAt(endpointAt("public", "RegionOne", k.front.URL))}
	}
	w.Header().Set("X-Subject-Token", token)
	writeJSON(w, status, object{"token": answer})
}

func endpointAt(interfaceName, region, url string) object {
	return object{"interface": interfaceName, "region": region, "region_id": region, "url": url, "id": "x"}
}

func networkAt(endpoints ...object) object {
	return object{"type": "network", "name": "neutron", "endpoints": endpoints}
}

func refuse(w http.ResponseWriter, status int, title, message string) {
	writeJSON(w, status, object{"error": object{"code": status, "title": title, "message": message}})
}

func writeJSON(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// serveNeutron requires a token. The API is at /networking, too.
func (k *keystone) serveNeutron(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	token := r.Header.Get("X-Auth-Token")
	k.mu.Lock()
	k.asked = append(k.asked, asked{r, string(body)})
	left, ok := k.tokens[token]
	if left--; ok {
		k.tokens[token] = left
	}
	if left == 0 {
		delete(k.tokens, token)
	}
	k.mu.Unlock()
	if !ok {
		w.Header().Set("WWW-Authenticate", "Keystone uri='"+k.URL+"'")
		refuse(w, http.StatusUnauthorized, "Unauthorized", "The request you have made requires authentication.")
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	r.URL.Path = strings.TrimPrefix(r.URL.Path, "/networking")
	k.neutron.ServeHTTP(w, r)
}

// files is the directory of clouds.yaml and the files that belong to it.
type files struct {
	t   *testing.T
	dir string
}

// useFiles sets OS_CLIENT_CONFIG_FILE to a clouds.yaml in a new directory, and
// clears the other variables.
func useFiles(t *testing.T) files {
	t.Helper()
	f := files{t, t.TempDir()}
	for _, name := range []string{
		"OS_CLOUD", "OS_REGION_NAME", "OS_INTERFACE", "OS_CACERT", "OS_CERT", "OS_KEY", "OS_CLIENT_SECURE_FILE",
		"XDG_CONFIG_HOME", "HTTP_PROXY", "http_proxy",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", f.dir)
	t.Setenv("OS_CLIENT_CONFIG_FILE", f.path("clouds.yaml"))
	return f
}

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

func (f files) write(name, content string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// clouds returns a clouds.yaml with one cloud, ours.
func clouds(lines ...string) string {
	return "clouds:\n  ours:\n    " + strings.Join(lines, "\n    ") + "\n"
}

// withPassword returns the lines of a cloud with a password.
func withPassword(url, password string, more ...string) []string {
	return append([]string{
		"region_name: RegionOne",
		"auth: {auth_url: '" + url + "', username: me, user_domain_name: Default, password: '" + password + "', project_name: ours, project_domain_name: Default}",
	}, more...)
}

// clock is a clock that a test advances.
type clock struct {
	mu     sync.Mutex
	passed time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(1_000_000, 0).Add(c.passed)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

// newCloud starts a Keystone with a Neutron, and returns a client for them.
func newCloud(t *testing.T, options ...openstack.Option) (*keystone, neutron.Client) {
	t.Helper()
	k := startKeystone(t, embedded.Options{})
	useFiles(t).write("clouds.yaml", clouds(withPassword(k.URL, password)...))
	return k, connectCloud(t, options...)
}

func connectCloud(t *testing.T, options ...openstack.Option) neutron.Client {
	t.Helper()
	client, err := openstack.NewFromCloud("ours", options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// list makes a request.
func list(t *testing.T, client neutron.Client) error {
	t.Helper()
	_, err := client.Networks(t.Context(), neutron.NetworkFilter{})
	noSecrets(t, err)
	return err
}

func wantList(t *testing.T, client neutron.Client) {
	t.Helper()
	if err := list(t, client); err != nil {
		t.Errorf("a list fails: %v", err)
	}
}

// noSecrets fails if any form of an error contains a secret.
func noSecrets(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, err); strings.Contains(text, secret) {
			t.Errorf("the error has a secret in it: %s", text)
		}
	}
	var failure *neutron.Error
	if errors.As(err, &failure) {
		if text := fmt.Sprintf("%#v", *failure); strings.Contains(text, secret) {
			t.Errorf("the failure has a secret in it: %s", text)
		}
	}
	switch e := err.(type) { //nolint:errorlint // all of them are looked at
	case interface{ Unwrap() error }:
		noSecrets(t, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			noSecrets(t, inner)
		}
	}
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// answerWith returns a handler that gives every request one answer.
func answerWith(status int, h http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), h)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// quiet discards what a server logs about failed handshakes.
var quiet = log.New(io.Discard, "", 0)

// pemPair returns a certificate and its key as they are in files.
func pemPair(t *testing.T, certificate []byte, privateKey any) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(privateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// newPair returns a new certificate and its key.
func newPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour), Subject: pkix.Name{Organization: []string{"new"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return pemPair(t, der, private)
}
