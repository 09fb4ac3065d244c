package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	gopher "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// The client reads the files again after checkFiles. It repeats a failed login
// after retryLogin, or after the Retry-After of Keystone but at most
// maxRetryLogin, unless the files change: thousands of Networks wait for one
// login, and Keystone may lock a user after too many failures.
const (
	checkFiles    = 5 * time.Second
	retryLogin    = 2 * time.Second
	maxRetryLogin = time.Minute
)

// session is the result of a login.
type session struct {
	config   *cloudConfig
	token    string
	project  string   // the ID of the token's project
	region   string   // of the endpoint
	endpoint *url.URL // of Neutron, without its version
}

// identity identifies the cloud: neither addresses nor credentials are part of it.
func (s *session) identity() string { return s.region + "/" + s.project }

// failure is a failed login, which is not repeated for a while.
type failure struct {
	config *cloudConfig
	err    *neutron.Error
	until  time.Time
}

// login returns a session other than the rejected one, which may be nil. One
// caller at a time reads the files and logs in; the others wait and use its
// session, or get its error. If the caller gives up, the next one takes over.
//
// The current session stays in use while it belongs to the configured cloud and
// the login with changed credentials fails: an operator may change the file
// before Keystone. If the files name another cloud or project, the session ends:
// nothing may be changed in the previous one.
func (c *cloud) login(ctx context.Context, rejected *session) (*session, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, c.loginFailed(c.config.Load(), ctx.Err())
	}
	current := c.session.Load()
	if current == rejected {
		current = nil
	}
	if current != nil && c.now().Sub(c.checked) < checkFiles {
		return current, nil
	}
	config, broken := c.reload()
	if current != nil && current.config == config {
		return current, nil
	}
	s, failed := c.tryLogin(ctx, config)
	if failed != nil && current != nil && current.config.sameCloud(config) {
		return current, nil
	}
	c.session.Store(s)
	switch {
	case failed == nil:
		return s, nil
	case broken != nil:
		both := *failed
		both.Message += "; the changed cloud configuration is unusable: " + broken.Error()
		return nil, &both
	}
	return nil, failed
}

// reload reads the files. If they are unusable, it returns the previous
// configuration and the reason.
func (c *cloud) reload() (*cloudConfig, error) {
	old := c.config.Load()
	c.checked = c.now()
	config, err := loadCloud(c.name, old, c.wrap)
	if err != nil {
		return old, err
	}
	if config != old {
		old.transport.CloseIdleConnections()
		c.config.Store(config)
	}
	return config, nil
}

// tryLogin logs in, unless the last attempt failed a moment ago.
func (c *cloud) tryLogin(ctx context.Context, config *cloudConfig) (*session, *neutron.Error) {
	if f := c.failure; f != nil && f.config == config && c.now().Before(f.until) {
		return nil, f.err
	}
	c.failure = nil
	s, err := config.login(ctx)
	if err == nil && (c.pinned == "" || c.pinned == s.identity()) {
		c.pinned = s.identity()
		return s, nil
	}
	var failed *neutron.Error
	if err != nil {
		failed = c.loginFailed(config, err)
	} else {
		failed = &neutron.Error{Op: "login", Class: neutron.ErrUnavailable, Message: fmt.Sprintf(
			"cloud %s of clouds.yaml is now %q, but the controller works in %q: restore clouds.yaml, or restart the controller", c.name, s.identity(), c.pinned)}
	}
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errTimeLimit) { // the caller has not given up
		wait := min(max(failed.RetryAfter, retryLogin), maxRetryLogin)
		c.failure = &failure{config, failed, c.now().Add(wait)}
	}
	return nil, failed
}

// login gets a token from Keystone, with one request.
func (c *cloudConfig) login(ctx context.Context) (*session, error) {
	provider := newProvider(c.transport)
	provider.IdentityBase = strings.TrimSuffix(c.identity.String(), "v3")
	auth := c.auth // gophercloud writes into it
	if err := gopher.AuthenticateV3(ctx, provider, &auth, gophercloud.EndpointOpts{}); err != nil {
		return nil, err
	}
	result, ok := provider.GetAuthResult().(interface {
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
		ExtractProject() (*tokens.Project, error)
	})
	if !ok || provider.Token() == "" {
		return nil, unusable("it has no token")
	}
	project, err := result.ExtractProject()
	switch {
	case err != nil:
		return nil, err
	case project == nil || project.ID == "":
		return nil, unusable("its token has no project, so lists would have the networks of all projects; " +
			"set project_name and project_domain_name, or project_id, in clouds.yaml, without domain_id, domain_name and system_scope")
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, err
	}
	endpoint, region, err := c.findNeutron(catalog)
	switch {
	case err != nil:
		return nil, err
	case c.override != nil:
		endpoint = c.override
	case c.identity.Scheme == "https" && endpoint.Scheme == "http" && !isLoopback(endpoint):
		return nil, unusable("its catalog has an http address for the network service (%s), but auth_url begins with https://: "+
			"the token would be sent without encryption. Ask the operator of the cloud for an https address, or set network_endpoint_override in clouds.yaml to the address that is to be used", endpoint)
	}
	return &session{config: c, token: provider.Token(), project: project.ID, endpoint: endpoint, region: region}, nil
}

// findNeutron returns the address of the network service, and its region. If several regions have
// one, the configuration must choose: gophercloud would take any, and in another
// region all networks would seem to be deleted.
func (c *cloudConfig) findNeutron(catalog *tokens.ServiceCatalog) (address *url.URL, region string, err error) {
	available, wanted := string(c.endpoint.Availability), c.endpoint.Region
	var all, regions, found []string
	for _, service := range catalog.Entries {
		if service.Type != "network" {
			continue
		}
		for _, e := range service.Endpoints {
			region := cmp.Or(e.RegionID, e.Region)
			all = append(all, e.Interface+" in "+region)
			if e.Interface == available && (wanted == "" || e.Region == wanted || e.RegionID == wanted) {
				regions, found = append(regions, region), append(found, e.URL)
			}
		}
	}
	slices.Sort(all)
	slices.Sort(regions)
	regions = slices.Compact(regions)
	switch {
	case len(all) == 0:
		return nil, "", unusable("its catalog has no network service; check that auth_url is the one of the right cloud")
	case len(found) == 0:
		return nil, "", unusable("its catalog has no network service with interface %s in region %q; it has %s", available, wanted, strings.Join(slices.Compact(all), ", "))
	case len(regions) > 1:
		return nil, "", unusable("its catalog has network services in the regions %s; set region_name to one of them", strings.Join(regions, ", "))
	}
	address, err = parseURL(found[0], "v2.0")
	if err != nil {
		return nil, "", unusable("the address of the network service in its catalog %v", err)
	}
	return address, regions[0], nil
}

// isLoopback reports whether requests to a URL stay on this machine.
func isLoopback(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}

// loginFailed describes a failed login.
func (c *cloud) loginFailed(config *cloudConfig, err error) *neutron.Error {
	r := request{op: "login", host: hostPort(config.identity), timeout: c.timeout, secrets: config.secrets}
	failed := &neutron.Error{Op: r.op, Class: neutron.ErrUnavailable}
	var answer gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &answer) {
		failed.Message = r.clean(withoutAnswer(r, err))
		return failed
	}
	failed.Status = answer.Actual
	failed.RetryAfter = retryAfter(answer.ResponseHeader.Get("Retry-After"), time.Now())
	failed.Type, failed.Message = r.readKeystone(answer.Actual, answer.Body)
	if failed.Type != "" {
		failed.Message += fmt.Sprintf(" (login to cloud %s of clouds.yaml)", config.name)
	}
	return failed
}

// readKeystone returns Keystone's name for a failure and its message. If another
// server answered, it returns the name of the status.
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
		message += fmt.Sprintf(" (%s does not answer like a Keystone; check auth_url)", r.host)
	}
	return "", message
}
