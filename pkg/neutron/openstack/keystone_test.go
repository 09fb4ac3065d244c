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
	"slices"
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
	k := &keystone{neutron: start(t, options), password: password, app: appSecret, tokens: map[string]int{}, project: object{"id": "fake-project-id", "name": "ours"}}
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

// fail responds to requests to Keystone with a fault; nil removes it.
func (k *keystone) fail(fault http.HandlerFunc) { k.set(func() { k.fault = fault }) }

// revoke makes all tokens invalid.
func (k *keystone) revoke() { k.set(func() { k.tokens = map[string]int{} }) }

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

// identities are the logins that are known, and scopes the projects, as JSON.
var (
	identities = []string{
		`{"methods":["password"],"password":{"user":{"domain":{"name":"Default"},"name":"me","password":PASSWORD}}}`,
		`{"methods":["password"],"password":{"user":{"domain":{"id":"default"},"name":"me","password":PASSWORD}}}`,
		`{"methods":["password"],"password":{"user":{"id":"user-id","password":PASSWORD}}}`,
		`{"application_credential":{"id":"app-id","secret":APP},"methods":["application_credential"]}`,
		`{"application_credential":{"name":"app","secret":APP,"user":{"domain":{"name":"Default"},"name":"me"}},"methods":["application_credential"]}`,
		`{"application_credential":{"name":"app","secret":APP,"user":{"id":"user-id"}},"methods":["application_credential"]}`,
	}
	scopes = []string{
		`{"project":{"id":"project-id"}}`,
		`{"project":{"domain":{"name":"Default"},"name":"ours"}}`,
		`{"project":{"domain":{"id":"default"},"name":"ours"}}`,
	}
)

// check returns what is wrong with a login; 0 if nothing is.
func (k *keystone) check(body []byte) (status int, message string) {
	var login struct{ Auth struct{ Identity, Scope any } }
	if err := json.Unmarshal(body, &login); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	inJSON := func(value any) string {
		text, _ := json.Marshal(value)
		return string(text)
	}
	identity, scope := inJSON(login.Auth.Identity), inJSON(login.Auth.Scope)
	isApplication := strings.Contains(identity, "application_credential")
	secrets := strings.NewReplacer("PASSWORD", inJSON(k.password), "APP", inJSON(k.app))
	isKnown := slices.ContainsFunc(identities, func(known string) bool { return secrets.Replace(known) == identity })
	for token := range k.tokens {
		isKnown = isKnown || identity == `{"methods":["token"],"token":{"id":"`+token+`"}}`
	}
	switch {
	case isApplication && scope != "null":
		return http.StatusUnauthorized, "Application credentials cannot request a scope."
	case isApplication && k.app == "":
		return http.StatusNotFound, "Could not find Application Credential: app-id."
	case scope != "null" && !slices.Contains(scopes, scope):
		return http.StatusUnauthorized, "no such project"
	case !isKnown:
		return http.StatusUnauthorized, "The request you have made requires authentication."
	}
	return 0, ""
}

func (k *keystone) grant(w http.ResponseWriter, status int, token string, scoped bool) {
	response := object{"expires_at": "2030-01-01T00:00:00.000000Z", "methods": []string{"password"}, "catalog": k.catalog}
	if k.project != nil {
		response["project"] = k.project
	}
	if k.catalog == nil && scoped {
		response["catalog"] = []object{networkAt(endpointAt("public", "RegionOne", k.front.URL))}
	}
	w.Header().Set("X-Subject-Token", token)
	writeJSON(w, status, object{"token": response})
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

// cloudTest is a test of a client with a login.
type cloudTest struct {
	*testing.T
	*keystone
	files
	clock  *clock
	client neutron.Client
}

// newCloud starts a Keystone with a Neutron, and returns a client for them. The lines are
// those of the cloud in clouds.yaml; they default to a login with a password.
func newCloud(t *testing.T, lines ...string) *cloudTest {
	t.Helper()
	return newCloudOf(t, startKeystone(t, embedded.Options{}), lines...)
}

func newCloudOf(t *testing.T, k *keystone, lines ...string) *cloudTest {
	t.Helper()
	c := &cloudTest{T: t, keystone: k, files: useFiles(t), clock: &clock{}}
	if lines == nil {
		lines = withPassword(k.URL, password)
	}
	c.write("clouds.yaml", clouds(lines...))
	c.connect(openstack.Options{})
	return c
}

// write writes a file, with the URL of the Keystone for KEYSTONE.
func (c *cloudTest) write(name, content string) {
	c.Helper()
	c.files.write(name, strings.ReplaceAll(content, "KEYSTONE", c.URL))
}

func (c *cloudTest) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// connect replaces the client by one with other options.
func (c *cloudTest) connect(options openstack.Options) {
	c.Helper()
	options.Now = c.clock.Now
	var err error
	c.client, err = openstack.NewFromCloud("ours", options)
	c.must(err)
}

// list makes a request.
func (c *cloudTest) list() error {
	c.Helper()
	_, err := c.client.Networks(c.Context(), neutron.NetworkFilter{})
	noSecrets(c.T, err)
	return err
}

func (c *cloudTest) wantList() {
	c.Helper()
	if err := c.list(); err != nil {
		c.Errorf("a list fails: %v", err)
	}
}

// wantUnavailable makes a request that must fail, with some texts in its error.
func (c *cloudTest) wantUnavailable(texts ...string) {
	c.Helper()
	wantError(c.T, "a list", c.list(), neutron.ErrUnavailable, texts...)
}

// takeLogins returns the number of requests to Keystone since its last call.
func (c *cloudTest) takeLogins() (n int) {
	c.set(func() { n, c.logins = c.logins, 0 })
	return n
}

func (c *cloudTest) wantLogins(want int) {
	c.Helper()
	if n := c.takeLogins(); n != want {
		c.Errorf("there were %d requests to Keystone, want %d", n, want)
	}
}

// readFiles makes the client read changed files, which takes effect after the next request.
func (c *cloudTest) readFiles() {
	c.Helper()
	c.clock.pass(time.Minute)
	c.wantList()
	openstack.WaitForFiles(c.client)
}

// noSecrets fails if any form of an error, or its cause, contains a secret.
func noSecrets(t *testing.T, err error) {
	t.Helper()
	forms := []any{err}
	if failure := (*neutron.Error)(nil); errors.As(err, &failure) {
		forms = append(forms, *failure, failure.Cause)
	}
	for _, form := range forms {
		if text := fmt.Sprintf("%v %+[1]v %#[1]v %[1]q", form); strings.Contains(text, secret) {
			t.Errorf("the error has a secret in it: %s", text)
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

// respondWith returns a handler that gives every request one response.
func respondWith(status int, h http.Header, body string) http.HandlerFunc {
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
