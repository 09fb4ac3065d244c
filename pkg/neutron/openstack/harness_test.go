package openstack_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/test/keystone"
)

// Every secret contains this text, so that a test can search for it.
const secret = "SECRET"

const (
	password     = "pass-" + secret
	nextPassword = "next-" + secret
)

type object = map[string]any

// openStack is one with the project ours.
type openStack struct {
	*keystone.Cloud
	*keystone.Project
	network string // the address of its Neutron
}

func startOpenStack(t *testing.T, options embedded.Options) openStack {
	t.Helper()
	cloud := keystone.Start()
	t.Cleanup(cloud.Close)
	cloud.Change(func(s *keystone.Settings) { s.Token = "token-" + secret })
	o := openStack{cloud, cloud.AddProjectWith("ours", options), cloud.URL + "/networking"}
	o.SetPassword(password)
	return o
}

// fail responds to requests to Keystone with a fault; nil removes it.
func (o openStack) fail(fault http.HandlerFunc) {
	o.Change(func(s *keystone.Settings) {
		s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if fault != nil {
				fault(w, r)
			}
			return fault != nil
		}
	})
}

// offer changes the catalog.
func (o openStack) offer(services ...any) {
	o.Change(func(s *keystone.Settings) { s.Catalog = services })
}

// sent returns the number of requests to Neutron, those without a valid token included.
func (o openStack) sent() int { return int(o.Requests.Load() - o.Logins.Load()) }

// files is the directory of clouds.yaml and the files that belong to it.
type files struct {
	t   testing.TB
	dir string
}

// useFiles sets OS_CLIENT_CONFIG_FILE to a clouds.yaml in a new directory, and
// clears the other variables.
func useFiles(t testing.TB) files {
	t.Helper()
	f := files{t, t.TempDir()}
	for name := range strings.FieldsSeq("OS_CLOUD OS_REGION_NAME OS_INTERFACE OS_CACERT OS_CERT OS_KEY " +
		"OS_CLIENT_SECURE_FILE XDG_CONFIG_HOME HTTP_PROXY http_proxy") {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", f.dir)
	t.Setenv("OS_CLIENT_CONFIG_FILE", f.path("clouds.yaml"))
	return f
}

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

func (f files) write(name, content string) {
	f.t.Helper()
	must(f.t, os.WriteFile(f.path(name), []byte(content), 0o600))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clouds returns a clouds.yaml with one cloud, ours.
func clouds(lines ...string) string {
	return "clouds:\n  ours:\n    " + strings.Join(lines, "\n    ") + "\n"
}

// me are the fields of auth for the user ours.
const me = "username: ours, user_domain_name: Default, project_name: ours, project_domain_name: Default"

// withPassword returns the lines of a cloud with a password.
func withPassword(url, password string, more ...string) []string {
	return append([]string{
		"region_name: RegionOne", "auth: {auth_url: '" + url + "', " + me + ", password: '" + password + "'}",
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
	openStack
	files
	clock  *clock
	client neutron.Client
}

// newCloud starts an OpenStack, and returns a client for it. The lines are those of the cloud
// in clouds.yaml; they default to a login with a password.
func newCloud(t *testing.T, lines ...string) *cloudTest {
	t.Helper()
	return newCloudOf(t, startOpenStack(t, embedded.Options{}), lines...)
}

func newCloudOf(t *testing.T, o openStack, lines ...string) *cloudTest {
	t.Helper()
	c := &cloudTest{T: t, openStack: o, files: useFiles(t), clock: &clock{}}
	if lines == nil {
		lines = withPassword(o.URL, password)
	}
	c.use(lines...)
	c.connect(openstack.Options{})
	return c
}

// use writes clouds.yaml, with the URL of the Keystone for KEYSTONE.
func (c *cloudTest) use(lines ...string) {
	c.Helper()
	c.write("clouds.yaml", strings.ReplaceAll(clouds(lines...), "KEYSTONE", c.URL))
}

func (c *cloudTest) usePassword(password string) {
	c.Helper()
	c.use(withPassword(c.URL, password)...)
}

// connect replaces the client by one with other options.
func (c *cloudTest) connect(options openstack.Options) {
	c.Helper()
	options.Now = c.clock.Now
	var err error
	c.client, err = openstack.NewFromCloud("ours", options)
	must(c.T, err)
}

// list makes a request.
func (c *cloudTest) list() error {
	c.Helper()
	err := requests["list networks"](c.Context(), c.client)
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
func (c *cloudTest) takeLogins() int {
	n := c.Logins.Swap(0)
	c.Requests.Add(-n)
	return int(n)
}

func (c *cloudTest) wantLogins(want int) {
	c.Helper()
	if n := c.takeLogins(); n != want {
		c.Errorf("there were %d requests to Keystone, want %d", n, want)
	}
}

// wantLogin lists networks and counts the logins that this causes.
func (c *cloudTest) wantLogin(logins int) {
	c.Helper()
	c.wantList()
	openstack.WaitForFiles(c.client)
	c.wantLogins(logins)
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

func wantError(t *testing.T, doing string, err, class error, texts ...string) {
	t.Helper()
	var failure *neutron.Error
	if !errors.As(err, &failure) || !errors.Is(err, class) {
		t.Errorf("%s: error is %v, want a *neutron.Error of the class %q", doing, err, class)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error is %q, want %q in it", doing, err, text)
		}
	}
}

// respondWith returns a handler that gives every request one response.
func respondWith(status int, h http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), h)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// header returns a header with one value.
func header(key, value string) http.Header { return http.Header{key: {value}} }

// pemPair returns a certificate and its key as they are in files.
func pemPair(t *testing.T, certificate []byte, privateKey any) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(privateKey)
	must(t, err)
	inPEM := func(name string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}))
	}
	return inPEM("CERTIFICATE", certificate), inPEM("PRIVATE KEY", der)
}

// newPair returns a new certificate and its key.
func newPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{Organization: []string{"new"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	return pemPair(t, der, private)
}
