package openstack_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// unauthorized is the response of keystonemiddleware to a token that is not valid, and to
// a request that the access rules forbid.
var unauthorized = embedded.Fault{
	Status: http.StatusUnauthorized,
	Body:   `{"error": {"code": 401, "title": "Unauthorized", "message": "` + secret + `"}}`,
}

// newForbidden returns a client, which is logged in, of a Neutron that rejects tags, whatever
// the token, until permit is called.
func newForbidden(t *testing.T) (c *cloudTest, permit func()) {
	t.Helper()
	c = newCloud(t)
	c.wantLogin(1)
	fault := unauthorized
	fault.Path = "/tags/"
	return c, c.Neutron.Inject(fault)
}

// tag sends a request that newForbidden forbids.
func (c *cloudTest) tag() error {
	c.Helper()
	err := c.client.AddNetworkTag(c.Context(), anID, "blue")
	noSecrets(c.T, err)
	return err
}

// wantForbidden sends a request that is forbidden, and counts the logins that it causes.
func (c *cloudTest) wantForbidden(logins int) {
	c.Helper()
	wantError(c.T, "a tag", c.tag(), neutron.ErrRefused,
		"add network tag: rejected: 401 Unauthorized: Neutron accepts the token for other requests")
	c.wantLogins(logins)
}

// wantPermitted sends the request when it is permitted: the network does not exist.
func (c *cloudTest) wantPermitted(logins int) {
	c.Helper()
	wantError(c.T, "a tag", c.tag(), neutron.ErrNotFound)
	c.wantLogins(logins)
}

// TestForbiddenOperation: a request that the access rules forbid causes one login, and
// leaves the session to all others.
func TestForbiddenOperation(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"one after the other":               {before: "forbidden1 " + strings.Repeat("forbidden list ", 10)},
		"for long":                          {before: "forbidden1 " + strings.Repeat("4m list forbidden ", 100)},
		"and the token is revoked":          {before: "forbidden1 " + strings.Repeat("revoke forbidden login forbidden ", 3)},
		"until it is permitted":             {"forbidden1", "permitted revoke permitted1"},
		"until other credentials permit it": {"forbidden1 keystone file 1m login", "revoke permitted1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, permit := newForbidden(t)
			c.run(test.before)
			permit()
			c.run(test.after)
		})
	}
	t.Run("many at a time", func(t *testing.T) {
		c, _ := newForbidden(t)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 20 {
					wantError(c.T, "a tag", c.tag(), neutron.ErrRefused)
				}
			})
		}
		all.Wait()
		if n := c.takeLogins(); n > 16 { // one for each that comes before the first one is repeated
			c.Errorf("there were %d requests to Keystone", n)
		}
	})
	t.Run("and Keystone is unavailable", func(t *testing.T) {
		c, _ := newForbidden(t)
		c.fail(respondWith(503, nil, ""))
		wantError(c.T, "a tag", c.tag(), neutron.ErrUnavailable, "login: unavailable: 503")
		c.wantLogins(1)
		c.run("list")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNoTokenAccepted: if Neutron rejects new tokens for all requests, it is unavailable,
// and the requests cause few logins.
func TestNoTokenAccepted(t *testing.T) {
	c := newCloud(t)
	remove := c.Neutron.Inject(unauthorized)
	try := func() (logins int) {
		for op, request := range requests {
			err := request(t.Context(), c.client)
			wantError(t, op, err, neutron.ErrUnavailable,
				op+": unavailable: 401 Unauthorized: a new token is rejected as well: this Neutron trusts another Keystone")
			noSecrets(t, err)
		}
		return c.takeLogins()
	}
	if n := try(); n > 1+len(requests) {
		t.Errorf("%d operations caused %d logins", len(requests), n)
	}
	if n := try() + try(); n != 0 {
		t.Errorf("more requests caused %d logins, want none", n)
	}
	c.clock.pass(30 * time.Second)
	if n := try() + try(); n != 1 {
		t.Errorf("requests after 30 s caused %d logins, want 1", n)
	}
	remove()
	c.wantList()
}

// TestTokensNoLongerAccepted: the first operation that Neutron rejects may be forbidden. If
// it rejects another one, too, it is unavailable.
func TestTokensNoLongerAccepted(t *testing.T) {
	c := newCloud(t)
	c.wantList()
	c.Neutron.Inject(unauthorized)
	unavailable := 0
	for range 2 {
		for _, request := range requests {
			if errors.Is(request(t.Context(), c.client), neutron.ErrUnavailable) {
				unavailable++
			}
		}
	}
	if all := 2 * len(requests); unavailable != all-1 {
		t.Errorf("%d of %d requests have the class unavailable", unavailable, all)
	}
}

// TestNoWaitForLogin: requests that have a session wait neither for a login nor for
// the files.
func TestNoWaitForLogin(t *testing.T) {
	wantListsWithoutWait := func(c *cloudTest) {
		c.Helper()
		ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
		defer cancel()
		for range 20 {
			if _, err := c.client.Networks(ctx, neutron.NetworkFilter{}); err != nil {
				c.Fatal(err)
			}
		}
	}
	// hold returns a channel that receives a value for each login, which then waits for
	// the function.
	hold := func(c *cloudTest) (arrived chan struct{}, release func()) {
		arrived, held := make(chan struct{}, 10), make(chan struct{})
		c.fail(func(w http.ResponseWriter, _ *http.Request) {
			arrived <- struct{}{}
			<-held
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		release = sync.OnceFunc(func() { close(held) })
		c.Cleanup(release)
		return arrived, release
	}
	t.Run("a forbidden request", func(t *testing.T) {
		c, _ := newForbidden(t)
		arrived, release := hold(c)
		failed := make(chan error)
		go func() { failed <- c.tag() }()
		<-arrived
		wantListsWithoutWait(c)
		release()
		wantError(t, "a tag", <-failed, neutron.ErrUnavailable, "login: unavailable: 503")
	})
	t.Run("a changed file", func(t *testing.T) {
		c := newCloud(t)
		c.wantList()
		arrived, release := hold(c)
		c.usePassword(nextPassword)
		c.clock.pass(time.Minute)
		wantListsWithoutWait(c)
		<-arrived
		c.clock.pass(time.Minute)
		wantListsWithoutWait(c)
		release()
		openstack.WaitForFiles(c.client)
	})
	t.Run("a file that cannot be read", func(t *testing.T) {
		c := newCloud(t)
		c.wantList()
		must(t, os.Remove(c.path("clouds.yaml")))
		must(t, syscall.Mkfifo(c.path("clouds.yaml"), 0o600))
		c.clock.pass(time.Minute)
		wantListsWithoutWait(c)
		must(t, os.WriteFile(c.path("clouds.yaml"), []byte("clouds:"), 0o600)) // ends the read
		openstack.WaitForFiles(c.client)
	})
}
