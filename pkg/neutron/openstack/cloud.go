package openstack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// NewFromCloud returns a client for the Neutron of the cloud of that name in
// clouds.yaml; the empty name stands for the one in OS_CLOUD. It makes no
// request: the client logs in with its first one, and again whenever its token
// is no longer accepted. A login that fails is a *neutron.Error of the kind
// neutron.ErrUnavailable.
//
// An error says in a sentence what is wrong with the files, and which ones they
// are: clouds.yaml where OS_CLIENT_CONFIG_FILE says, or else in the working
// directory, ~/.config/openstack or /etc/openstack; secure.yaml where
// OS_CLIENT_SECURE_FILE says, or else beside clouds.yaml. OS_REGION_NAME,
// OS_INTERFACE, OS_CACERT, OS_CERT and OS_KEY go before what is in the files.
// No error, and no text of the client, holds a secret.
//
// Files that change are used from the next request on, a few seconds later at
// most, and at once where the old credentials are refused. They may name
// another region or another cloud: it is then that one that requests go to.
// Files that have become unusable change nothing while what was read before
// still works; when it no longer does, the error tells of both.
//
// As a fmt.Stringer, the client says which cloud it uses and, once it has
// logged in, where its Neutron is.
func NewFromCloud(name string, opts ...Option) (neutron.Client, error) {
	if name == "" {
		name = os.Getenv("OS_CLOUD")
	}
	if name == "" {
		return nil, errors.New("no cloud is named, and OS_CLOUD is not set")
	}
	o := newOptions(opts)
	config, err := loadCloud(name, nil, o.wrap)
	if err != nil {
		return nil, err
	}
	c := &cloud{name: name, wrap: o.wrap, timeout: o.timeout, now: o.now, config: config, checked: o.now()}
	return newClient(newProvider(c), placeholder, c, o), nil
}

// placeholder is the address of requests on their way to a cloud, which knows
// the real one.
var placeholder = &url.URL{Scheme: "http", Host: "neutron.invalid"}

// cloudConfig is what the files say of a cloud.
type cloudConfig struct {
	name      string
	sum       [sha256.Size]byte // of all that was read
	secrets   []string
	auth      gophercloud.AuthOptions
	endpoint  gophercloud.EndpointOpts
	identity  *url.URL // with its version
	insecure  bool     // certificates are not verified
	transport *boundedTransport
}

// loadCloud reads what there is about a cloud. It returns old where nothing was
// changed since.
func loadCloud(name string, old *cloudConfig, wrap func(http.RoundTripper) http.RoundTripper) (*cloudConfig, error) {
	files, err := readCloudFiles()
	if err != nil {
		return nil, err
	}
	e, err := files.entry(name)
	if err != nil {
		return nil, err
	}
	config := &cloudConfig{name: name, sum: e.sum(), secrets: e.secrets()}
	if old != nil && old.sum == config.sum {
		return old, nil
	}
	auth, endpoint, tlsConfig, err := e.parse(files)
	if err != nil {
		return nil, err
	}
	if config.identity, err = e.identityURL(auth.IdentityEndpoint); err != nil {
		return nil, err
	}
	if err := e.checkAuth(&auth); err != nil {
		return nil, err
	}
	config.auth, config.endpoint = auth, endpoint
	config.insecure, config.transport = tlsConfig.InsecureSkipVerify, newTransport(tlsConfig, wrap)
	return config, nil
}

// sameCloud reports whether two configurations lead to the same objects, and are
// as careful on the way there.
func (c *cloudConfig) sameCloud(other *cloudConfig) bool {
	scope := func(auth gophercloud.AuthOptions) gophercloud.AuthScope {
		if auth.Scope == nil {
			return gophercloud.AuthScope{}
		}
		return *auth.Scope
	}
	return *c.identity == *other.identity && scope(c.auth) == scope(other.auth) && c.insecure == other.insecure &&
		c.endpoint.Region == other.endpoint.Region && c.endpoint.Availability == other.endpoint.Availability
}

// host implements target.
func (c *cloud) host() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return "Neutron"
	}
	return hostPort(c.session.endpoint)
}

// secrets implements target.
func (c *cloud) secrets() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return c.config.secrets
	}
	return append(slices.Clone(c.session.config.secrets), c.session.token)
}

// refused implements target.
func (c *cloud) refused() string {
	return "a new token is refused as well: this Neutron trusts another Keystone, or the access rules of an application credential forbid it"
}

// String implements target.
func (c *cloud) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf("cloud %s at %s, interface %s", c.name, c.config.identity, c.config.endpoint.Availability)
	if region := c.config.endpoint.Region; region != "" {
		text += ", region " + region
	}
	if c.config.insecure {
		text += ", certificates NOT verified"
	}
	if c.session == nil {
		return text + ", not logged in"
	}
	return text + ", Neutron at " + c.session.endpoint.String()
}

// tooSlow tells the end of our own time limit from that of the caller's. It is a
// net.Error.
type tooSlow struct{}

func (tooSlow) Error() string   { return "it takes too long" }
func (tooSlow) Timeout() bool   { return true }
func (tooSlow) Temporary() bool { return true }

// RoundTrip sends a request to Neutron with a token, and once more with a new
// one where the token is refused: a request that is answered with 401 was not
// carried out. It is not gophercloud that does it, because its way leads to a
// fixed address with fixed credentials, and into a failure for everybody where
// the one caller who logs in gives up.
func (c *cloud) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer func() { _ = request.Body.Close() }() // what is sent are copies of it
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), c.timeout, tooSlow{})
	response, err := c.send(ctx, request)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &endingBody{response.Body, cancel}
	return response, nil
}

func (c *cloud) send(ctx context.Context, request *http.Request) (*http.Response, error) {
	session, err := c.login(ctx, nil)
	if err != nil {
		return nil, err
	}
	response, err := session.send(ctx, request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // to use the connection again
	_ = response.Body.Close()
	if session, err = c.login(ctx, session); err != nil {
		return nil, err
	}
	return session.send(ctx, request)
}

// send sends a copy of a request to where the session's Neutron is.
func (s *session) send(ctx context.Context, request *http.Request) (*http.Response, error) {
	sent := request.Clone(ctx)
	base := url.URL{Scheme: s.endpoint.Scheme, Host: s.endpoint.Host, Path: s.endpoint.Path + "/"}
	sent.URL = base.JoinPath(request.URL.EscapedPath())
	sent.URL.RawQuery = s.withinProject(request)
	sent.Host = ""
	sent.Header.Set("X-Auth-Token", s.token)
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	return s.config.transport.RoundTrip(sent)
}

// withinProject returns the query of a request, and makes of a list of
// everything one of what our project has. Others can share their networks with
// us, and write into them what they like; and an administrator sees all.
func (s *session) withinProject(request *http.Request) string {
	path, query := request.URL.Path, request.URL.Query()
	isList := request.Method == http.MethodGet && (strings.HasSuffix(path, "/networks") || strings.HasSuffix(path, "/subnets"))
	if !isList || s.project == "" || query.Has("id") || query.Has("network_id") || query.Has("project_id") {
		return request.URL.RawQuery
	}
	query.Set("project_id", s.project)
	return query.Encode()
}

// endingBody ends a time limit when all is read.
type endingBody struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// The files are looked at again after checkFiles. A login that failed is not
// tried again within retryLogin, or for as long as Keystone asks but at most
// maxRetryLogin, unless the files change: thousands of Networks wait for the
// same login, and Keystone may lock out whoever is wrong too often.
const (
	checkFiles    = 5 * time.Second
	retryLogin    = 2 * time.Second
	maxRetryLogin = time.Minute
)
