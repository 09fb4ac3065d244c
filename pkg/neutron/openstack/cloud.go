package openstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// NewFromCloud returns a client for the Neutron of a cloud in clouds.yaml. If the
// name is empty, OS_CLOUD names the cloud. NewFromCloud makes no request: the
// client logs in with its first request, and again when Neutron rejects its
// token. A failed login is a *neutron.Error of the class neutron.ErrUnavailable.
//
// clouds.yaml is the file in OS_CLIENT_CONFIG_FILE. Without the variable, it is
// in the working directory, ~/.config/openstack or /etc/openstack. secure.yaml is
// the file in OS_CLIENT_SECURE_FILE, or is in the directory of clouds.yaml.
// OS_REGION_NAME, OS_INTERFACE, OS_CACERT, OS_CERT and OS_KEY override the files.
// Errors name the file and the field, and no text of the client holds a secret.
//
// Changed files take effect with the requests of the next seconds, and at once if a
// login or token is rejected. If the files name another region or project, requests
// fail until the files name the first one again, or the process is restarted: its
// Networks have their networks in the first one. If the changed files are unusable,
// the client keeps its previous login while that works; then the error describes
// both problems.
//
// As a fmt.Stringer, the client describes its cloud and, after a login, the
// address of Neutron.
func NewFromCloud(name string, opts ...Option) (neutron.Client, error) {
	if name == "" {
		name = os.Getenv("OS_CLOUD")
	}
	if name == "" {
		return nil, errors.New("no cloud is named; set -cloud or OS_CLOUD")
	}
	o := newOptions(opts)
	config, err := loadCloud(name, nil, o.wrap)
	if err != nil {
		return nil, err
	}
	c := &cloud{name: name, wrap: o.wrap, timeout: o.timeout, now: o.now, checked: o.now()}
	c.config.Store(config)
	return newClient(newProvider(c), placeholder, c, o), nil
}

// placeholder is the address of requests before cloud replaces it by Neutron's.
var placeholder = &url.URL{Scheme: "http", Host: "neutron.invalid"}

// cloud is an http.RoundTripper that sends requests to a cloud's Neutron with a
// token. gophercloud's own renewal of tokens keeps the address and credentials of
// the first login, and one caller that gives up fails the login for all.
type cloud struct {
	name    string
	timeout time.Duration
	now     func() time.Time
	wrap    func(http.RoundTripper) http.RoundTripper

	config  atomic.Pointer[cloudConfig] // what to log in with
	session atomic.Pointer[session]     // nil without a valid login

	access access // what Neutron does with the tokens

	mu      sync.Mutex // of the next two fields; it is not held while waiting
	running *attempt   // or nil
	checked time.Time  // when the last attempt began

	// Only the running attempt uses these.
	failure *failure // of the last login, or nil
	pinned  *session // the last successful login; the cloud stays that of the first one
}

// errTimeLimit distinguishes the client's time limit from the caller's.
var errTimeLimit = fmt.Errorf("time limit of the client: %w", context.DeadlineExceeded)

// RoundTrip sends a request with a token. If the response is 401, Neutron has not
// executed the request, and RoundTrip repeats it with a new token, unless the access
// rules forbid it.
func (c *cloud) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer func() { _ = request.Body.Close() }() // copies of it are sent
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), c.timeout, errTimeLimit)
	response, err := c.send(ctx, request)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &cancelingBody{response.Body, cancel}
	return response, nil
}

func (c *cloud) send(ctx context.Context, request *http.Request) (*http.Response, error) {
	op := Operation(request)
	var rejected *session
	for {
		session, err := c.login(ctx, rejected)
		if err != nil {
			return nil, err
		}
		response, err := session.send(ctx, request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			c.access.noteResponse(op, response.StatusCode, c.now())
			return response, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // to reuse the connection
		_ = response.Body.Close()
		if err := c.access.noteRejected(op, session, c.now(), rejected != nil); err != nil {
			return nil, err
		}
		rejected = session
	}
}

// send sends a copy of a request to the Neutron of the session.
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

// withinProject returns the query of a request. It limits lists to the token's
// project, whatever they look for: other projects can share networks with ours and
// write any description into them, and an administrator sees all networks. The
// exception are the subnets of one network: those of other projects matter, too.
func (s *session) withinProject(request *http.Request) string {
	path, query := request.URL.Path, request.URL.Query()
	kind := path[strings.LastIndex(path, "/")+1:]
	isList := request.Method == http.MethodGet && (slices.Contains([]string{"networks", "subnets", "routers"}, kind) || kind == "ports" && query.Has("device_owner"))
	if !isList || s.project == "" || query.Has("network_id") || query.Has("project_id") {
		return request.URL.RawQuery
	}
	query.Set("project_id", s.project)
	return query.Encode()
}

// cancelingBody releases the context of a request when its body is closed.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// identity implements target.
func (c *cloud) identity(ctx context.Context) (string, error) {
	s, err := c.login(ctx, nil)
	if err != nil {
		return "", err
	}
	return s.identity(), nil
}

// project implements target.
func (c *cloud) project() string {
	if s := c.session.Load(); s != nil {
		return s.project
	}
	return ""
}

// host implements target.
func (c *cloud) host() string {
	if s := c.session.Load(); s != nil {
		return hostPort(s.endpoint)
	}
	return "Neutron"
}

// secrets implements target.
func (c *cloud) secrets() []string {
	if s := c.session.Load(); s != nil {
		return append(slices.Clone(s.config.secrets), s.token)
	}
	return c.config.Load().secrets
}

// String implements target.
func (c *cloud) String() string {
	config := c.config.Load()
	text := fmt.Sprintf("cloud %s at %s, interface %s", c.name, config.identity, config.endpoint.Availability)
	if region := config.endpoint.Region; region != "" {
		text += ", region " + region
	}
	if config.tls.InsecureSkipVerify {
		text += ", certificates NOT verified"
	}
	if s := c.session.Load(); s != nil {
		return text + ", Neutron at " + s.endpoint.String()
	}
	return text + ", not logged in"
}
