package openstack

import (
	"context"
	"fmt"
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
}

// WithTimeout sets how long one request may take, its answer included; every
// page of a list has that long. Without it, or with 0, it is DefaultTimeout.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) {
		if timeout > 0 {
			o.timeout = timeout
		}
	}
}

// client is a neutron.Client.
type client struct {
	service *gophercloud.ServiceClient
	host    string // host:port, for messages
	timeout time.Duration
}

// New returns a client for a Neutron that asks for no authentication, such as
// http://127.0.0.1:9696. It makes no request.
func New(endpoint string, opts ...Option) (neutron.Client, error) {
	base, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	o := options{timeout: DefaultTimeout}
	for _, opt := range opts {
		opt(&o)
	}
	provider := &gophercloud.ProviderClient{HTTPClient: newHTTPClient(o.timeout)}
	return newClient(&gophercloud.ServiceClient{
		ProviderClient: provider,
		Endpoint:       base.String(),
		ResourceBase:   base.JoinPath("v2.0").String() + "/",
	}, hostPort(base), o), nil
}

// newClient is the part that does not depend on how one logs in. The provider
// must have neither RetryFunc nor RetryBackoffFunc: gophercloud then tries
// nothing again by itself.
func newClient(service *gophercloud.ServiceClient, host string, o options) *client {
	service.UserAgent.Prepend("samplecrd-controller/" + version())
	return &client{service: service, host: host, timeout: o.timeout}
}

// newHTTPClient returns a client of its own, so that no other package's
// settings reach it.
func newHTTPClient(timeout time.Duration) http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return http.Client{
		Timeout: timeout,
		Transport: &boundedTransport{&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        90 * time.Second,
			MaxIdleConns:           100,
			MaxIdleConnsPerHost:    100, // as many as there may be workers
			MaxResponseHeaderBytes: 1 << 20,
			ForceAttemptHTTP2:      true,
		}},
		// A redirect is an answer that we cannot use: following it would be a
		// second request, and would take a login to whoever asks for it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedTransport refuses to read answers without end.
type boundedTransport struct{ http.RoundTripper }

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}

// parseEndpoint returns the URL without its version and without a slash at its
// end. Its errors don't repeat the endpoint, which may hold a password.
func parseEndpoint(endpoint string) (*url.URL, error) {
	const want = "; want one such as http://127.0.0.1:9696"
	u, err := url.Parse(endpoint)
	switch {
	case endpoint == "":
		return nil, fmt.Errorf("the endpoint is empty%s", want)
	case err != nil:
		return nil, fmt.Errorf("the endpoint is not a URL%s", want)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the endpoint begins with neither http:// nor https://%s", want)
	case u.User != nil:
		return nil, fmt.Errorf("the endpoint holds a user name or password, which does not belong in a URL%s", want)
	case u.Hostname() == "":
		return nil, fmt.Errorf("the endpoint names no host%s", want)
	case !validPort(u.Port()):
		return nil, fmt.Errorf("the endpoint's port is not a number from 1 to 65535%s", want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("the endpoint has a query or a fragment%s", want)
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v2.0")
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
			return &neutron.Error{Op: op, Kind: neutron.ErrRefused, Message: fmt.Sprintf("%.80q is not an ID", id)}
		}
	}
	if id == "" {
		return &neutron.Error{Op: op, Kind: neutron.ErrRefused, Message: "the ID is empty"}
	}
	return nil
}

var _ neutron.Client = (*client)(nil)

// failed turns a failure of a request into a *neutron.Error.
func (c *client) failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return classify(ctx, request{op: op, host: c.host, timeout: c.timeout}, err)
}
