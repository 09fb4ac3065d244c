package openstack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// DefaultTimeout limits the time of one request, with its response.
const DefaultTimeout = 30 * time.Second

// Options are the settings of a client. All can be omitted.
type Options struct {
	// Timeout limits the time of one request, with its response and the login that it
	// may need. Each page of a list is one request. Defaults to DefaultTimeout.
	Timeout time.Duration
	// CloudIdentity is what Cloud returns for a Neutron without authentication. Defaults
	// to noauth/ and the host and port.
	CloudIdentity string
	// Transport returns a RoundTripper that each request goes through, logins included,
	// such as one that counts requests by their Operation.
	Transport func(next http.RoundTripper) http.RoundTripper
	// MaxList limits the size of a list with all its pages, in bytes. Defaults to
	// maxResponse.
	MaxList int64
	// Skipped is called for each list that has skipped objects of others that it could not
	// read, such as one with a negative MTU: with the kind, the number of the objects, and
	// the reason for the first of them.
	Skipped func(ctx context.Context, kind string, count int, reason string)
	// Now returns the current time. Defaults to time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Timeout, o.MaxList = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxList, maxResponse)
	if o.Transport == nil {
		o.Transport = func(next http.RoundTripper) http.RoundTripper { return next }
	}
	if o.Skipped == nil {
		o.Skipped = func(context.Context, string, int, string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// client is a neutron.Client.
type client struct {
	target
	Options
}

var (
	_ neutron.Client      = (*client)(nil)
	_ neutron.PageReader  = (*client)(nil)
	_ neutron.QuotaReader = (*client)(nil)
)

// target is the Neutron that requests go to: one with a login (cloud), or without one
// (openNeutron). As a fmt.Stringer, it describes itself without secrets.
type target interface {
	fmt.Stringer
	// login returns a session other than the rejected one, which may be nil.
	login(ctx context.Context, rejected *session) (*session, error)
	// check notes the response to a request. It reports whether the request is to be
	// repeated with another session, and its error if Neutron rejected the token.
	check(op string, used *session, status int, repeated bool) (again bool, err error)
	// host returns the host and port of Neutron, for messages.
	host() string
	// secrets returns the texts that no message may contain.
	secrets() []string
}

// session is an access to a Neutron: the result of a login.
type session struct {
	cloud     string   // its identity: neither addresses nor credentials are part of it
	endpoint  *url.URL // of Neutron, without its version
	transport http.RoundTripper

	// Without a login, these are empty.
	token   string
	issued  time.Time
	region  string // of the endpoint
	project string // the ID of the token's project
	config  *cloudConfig
}

// openNeutron is a Neutron without authentication.
type openNeutron struct{ *session }

// New returns a client for a Neutron without authentication, such as
// http://127.0.0.1:9696. It makes no request. As a fmt.Stringer, the client
// returns the address of Neutron.
func New(endpoint string, o Options) (neutron.Client, error) {
	base, err := parseURL(endpoint, "v2.0")
	if err != nil {
		return nil, fmt.Errorf("the endpoint %w; set it to a URL such as http://127.0.0.1:9696", err)
	}
	o = o.withDefaults()
	identity := cmp.Or(o.CloudIdentity, "noauth/"+hostPort(base))
	s := &session{cloud: identity, endpoint: base, transport: newTransport(&cloudConfig{}, o.Transport)}
	return &client{openNeutron{s}, o}, nil
}

func (n openNeutron) login(context.Context, *session) (*session, error)     { return n.session, nil }
func (openNeutron) check(string, *session, int, bool) (again bool, _ error) { return false, nil }
func (n openNeutron) host() string                                          { return hostPort(n.endpoint) }
func (openNeutron) secrets() []string                                       { return nil }
func (n openNeutron) String() string                                        { return n.endpoint.String() }

// Cloud returns the identity of the cloud. It logs in if necessary.
func (c *client) Cloud(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	s, err := c.login(ctx, nil)
	if err != nil {
		return "", err
	}
	return s.cloud, nil
}

// Format writes String for every verb: the fields hold secrets.
func (c *client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// request is a request to Neutron.
type request struct {
	op, method string
	path       []string // a collection, such as networks, an ID, and what follows it
	query      url.Values
	ofProject  bool // to list the objects of the session's project only
	revision   *int // that the object must have, or nil
	body       any
}

// okCodes are the statuses of responses that have what was requested. A redirect is not
// followed: that would be a second request, and could send a token to another host.
var okCodes = map[string][]int{
	http.MethodGet: {http.StatusOK}, http.MethodPost: {http.StatusCreated},
	http.MethodPut: {http.StatusOK, http.StatusCreated}, http.MethodDelete: {http.StatusNoContent},
}

// send sends a request. If the response is 401, Neutron has not executed the request, and
// send repeats it with a new token, unless access rules forbid it.
func (c *client) send(ctx context.Context, r request) (*http.Response, error) {
	var rejected *session
	for {
		s, err := c.login(ctx, rejected)
		if err != nil {
			return nil, err
		}
		response, err := s.send(ctx, r)
		if err != nil {
			return nil, err
		}
		again, err := c.check(r.op, s, response.StatusCode, rejected != nil)
		if !again && err == nil && slices.Contains(okCodes[r.method], response.StatusCode) {
			return response, nil
		}
		body, _ := io.ReadAll(response.Body) // all of it, so that the connection is used again
		_ = response.Body.Close()
		switch {
		case err != nil:
			return nil, err
		case !again:
			return nil, gophercloud.ErrUnexpectedResponseCode{
				Actual: response.StatusCode, ResponseHeader: response.Header, Body: body,
			}
		}
		rejected = s
	}
}

// send sends a request once.
func (s *session) send(ctx context.Context, r request) (*http.Response, error) {
	address := s.endpoint.JoinPath(append([]string{"v2.0"}, r.path...)...)
	query := maps.Clone(r.query)
	if r.ofProject && s.project != "" {
		query.Set("project_id", s.project)
	}
	address.RawQuery = query.Encode()
	var body io.Reader = http.NoBody
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	sent, err := http.NewRequestWithContext(withOperation(ctx, r.op), r.method, address.String(), body)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("Content-Type", "application/json")
	sent.Header.Set("User-Agent", userAgent)
	if s.token != "" {
		sent.Header.Set("X-Auth-Token", s.token)
	}
	if r.revision != nil {
		sent.Header.Set("If-Match", "revision_number="+strconv.Itoa(*r.revision))
	}
	return s.transport.RoundTrip(sent)
}

// write sends a request that changes an object, and decodes the response, unless it
// is nil. (gophercloud's own functions decode a response into maps, encode these, and
// decode that.) The whole response is read, so that its connection is used again.
func (c *client) write(ctx context.Context, r request, response any) error {
	if len(r.path) > 1 && !isID(r.path[1]) { // IDs come from a status, which users can write to
		return &neutron.Error{Op: r.op, Class: neutron.ErrRefused, Message: fmt.Sprintf("%.80q is not an ID", r.path[1])}
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	received, err := c.send(bounded, r) //nolint:bodyclose // closeBody closes it
	if err == nil {
		defer closeBody(received.Body)
		if response != nil {
			err = json.NewDecoder(received.Body).Decode(response)
		}
	}
	return c.failed(ctx, r.op, err)
}

// writeObject sends a request that creates or updates an object, and returns it.
func writeObject[J, V any](ctx context.Context, c *client, k kind[J, V], r request) (object V, err error) {
	r.body = map[string]any{k.name: r.body}
	var response map[string]json.RawMessage
	if err := c.write(ctx, r, &response); err != nil {
		return object, err
	}
	raw, found := response[k.name]
	if !found {
		return object, c.failed(ctx, r.op, unusable("it has no %s", k.name))
	}
	object, err = k.decode(raw)
	return object, c.failed(ctx, r.op, err)
}

// failed returns a failure of a request as a *neutron.Error, and nil for nil.
func (c *client) failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return classify(ctx, c.describe(op), err)
}

// describe returns what the description of a failed request needs.
func (c *client) describe(op string) description {
	return description{op: op, host: c.host(), timeout: c.Timeout, secrets: c.secrets()}
}
