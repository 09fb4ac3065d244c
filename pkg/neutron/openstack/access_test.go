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
const unauthorized = `{"error": {"code": 401, "title": "Unauthorized", "message": "` + secret + `"}}`

// forbidden is a client of a Neutron that rejects tags, whatever the token.
type forbidden struct {
	*testing.T
	*keystone
	files
	client  neutron.Client
	clock   *clock
	network neutron.Network
	permit  func() // ends it
}

func newForbidden(t *testing.T) *forbidden {
	t.Helper()
	f := &forbidden{T: t, keystone: startKeystone(t, embedded.Options{}), files: useFiles(t), clock: &clock{}}
	f.write("clouds.yaml", clouds(withPassword(f.URL, password)...))
	f.client = connectCloud(t, openstack.WithClock(f.clock.Now))
	var err error
	if f.network, err = f.client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	f.wantLogins(t, 1)
	f.permit = f.neutron.Inject(embedded.Fault{Path: "/tags/", Status: http.StatusUnauthorized, Body: unauthorized})
	return f
}

// tag sends a request that is forbidden.
func (f *forbidden) tag() error {
	f.Helper()
	err := f.client.AddNetworkTag(f.Context(), f.network.ID, "blue")
	noSecrets(f.T, err)
	return err
}

// wantRefused sends a request that is forbidden, and counts the logins that it causes.
func (f *forbidden) wantRefused(logins int) {
	f.Helper()
	wantError(f.T, "a tag", f.tag(), neutron.ErrRefused,
		"add network tag: rejected: 401 Unauthorized: Neutron accepts the token for other requests")
	f.wantLogins(f.T, logins)
}

// TestForbiddenOperation: a request that the access rules forbid causes one login, and
// leaves the session to all others.
func TestForbiddenOperation(t *testing.T) {
	for name, run := range map[string]func(*forbidden){
		"one after the other": func(f *forbidden) {
			f.wantRefused(1)
			for range 10 {
				f.wantRefused(0)
				wantList(f.T, f.client)
			}
		},
		"many at a time": func(f *forbidden) {
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for range 20 {
						wantError(f.T, "a tag", f.tag(), neutron.ErrRefused)
					}
				})
			}
			all.Wait()
			f.wantLogins(f.T, 1)
		},
		"for long": func(f *forbidden) {
			f.wantRefused(1)
			for range 100 {
				f.clock.pass(4 * time.Minute)
				wantList(f.T, f.client)
				f.wantRefused(0)
			}
		},
		"and the token is revoked": func(f *forbidden) {
			f.wantRefused(1)
			for range 3 {
				f.revoke()
				f.wantRefused(0)
				wantList(f.T, f.client)
				f.wantLogins(f.T, 1)
				f.wantRefused(0)
			}
		},
		"and Keystone is unavailable": func(f *forbidden) {
			f.fail(answerWith(503, nil, ""))
			wantError(f.T, "a tag", f.tag(), neutron.ErrUnavailable, "login: unavailable: 503")
			f.wantLogins(f.T, 1)
			wantList(f.T, f.client)
			f.wantLogins(f.T, 0)
		},
		"until it is permitted": func(f *forbidden) {
			f.wantRefused(1)
			f.permit()
			if err := f.tag(); err != nil {
				f.Error(err)
			}
			f.wantLogins(f.T, 0)
			f.revoke()
			if err := f.tag(); err != nil {
				f.Error(err)
			}
			f.wantLogins(f.T, 1)
		},
		"until other credentials permit it": func(f *forbidden) {
			f.wantRefused(1)
			f.set(func() { f.password = nextPassword })
			f.write("clouds.yaml", clouds(withPassword(f.URL, nextPassword)...))
			f.clock.pass(time.Minute)
			wantList(f.T, f.client)
			openstack.WaitForFiles(f.client)
			f.wantLogins(f.T, 1)
			f.revoke()
			f.permit()
			if err := f.tag(); err != nil {
				f.Error(err)
			}
			f.wantLogins(f.T, 1)
		},
	} {
		t.Run(name, func(t *testing.T) { run(newForbidden(t)) })
	}
}

// TestForbiddenWhileRepeated: a request that gets the new token before the first one has
// tried it causes no login of its own.
func TestForbiddenWhileRepeated(t *testing.T) {
	tags, repeated, release := 0, make(chan struct{}), make(chan struct{})
	k, client := newCloud(t, openstack.WithTransport(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if openstack.Operation(r) == "add network tag" {
				if tags++; tags == 2 {
					close(repeated)
					<-release
				}
			}
			return next.RoundTrip(r)
		})
	}))
	wantList(t, client)
	k.neutron.Inject(embedded.Fault{Path: "/tags/", Status: http.StatusUnauthorized, Body: unauthorized})
	first := make(chan error)
	go func() { first <- client.AddNetworkTag(t.Context(), anID, "blue") }()
	<-repeated
	wantError(t, "the second", client.AddNetworkTag(t.Context(), anID, "blue"), neutron.ErrRefused)
	close(release)
	wantError(t, "the first", <-first, neutron.ErrRefused)
	k.wantLogins(t, 2)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNoTokenAccepted: if Neutron rejects new tokens for all requests, it is unavailable,
// and the requests cause few logins.
func TestNoTokenAccepted(t *testing.T) {
	watch := &clock{}
	k, client := newCloud(t, openstack.WithClock(watch.Now))
	remove := k.neutron.Inject(embedded.Fault{Status: http.StatusUnauthorized, Body: unauthorized})
	try := func() (logins int) {
		for op, request := range requests {
			err := request(t.Context(), client)
			wantError(t, op, err, neutron.ErrUnavailable,
				op+": unavailable: 401 Unauthorized: a new token is rejected as well: this Neutron trusts another Keystone")
			noSecrets(t, err)
		}
		k.set(func() { logins, k.logins = k.logins, 0 })
		return logins
	}
	if n := try(); n > 1+len(requests) {
		t.Errorf("%d operations caused %d logins", len(requests), n)
	}
	if n := try() + try(); n != 0 {
		t.Errorf("more requests caused %d logins, want none", n)
	}
	watch.pass(30 * time.Second)
	if n := try() + try(); n != 1 {
		t.Errorf("requests after 30 s caused %d logins, want 1", n)
	}
	remove()
	wantList(t, client)
}

// TestTokensNoLongerAccepted: the first operation that Neutron rejects may be forbidden. If
// it rejects another one, too, it is unavailable.
func TestTokensNoLongerAccepted(t *testing.T) {
	k, client := newCloud(t)
	wantList(t, client)
	k.neutron.Inject(embedded.Fault{Status: http.StatusUnauthorized, Body: unauthorized})
	unavailable := 0
	for range 2 {
		for _, request := range requests {
			if errors.Is(request(t.Context(), client), neutron.ErrUnavailable) {
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
	// wantLists fails if requests wait.
	wantLists := func(f *forbidden) {
		f.Helper()
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		defer cancel()
		for range 20 {
			if _, err := f.client.Networks(ctx, neutron.NetworkFilter{}); err != nil {
				f.Fatal(err)
			}
		}
	}
	// hold returns a channel that receives a value for each login, which then waits for
	// the function.
	hold := func(f *forbidden) (arrived chan struct{}, release func()) {
		arrived, held := make(chan struct{}, 10), make(chan struct{})
		f.fail(func(w http.ResponseWriter, _ *http.Request) {
			arrived <- struct{}{}
			<-held
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		release = sync.OnceFunc(func() { close(held) })
		f.Cleanup(release)
		return arrived, release
	}
	t.Run("a forbidden request", func(t *testing.T) {
		f := newForbidden(t)
		arrived, release := hold(f)
		failed := make(chan error)
		go func() { failed <- f.tag() }()
		<-arrived
		wantLists(f)
		release()
		wantError(t, "a tag", <-failed, neutron.ErrUnavailable, "login: unavailable: 503")
	})
	t.Run("a changed file", func(t *testing.T) {
		f := newForbidden(t)
		arrived, release := hold(f)
		f.write("clouds.yaml", clouds(withPassword(f.URL, nextPassword)...))
		f.clock.pass(time.Minute)
		wantLists(f)
		<-arrived
		f.clock.pass(time.Minute)
		wantLists(f)
		release()
		openstack.WaitForFiles(f.client)
	})
	t.Run("a file that cannot be read", func(t *testing.T) {
		f := newForbidden(t)
		if err := os.Remove(f.path("clouds.yaml")); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(f.path("clouds.yaml"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.clock.pass(time.Minute)
		wantLists(f)
		f.clock.pass(time.Minute)
		wantLists(f)
		pipe, err := os.OpenFile(f.path("clouds.yaml"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pipe.WriteString(strings.Repeat(" ", 10)); err != nil {
			t.Error(err)
		}
		_ = pipe.Close()
		openstack.WaitForFiles(f.client)
	})
}
