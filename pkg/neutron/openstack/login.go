package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	gopher "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// The client reads the files again after checkFiles. It repeats a failed login after
// retryLogin, and each further failure doubles this, unless the files change: thousands
// of Networks wait for one login, and Keystone may lock a user after too many failures.
// Retry-After makes the wait longer. It is never longer than maxRetryLogin, as that of a
// Network.
const (
	checkFiles    = 5 * time.Second
	retryLogin    = 2 * time.Second
	maxRetryLogin = 2 * time.Minute
)

// failure is a failed login, which is not repeated for a while.
type failure struct {
	config *cloudConfig
	err    *neutron.Error
	wait   time.Duration // before Retry-After
	until  time.Time
}

// login returns a session other than the rejected one, which may be nil. Only callers
// without such a session wait for an attempt to get one: the first of them begins it, all
// share its session, or its error, and no caller ends it by giving up.
//
// The rejected session stays in use for other requests until there is another one: its
// token may work for them.
func (c *cloud) login(ctx context.Context, rejected *session) (*session, error) {
	for {
		current := c.session.Load()
		usable := current != nil && current != rejected
		if usable && c.now().Sub(time.Unix(0, c.checked.Load())).Abs() < checkFiles { // the clock may be set
			return current, nil
		}
		attempt := c.attempts.DoChan("", func() (any, error) {
			c.checked.Store(c.now().UnixNano())
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
			defer cancel()
			current := c.session.Load() // another attempt may just have got one
			return c.renew(ctx, current, current != nil && current != rejected)
		})
		if usable {
			return current, nil
		}
		select {
		case result := <-attempt:
			if result.Err != nil {
				return nil, result.Err
			}
			if renewed := result.Val.(*session); renewed != rejected {
				return renewed, nil
			} // otherwise, the attempt began before the session was rejected
		case <-ctx.Done():
			return nil, c.loginFailed(c.config.Load(), ctx.Err())
		}
	}
}

// renew reads the files and, if necessary, logs in. Usable tells that no caller was
// rejected with the current session, which may be nil.
//
// The current session stays in use while it belongs to the configured cloud and
// the login with changed credentials fails: an operator may change the file
// before Keystone. If the files name another cloud or project, the session ends:
// nothing may be changed in the previous one.
func (c *cloud) renew(ctx context.Context, current *session, usable bool) (*session, error) {
	config, broken := c.reload(ctx)
	if usable && current.config == config {
		return current, nil
	}
	if current != nil && !current.config.mayBeSameCloud(config) {
		c.replace(nil)
		usable = false
	}
	s, failed := c.tryLogin(ctx, config)
	switch {
	case failed == nil:
		if current == nil || current.config != config {
			c.tokens.forget()
		}
		c.replace(s)
		return s, nil
	case failed.Type == otherCloud:
		c.replace(nil)
	case usable:
		return current, nil
	}
	if broken == nil {
		return nil, failed
	}
	both := *failed
	both.Message += "; the changed cloud configuration is unusable: " + broken.Error()
	return nil, &both
}

// reload reads the files. If they are unusable, it returns the previous
// configuration and the reason.
func (c *cloud) reload(ctx context.Context) (*cloudConfig, error) {
	old := c.config.Load()
	config, err := c.load(ctx, c.failure != nil && c.failure.config == old)
	if err != nil || config.equal(old) {
		return old, err
	}
	old.transport.CloseIdleConnections()
	config.transport = newTransport(config, c.wrap)
	c.config.Store(config)
	return config, nil
}

// otherCloud is the Type of a login that leads to another cloud than the first one.
const otherCloud = "OtherCloud"

// tryLogin logs in, unless it is too early after the last failure.
func (c *cloud) tryLogin(ctx context.Context, config *cloudConfig) (*session, *neutron.Error) {
	wait := retryLogin
	if last := c.failure; last != nil && last.config == config {
		if c.now().Before(last.until) {
			return nil, last.err
		}
		wait = min(2*last.wait, maxRetryLogin)
	}
	s, failed := c.loginOnce(ctx, config)
	if failed == nil {
		c.failure = nil
		return s, nil
	}
	until := c.now().Add(min(max(failed.RetryAfter, wait), maxRetryLogin))
	c.failure = &failure{config: config, err: failed, wait: wait, until: until}
	return nil, failed
}

// maxIdentity bounds the identity of a cloud, in bytes. The status of a Network has room for it.
const maxIdentity = 253

// loginOnce logs in to the cloud of the first login.
func (c *cloud) loginOnce(ctx context.Context, config *cloudConfig) (*session, *neutron.Error) {
	first := ""
	if c.pinned != nil {
		first = c.pinned.region
	}
	s, err := config.login(ctx, first)
	switch {
	case err != nil:
		return nil, c.loginFailed(config, err)
	case len(s.cloud) > maxIdentity:
		return nil, c.loginFailed(config, unusable("its region and project ID have more than %d bytes", maxIdentity))
	case c.pinned != nil && c.pinned.cloud != s.cloud:
		return nil, &neutron.Error{Op: opLogin, Class: neutron.ErrUnavailable, Type: otherCloud, Message: fmt.Sprintf(
			"cloud %s of %s is now %q, but the controller works in %q: restore %[2]s, or restart the controller",
			config.name, config.from, s.cloud, c.pinned.cloud)}
	}
	s.issued, c.pinned = c.now(), s
	return s, nil
}

// login gets a token from Keystone, with one request. If clouds.yaml names no region, and
// several have a network service, the session has that of the first login, if it is known.
func (c *cloudConfig) login(ctx context.Context, first string) (*session, error) {
	provider := &gophercloud.ProviderClient{IdentityBase: strings.TrimSuffix(c.identity.String(), "v3")}
	provider.HTTPClient.Transport = c.transport
	provider.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	provider.UserAgent.Prepend(userAgent)
	auth := c.auth // gophercloud writes into it
	op := opLogin
	if c.addresses != nil {
		op = opLoginOfNamespace
	}
	err := gopher.AuthenticateV3(withOperation(ctx, op), provider, &auth, gophercloud.EndpointOpts{})
	if err != nil {
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
			"set project_name and project_domain_name, or project_id, in clouds.yaml, " +
			"without domain_id, domain_name and system_scope")
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, err
	}
	endpoint, region, err := c.findNeutron(catalog, first)
	switch {
	case err != nil:
		return nil, err
	case c.override != nil:
		endpoint = c.override
	case c.identity.Scheme == "https" && endpoint.Scheme == "http" && !isLoopback(endpoint):
		return nil, unusable("its catalog has an http address for the network service (%s), but auth_url begins with "+
			"https://: the token would be sent without encryption. Ask the operator of the cloud for an https address, "+
			"or set network_endpoint_override in clouds.yaml to the address that is to be used", endpoint)
	}
	return &session{
		cloud: region + "/" + project.ID, endpoint: endpoint, transport: c.transport,
		token: provider.Token(), region: region, project: project.ID, config: c,
	}, nil
}

// findNeutron returns the address of the network service, and its region. If several regions
// have one, the configuration or the first login must choose: gophercloud would take any, and
// in another region all networks would seem to be deleted.
func (c *cloudConfig) findNeutron(catalog *tokens.ServiceCatalog, first string) (*url.URL, string, error) {
	available, wanted := string(c.endpoint.Availability), c.endpoint.Region
	var all []string
	found := map[string]string{} // the address, by region
	for _, service := range catalog.Entries {
		if service.Type != "network" {
			continue
		}
		for _, e := range service.Endpoints {
			region := cmp.Or(e.RegionID, e.Region)
			all = append(all, e.Interface+" in "+region)
			if e.Interface == available && (wanted == "" || e.Region == wanted || e.RegionID == wanted) {
				found[region] = cmp.Or(found[region], e.URL)
			}
		}
	}
	slices.Sort(all)
	regions := slices.Sorted(maps.Keys(found))
	if _, ok := found[first]; ok {
		regions = []string{first}
	}
	switch {
	case len(all) == 0:
		return nil, "", unusable("its catalog has no network service; check that auth_url is the one of the right cloud")
	case len(found) == 0:
		return nil, "", unusable("its catalog has no network service with interface %s in region %q; it has %s",
			available, wanted, strings.Join(slices.Compact(all), ", "))
	case len(regions) > 1:
		return nil, "", unusable("its catalog has network services in the regions %s; set region_name to one of them",
			strings.Join(regions, ", "))
	}
	address, err := parseURL(found[regions[0]], "v2.0")
	if err != nil {
		return nil, "", unusable("the address of the network service in its catalog %v", err)
	}
	return address, regions[0], nil
}

// loginFailed describes a failed login.
func (c *cloud) loginFailed(config *cloudConfig, err error) *neutron.Error {
	d := description{op: opLogin, host: hostPort(config.identity), timeout: c.timeout, secrets: config.secrets}
	var response gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &response) {
		return &neutron.Error{Op: opLogin, Class: neutron.ErrUnavailable, Keystone: config.identity.String(),
			Message: d.clean(d.withoutResponse(err))}
	}
	failed := d.rejection(response, "error")
	failed.Class, failed.Keystone = neutron.ErrUnavailable, config.identity.String()
	switch {
	case failed.Type != "":
		failed.Message += fmt.Sprintf(" (login to cloud %s of %s)", config.name, config.from)
	case failed.Status < 500 && failed.Status != http.StatusRequestTimeout && failed.Status != http.StatusTooManyRequests:
		failed.Message += fmt.Sprintf(" (%s does not respond like a Keystone; check auth_url)", d.host)
	}
	return failed
}
