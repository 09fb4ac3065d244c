package openstack

import (
	"context"
	"crypto/tls"
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

// DefaultTimeout is how long one request may take, its answer included.
const DefaultTimeout = 30 * time.Second

// maxAnswer bounds what is read of an answer. A list of 10,000 networks in one
// page is some 7 MB.
const maxAnswer = 64 << 20

// Option changes how a client behaves.
type Option func(*options)

type options struct {
	timeout time.Duration
	now     func() time.Time
	wrap    func(http.RoundTripper) http.RoundTripper
}

func newOptions(opts []Option) options {
	o := options{timeout: DefaultTimeout, now: time.Now, wrap: func(next http.RoundTripper) http.RoundTripper { return next }}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithTimeout sets how long one request may take, its answer included, and a
// login where it needs one; every page of a list has that long. Without it, or
// with 0, it is DefaultTimeout.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) {
		if timeout > 0 {
			o.timeout = timeout
		}
	}
}

// WithTransport has each request, logins among them, go through what wrap
// returns, which must pass it on: to count it, say. See Operation.
func WithTransport(wrap func(next http.RoundTripper) http.RoundTripper) Option {
	return func(o *options) { o.wrap = wrap }
}

// client is a neutron.Client.
type client struct {
	service *gophercloud.ServiceClient
	// target is where requests go, and who logs in there.
	target  target
	timeout time.Duration
}

// target is what differs between a Neutron that asks for no authentication and
// one of a cloud.
type target interface {
	fmt.Stringer
	// host is the host and port of Neutron, for messages.
	host() string
	// secrets are those that a message must not hold.
	secrets() []string
	// refused says what to think of when a request is answered with 401.
	refused() string
}

// New returns a client for a Neutron that asks for no authentication, such as
// http://127.0.0.1:9696. It makes no request. As a fmt.Stringer, the client says
// where its requests go.
func New(endpoint string, opts ...Option) (neutron.Client, error) {
	base, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	o := newOptions(opts)
	provider := newProvider(newTransport(nil, o.wrap))
	provider.HTTPClient.Timeout = o.timeout
	return newClient(provider, base, openNeutron{base}, o), nil
}

// openNeutron is a Neutron that asks for no authentication.
type openNeutron struct{ base *url.URL }

func (n openNeutron) String() string  { return n.base.String() }
func (n openNeutron) host() string    { return hostPort(n.base) }
func (openNeutron) secrets() []string { return nil }
func (openNeutron) refused() string   { return "it asks for a login, and is used without one" }

// newClient is the part that does not depend on how one logs in.
func newClient(provider *gophercloud.ProviderClient, base *url.URL, target target, o options) *client {
	return &client{
		service: &gophercloud.ServiceClient{
			ProviderClient: provider,
			Endpoint:       base.String(),
			ResourceBase:   base.JoinPath("v2.0").String() + "/",
		},
		target:  target,
		timeout: o.timeout,
	}
}

// String says where requests go, without secrets.
func (c *client) String() string { return c.target.String() }

// Format writes the same for every verb: what is inside holds secrets.
func (c *client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// newProvider returns what makes requests. It has neither RetryFunc nor
// RetryBackoffFunc nor ReauthFunc: gophercloud then tries nothing again by
// itself.
func newProvider(transport http.RoundTripper) *gophercloud.ProviderClient {
	provider := &gophercloud.ProviderClient{HTTPClient: http.Client{
		Transport: transport,
		// A redirect is an answer that we cannot use: following it would be a
		// second request, and would take a login to whoever asks for it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	provider.UserAgent.Prepend("samplecrd-controller/" + version())
	return provider
}

// newTransport returns a transport of its own, so that no other package's
// settings reach it.
func newTransport(config *tls.Config, wrap func(http.RoundTripper) http.RoundTripper) *boundedTransport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    100, // as many as there may be workers
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
	}
	return &boundedTransport{Transport: transport, next: wrap(transport)}
}

// boundedTransport refuses to read answers without end.
type boundedTransport struct {
	*http.Transport
	next http.RoundTripper // the way to it
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// parseEndpoint returns the URL without its version and without a slash at its
// end. Its errors don't repeat the endpoint, which may hold a password.
func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := parseURL(endpoint, "v2.0")
	if err != nil {
		return nil, fmt.Errorf("the endpoint %w; want one such as http://127.0.0.1:9696", err)
	}
	return u, nil
}

// parseURL returns the URL of a service without the version, where it ends with
// that, and without a slash at its end. Its errors say what is wrong with it,
// and don't repeat it.
func parseURL(text, version string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is empty")
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("begins with neither http:// nor https://")
	case u.User != nil:
		return nil, errors.New("holds a user name or password, which does not belong in a URL")
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	case !validPort(u.Port()):
		return nil, errors.New("has a port that is not a number from 1 to 65535")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("has a query or a fragment")
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

// version returns the version of this program where it was built from one.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// guarded returns a client whose requests are carried out only while the object
// has the revision given. (gophercloud can say so for updates only.)
func (c *client) guarded(revision int) *gophercloud.ServiceClient {
	service := *c.service
	service.MoreHeaders = map[string]string{"If-Match": "revision_number=" + strconv.Itoa(revision)}
	return &service
}

// checkID refuses what would make a path of another object, or of none: IDs
// come out of a status, which people can write to.
func checkID(op, id string) error {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: fmt.Sprintf("%.80q is not an ID", id)}
		}
	}
	if id == "" {
		return &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: "the ID is empty"}
	}
	return nil
}

var _ neutron.Client = (*client)(nil)

// failed turns a failure of a request into a *neutron.Error.
func (c *client) failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return classify(ctx, request{op: op, host: c.target.host(), timeout: c.timeout, secrets: c.target.secrets(), hint: c.target.refused()}, err)
}
