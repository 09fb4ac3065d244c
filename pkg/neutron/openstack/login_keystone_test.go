package openstack_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
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

// Every secret has this in it, so that a test can look for it.
const secret = "SECRET"

const (
	password  = "pass-" + secret
	appSecret = "app-" + secret
)

type object = map[string]any

// keystone is a small Keystone, and a Neutron that asks it.
type keystone struct {
	*httptest.Server                  // Keystone
	front            *httptest.Server // Neutron, for those with a token
	neutron          *embedded.Server // the same, for everybody

	mu       sync.Mutex
	password string
	app      string         // the secret of the application credential "app-id"
	uses     int            // how many requests a token is good for; 0 stands for all
	tokens   map[string]int // how many requests they are still good for
	issued   int
	logins   int // requests for a token, whatever came of them
	fault    http.HandlerFunc
	catalog  []object // in place of the usual one
	asked    []asked
}

// asked is a request to Neutron.
type asked struct {
	*http.Request
	body string
}

func startKeystone(t *testing.T, options embedded.Options) *keystone {
	t.Helper()
	k := &keystone{neutron: start(t, options), password: password, app: appSecret, tokens: map[string]int{}}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(k.Close)
	k.front = httptest.NewServer(http.HandlerFunc(k.serveNeutron))
	t.Cleanup(k.front.Close)
	return k
}

// set changes something.
func (k *keystone) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// fail has requests for a token answered like that; nil ends it.
func (k *keystone) fail(fault http.HandlerFunc) { k.set(func() { k.fault = fault }) }

// revoke makes all tokens invalid.
func (k *keystone) revoke() { k.set(func() { k.tokens = map[string]int{} }) }

// wantLogins fails where there were not as many requests for a token, and
// begins to count again.
func (k *keystone) wantLogins(t *testing.T, want int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.logins != want {
		t.Errorf("there were %d requests to Keystone, want %d", k.logins, want)
	}
	k.logins = 0
}

// requests returns the requests to Neutron since it was last asked for them.
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

// check says what is wrong with a login.
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
	answer := object{"expires_at": "2030-01-01T00:00:00.000000Z", "methods": []string{"password"}, "catalog": k.catalog, "project": object{"id": "fake_project_id", "name": "ours"}}
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

// serveNeutron asks for a token. It takes the API to be at /networking, too.
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

// files are clouds.yaml and what belongs to it, in a directory of their own.
type files struct {
	t   *testing.T
	dir string
}

// useFiles has OS_CLIENT_CONFIG_FILE name a clouds.yaml, and no other variable
// have an effect.
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

// clouds is a clouds.yaml with one cloud, ours.
func clouds(lines ...string) string {
	return "clouds:\n  ours:\n    " + strings.Join(lines, "\n    ") + "\n"
}

// withPassword are the lines of a cloud that one logs in to with a password.
func withPassword(url, password string, more ...string) []string {
	return append([]string{
		"region_name: RegionOne",
		"auth: {auth_url: '" + url + "', username: me, user_domain_name: Default, password: '" + password + "', project_name: ours, project_domain_name: Default}",
	}, more...)
}

// clock is a time that passes when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
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

// noSecrets fails where one can be seen in any way of writing an error.
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

// answerWith answers every request the same.
func answerWith(status int, h http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), h)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// quiet takes what a server says of those who don't trust it.
var quiet = log.New(io.Discard, "", 0)

// pemKey returns the private key of a certificate.
func pemKey(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// pemCertificate returns a certificate that nobody has.
func pemCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
