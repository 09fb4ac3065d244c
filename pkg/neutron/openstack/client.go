package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// DefaultTimeout limits the time of one request, with its answer.
const DefaultTimeout = 30 * time.Second

// maxAnswer limits the size of a list with all its pages, in bytes. A list of
// 10,000 networks has about 7 MB.
const maxAnswer = 128 << 20

// Option changes how a client behaves.
type Option func(*options)

type options struct {
	timeout time.Duration
	now     func() time.Time
	cloud   string
	wrap    func(http.RoundTripper) http.RoundTripper
	skipped skippedFunc
}

// skippedFunc receives how many objects of a kind a list has skipped, and why the
// first of them.
type skippedFunc func(ctx context.Context, kind string, count int, reason string)

func newOptions(opts []Option) options {
	o := options{
		timeout: DefaultTimeout, now: time.Now, wrap: func(next http.RoundTripper) http.RoundTripper { return next },
		skipped: func(context.Context, string, int, string) {},
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithTimeout limits the time of one request, with its answer and the login that
// it may need. Each page of a list is one request. Defaults to DefaultTimeout,
// also for 0.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) {
		if timeout > 0 {
			o.timeout = timeout
		}
	}
}

// WithCloudIdentity sets the identity of a Neutron without authentication, which
// is returned by Cloud. Defaults to noauth/ and the host and port.
func WithCloudIdentity(identity string) Option {
	return func(o *options) { o.cloud = identity }
}

// WithTransport sends each request, logins included, through the RoundTripper
// that wrap returns, such as one that counts requests by their Operation.
func WithTransport(wrap func(next http.RoundTripper) http.RoundTripper) Option {
	return func(o *options) { o.wrap = wrap }
}

// OnSkipped sets a function that is called for each list that has skipped objects
// of others that it could not read, such as one with a negative MTU.
func OnSkipped(skipped func(ctx context.Context, kind string, count int, reason string)) Option {
	return func(o *options) { o.skipped = skipped }
}

// client is a neutron.Client.
type client struct {
	service   *gophercloud.ServiceClient
	target    target
	timeout   time.Duration
	onSkipped skippedFunc
}

// target describes the Neutron that requests go to. It has two implementations:
// with a login (cloud) and without (openNeutron).
type target interface {
	fmt.Stringer
	// identity returns the identity of the cloud.
	identity(ctx context.Context) (string, error)
	// host returns the host and port of Neutron, for messages.
	host() string
	// project returns the ID of the project that requests belong to, or nothing if
	// that is not known.
	project() string
	// secrets returns the texts that no message may hold.
	secrets() []string
}

// New returns a client for a Neutron without authentication, such as
// http://127.0.0.1:9696. It makes no request. As a fmt.Stringer, the client
// returns the address of Neutron.
func New(endpoint string, opts ...Option) (neutron.Client, error) {
	base, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	o := newOptions(opts)
	provider := newProvider(newTransport(nil, o.wrap))
	provider.HTTPClient.Timeout = o.timeout
	return newClient(provider, base, openNeutron{base, cmp.Or(o.cloud, "noauth/"+hostPort(base))}, o), nil
}

// openNeutron is a Neutron without authentication.
type openNeutron struct {
	base  *url.URL
	cloud string
}

func (n openNeutron) String() string { return n.base.String() }
func (n openNeutron) host() string   { return hostPort(n.base) }

func (n openNeutron) identity(context.Context) (string, error) { return n.cloud, nil }

func (openNeutron) project() string   { return "" }
func (openNeutron) secrets() []string { return nil }

// newClient returns a client whose requests go through a provider.
func newClient(provider *gophercloud.ProviderClient, base *url.URL, target target, o options) *client {
	return &client{
		service: &gophercloud.ServiceClient{
			ProviderClient: provider,
			Endpoint:       base.String(),
			ResourceBase:   base.JoinPath("v2.0").String() + "/",
		},
		target:    target,
		timeout:   o.timeout,
		onSkipped: o.skipped,
	}
}

// Cloud implements neutron.Client. It logs in if necessary.
func (c *client) Cloud(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeLimit)
	defer cancel()
	return c.target.identity(ctx)
}

// String describes where requests go, without secrets.
func (c *client) String() string { return c.target.String() }

// Format writes String for every verb: the fields hold secrets.
func (c *client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// newProvider returns a gophercloud client that makes requests. It has neither
// RetryFunc nor RetryBackoffFunc nor ReauthFunc: gophercloud repeats no request.
func newProvider(transport http.RoundTripper) *gophercloud.ProviderClient {
	provider := &gophercloud.ProviderClient{HTTPClient: http.Client{
		Transport: transport,
		// A redirect is an unusable answer. To follow it would be a second
		// request, and could send a token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	provider.UserAgent.Prepend("samplecrd-controller/" + version())
	return provider
}

// newTransport returns a new transport: http.DefaultTransport can be changed by
// other packages.
func newTransport(config *tls.Config, wrap func(http.RoundTripper) http.RoundTripper) *boundedTransport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    100, // one per worker
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
	}
	return &boundedTransport{Transport: transport, next: wrap(transport)}
}

// boundedTransport is an http.Transport that limits the size of answers. The limit
// applies to what a compressed answer unpacks to.
type boundedTransport struct {
	*http.Transport
	next http.RoundTripper // the Transport, wrapped
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		limit := int64(maxValue)
		if request.Method == http.MethodGet && response.StatusCode == http.StatusOK {
			limit = maxAnswer // a list, which is decoded as a stream
		}
		response.Body = http.MaxBytesReader(nil, response.Body, limit)
	}
	return response, err
}

// parseEndpoint returns the URL of a Neutron, without its version.
func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := parseURL(endpoint, "v2.0")
	if err != nil {
		return nil, fmt.Errorf("the endpoint %w; set it to a URL such as http://127.0.0.1:9696", err)
	}
	return u, nil
}

// parseURL returns the URL of a service without a version and slashes at its end.
// Its errors do not repeat the URL, which may hold a password.
func parseURL(text, version string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is empty")
	case len(text) > maxText:
		return nil, errors.New("is too long")
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with http:// or https://")
	case u.User != nil:
		return nil, errors.New("holds a user name or password; remove them")
	case u.Hostname() == "":
		return nil, errors.New("has no host")
	case !validPort(u.Port()):
		return nil, errors.New("must have a port from 1 to 65535, or none")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("has a query or a fragment; remove it")
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/"+version)
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(path, "/")}, nil
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// hostPort returns the host and port that requests go to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// version returns the version of this program, or "dev".
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// write sends a request that changes an object, and decodes the answer, unless it
// is nil. (gophercloud's own functions decode an answer into maps, encode these, and
// decode that.) The whole answer is read, so that its connection is used again.
func (c *client) write(ctx context.Context, method, address string, headers map[string]string, body, answer any) error {
	opts := gophercloud.RequestOpts{JSONBody: body, MoreHeaders: headers, KeepResponseBody: true}
	if method == http.MethodPut {
		opts.OkCodes = []int{http.StatusOK, http.StatusCreated}
	}
	response, err := c.service.Request(ctx, method, address, &opts) //nolint:bodyclose // closeBody closes it
	if err != nil {
		return err
	}
	defer closeBody(response.Body)
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// ifMatch returns the header of a request that fails unless the object has a
// revision.
func ifMatch(revision int) map[string]string {
	return map[string]string{"If-Match": "revision_number=" + strconv.Itoa(revision)}
}

// checkID rejects an ID that would change the path of a request: IDs come from a
// status, which users can write to.
func checkID(op, id string) error {
	if !isID(id) {
		return &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: fmt.Sprintf("%.80q is not an ID", id)}
	}
	return nil
}

var (
	_ neutron.Client     = (*client)(nil)
	_ neutron.PageReader = (*client)(nil)
)

// failed returns a failure of a request as a *neutron.Error, and nil for nil.
func (c *client) failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return classify(ctx, c.describe(op), err)
}

// describe returns what the description of a failed request needs.
func (c *client) describe(op string) request {
	return request{op: op, host: c.target.host(), timeout: c.timeout, secrets: c.target.secrets()}
}
