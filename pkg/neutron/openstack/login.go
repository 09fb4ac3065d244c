package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// cloud is the way to a Neutron that asks for a token: an http.RoundTripper.
type cloud struct {
	name    string
	timeout time.Duration
	now     func() time.Time
	wrap    func(http.RoundTripper) http.RoundTripper

	mu      sync.Mutex
	ongoing *renewal     // the one that looks at the files or logs in
	config  *cloudConfig // what to log in with
	session *session     // nil before the first login
	checked time.Time    // when the files were last looked at
	failure *failure     // of the last login, or nil
}

// session is what a login gave.
type session struct {
	config   *cloudConfig
	token    string
	project  string   // the ID of the one that the token is for; empty where it is for none
	endpoint *url.URL // of Neutron, without its version
}

// failure is a login that failed, and is not tried again for a while.
type failure struct {
	config *cloudConfig
	err    *neutron.Error
	until  time.Time
}

// renewal is done by one caller, for all.
type renewal struct {
	done    chan struct{} // closed when it is over, and the rest is set
	session *session
	err     error
	givenUp bool // because whoever did it gave up, which is no matter of the others
}

var errGivenUp = errors.New("the login was given up")

// login returns a session other than the one that was refused, which may be
// nil. One caller at a time looks at the files and logs in, as its context
// allows; the others wait for what comes of it.
func (c *cloud) login(ctx context.Context, refused *session) (*session, error) {
	for {
		c.mu.Lock()
		r := c.ongoing
		switch {
		case r == nil && c.session != nil && c.session != refused && c.now().Sub(c.checked) < checkFiles:
			defer c.mu.Unlock()
			return c.session, nil
		case r == nil:
			r = &renewal{done: make(chan struct{}), err: errGivenUp, givenUp: true}
			c.ongoing = r
			c.mu.Unlock()
			c.renew(ctx, r, refused)
			return r.session, r.err
		}
		c.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, c.waitedInVain(ctx)
		}
		if r.err == nil && r.session != refused {
			return r.session, nil
		}
		if r.err != nil && !r.givenUp {
			return nil, r.err
		}
	}
}

// renew does what a renewal is for. Where it fails, there is no session any more:
// the one there was is refused, or belongs to what the files no longer name.
func (c *cloud) renew(ctx context.Context, r *renewal, refused *session) {
	current := c.current()
	if current == refused {
		current = nil
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ongoing, c.session = nil, r.session
		close(r.done)
	}()
	s, failed := c.sessionAfterLook(ctx, current)
	if failed != nil {
		r.err, r.givenUp = failed, callerGaveUp(ctx)
		return
	}
	r.session, r.err, r.givenUp = s, nil, false
}

// current returns the session there is, or nil.
func (c *cloud) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// sessionAfterLook looks at the files, and logs in where that is needed. The
// session there is, is kept where it is still what the files say, and while the
// login with what they say now fails: whoever rotates a password may change the
// file before Keystone. (But not where they name another cloud or project:
// nothing more is then to be done in the old one.)
func (c *cloud) sessionAfterLook(ctx context.Context, current *session) (*session, *neutron.Error) {
	config, broken := c.reload()
	if current != nil && current.config == config {
		return current, nil
	}
	s, failed := c.tryLogin(ctx, config)
	if failed != nil && ctx.Err() == nil {
		before := config
		if config, broken = c.reload(); config != before { // they may have been read while they were written
			s, failed = c.tryLogin(ctx, config)
		}
	}
	switch {
	case failed == nil:
		return s, nil
	case current != nil && current.config.sameCloud(config):
		return current, nil
	case broken != nil:
		both := *failed
		both.Message += "; the files were changed since, and cannot be used: " + broken.Error()
		return nil, &both
	}
	return nil, failed
}

// reload looks at the files. What was read of them before stays where they are
// broken; the error says how.
func (c *cloud) reload() (*cloudConfig, error) {
	old := c.config // which only one caller at a time changes
	config, err := loadCloud(c.name, old, c.wrap)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked = c.now()
	if err != nil {
		return old, err
	}
	if config != old {
		old.transport.CloseIdleConnections()
		c.config = config
	}
	return config, nil
}

// tryLogin logs in, unless that failed a moment ago.
func (c *cloud) tryLogin(ctx context.Context, config *cloudConfig) (*session, *neutron.Error) {
	if f := c.failure; f != nil && f.config == config && c.now().Before(f.until) {
		return nil, f.err
	}
	s, err := config.login(ctx)
	if err == nil {
		c.failure = nil
		return s, nil
	}
	failed := loginFailed(ctx, config, c.timeout, err)
	if !callerGaveUp(ctx) {
		wait := min(max(failed.RetryAfter, retryLogin), maxRetryLogin)
		c.failure = &failure{config, failed, c.now().Add(wait)}
	}
	return nil, failed
}

// callerGaveUp reports whether the context ended, and not because of our own limit.
func callerGaveUp(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), tooSlow{})
}

// waitedInVain is the failure of a caller that waited for somebody else's login.
func (c *cloud) waitedInVain(ctx context.Context) *neutron.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return loginFailed(ctx, c.config, c.timeout, ctx.Err())
}

// login asks Keystone for a token, in one request.
func (c *cloudConfig) login(ctx context.Context) (*session, error) {
	service := &gophercloud.ServiceClient{ProviderClient: newProvider(c.transport), Endpoint: c.identity.String() + "/"}
	auth := c.auth // gophercloud writes into it
	var result interface {
		ExtractTokenID() (string, error)
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
		ExtractProject() (*tokens.Project, error)
	}
	if auth.TokenID != "" && auth.Scope == nil {
		service.SetToken(auth.TokenID)
		result = tokens.Get(ctx, service, auth.TokenID) // there is no other token to be had
	} else {
		result = tokens.Create(ctx, service, &auth)
	}
	token, err := result.ExtractTokenID()
	if err != nil {
		return nil, err
	}
	catalog, err := result.ExtractServiceCatalog()
	switch {
	case err != nil:
		return nil, unusable("it is not the JSON of a Keystone")
	case token == "":
		return nil, unusable("it has no token")
	}
	endpoint, err := c.findNeutron(catalog)
	if err != nil {
		return nil, err
	}
	s := &session{config: c, token: token, endpoint: endpoint}
	if project, err := result.ExtractProject(); err == nil && project != nil {
		s.project = project.ID
	}
	return s, nil
}

// findNeutron returns the address of the network service. Where it is in several
// regions and none was chosen, any choice could be another one the next time,
// and another region looks like one in which everything has gone.
func (c *cloudConfig) findNeutron(catalog *tokens.ServiceCatalog) (*url.URL, error) {
	want := "interface " + string(c.endpoint.Availability)
	if c.endpoint.Region != "" {
		want += " in region " + c.endpoint.Region
	}
	var there, regions, found []string
	for _, service := range catalog.Entries {
		if service.Type != "network" {
			continue
		}
		for _, e := range service.Endpoints {
			region := cmp.Or(e.RegionID, e.Region)
			there = append(there, "interface "+e.Interface+" in region "+region)
			if e.Interface == string(c.endpoint.Availability) && (c.endpoint.Region == "" || e.Region == c.endpoint.Region || e.RegionID == c.endpoint.Region) {
				regions, found = append(regions, region), append(found, e.URL)
			}
		}
	}
	slices.Sort(there)
	slices.Sort(regions)
	regions = slices.Compact(regions)
	switch {
	case len(there) == 0:
		return nil, unusable("its catalog has no network service at all (is the login for a project?)")
	case len(found) == 0:
		return nil, unusable("its catalog has no network service with %s, but with %s", want, strings.Join(slices.Compact(there), ", "))
	case len(regions) > 1:
		return nil, unusable("its catalog has network services in the regions %s: choose one with region_name", strings.Join(regions, ", "))
	}
	endpoint, err := parseURL(found[0], "v2.0")
	if err != nil {
		return nil, unusable("the address of the network service in its catalog %v", err)
	}
	return endpoint, nil
}

// loginFailed describes a login that failed.
func loginFailed(ctx context.Context, config *cloudConfig, timeout time.Duration, err error) *neutron.Error {
	r := request{op: "login", host: hostPort(config.identity), timeout: timeout, secrets: config.secrets}
	failure := &neutron.Error{Op: r.op, Class: neutron.ErrUnavailable}
	var answer gophercloud.ErrUnexpectedResponseCode
	switch {
	case errors.As(err, &answer):
		failure.Status = answer.Actual
		failure.Type, failure.Message = r.readKeystone(answer.Actual, answer.Body)
		if failure.Type != "" {
			failure.Message += fmt.Sprintf(" (it is the login for the cloud %s of clouds.yaml)", config.name)
		}
		failure.RetryAfter = retryAfter(answer.ResponseHeader.Get("Retry-After"), time.Now())
	case callerGaveUp(ctx):
		failure.Cause = ctx.Err()
		failure.Message = ctx.Err().Error()
	default:
		failure.Message = r.clean(withoutAnswer(r, err))
	}
	return failure
}

// readKeystone returns Keystone's name for a failure and its message, or the
// status in words where the body is not Keystone's.
func (r request) readKeystone(status int, body []byte) (typ, message string) {
	var answer struct {
		Error struct {
			Title   string `json:"title"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err == nil && answer.Error.Message != "" {
		return r.clean(answer.Error.Title), r.clean(answer.Error.Message)
	}
	message = http.StatusText(status)
	if status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests {
		message += fmt.Sprintf(" (%s does not answer as Keystone would: is auth_url right?)", r.host)
	}
	return "", message
}
