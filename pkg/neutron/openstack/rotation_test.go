package openstack_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// rotation is a client that is logged in, and the files of its cloud.
type rotation struct {
	*testing.T
	*keystone
	files
	client neutron.Client
	clock  *clock
}

const nextPassword = "next-" + secret

// rotate changes the password in Keystone and in clouds.yaml.
func (r *rotation) rotate() {
	r.set(func() { r.password = nextPassword })
	r.write("clouds.yaml", clouds(withPassword(r.URL, nextPassword)...))
}

// wantLogin lists networks and counts the logins that this causes.
func (r *rotation) wantLogin(logins int) {
	r.Helper()
	wantList(r.T, r.client)
	openstack.WaitForFiles(r.client)
	r.wantLogins(r.T, logins)
}

// TestRotation: changed files take effect without a restart.
func TestRotation(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	for name, run := range map[string]func(*rotation){
		"at once if the token is rejected": func(r *rotation) {
			r.rotate()
			r.revoke()
			r.wantLogin(1)
		},
		"within seconds if the token is valid": func(r *rotation) {
			r.rotate()
			r.wantLogin(0)
			r.clock.pass(5 * time.Second)
			r.wantLogin(1)
			r.clock.pass(time.Minute)
			r.wantLogin(0)
		},
		"at once after a rejected login": func(r *rotation) {
			r.set(func() { r.password = nextPassword })
			r.revoke()
			wantError(r.T, "with the old password", list(r.T, r.client), neutron.ErrUnavailable, "login: unavailable: 401")
			r.wantLogins(r.T, 1)
			r.rotate()
			r.wantLogin(1)
		},
		"the file before Keystone": func(r *rotation) {
			r.write("clouds.yaml", clouds(withPassword(r.URL, nextPassword)...))
			r.clock.pass(time.Minute)
			r.wantLogin(1) // which fails: the previous token stays in use
			r.wantLogin(0)
			r.set(func() { r.password = nextPassword })
			r.clock.pass(time.Minute)
			r.wantLogin(1)
			r.wantLogin(0)
		},
		"unusable files change nothing": testUnusableFiles,
		"secure.yaml appears and changes": func(r *rotation) {
			for _, password := range []string{"a-" + secret, "b-" + secret} {
				r.set(func() { r.password = password })
				r.revoke()
				r.write("secure.yaml", clouds("auth: {password: "+password+"}"))
				r.wantLogin(1)
			}
		},
		"a mounted Secret": testMountedSecret,
	} {
		t.Run(name, func(t *testing.T) {
			k.fail(nil)
			k.set(func() { k.password, k.logins = password, 0 })
			r := &rotation{T: t, keystone: k, files: useFiles(t), clock: &clock{}}
			r.write("clouds.yaml", clouds(withPassword(k.URL, password)...))
			r.client = connectCloud(t, openstack.WithClock(r.clock.Now))
			r.wantLogin(1)
			run(r)
		})
	}
}

func testUnusableFiles(r *rotation) {
	for _, content := range []string{"clouds: {ours: *" + secret, "clouds: {}", clouds("auth: {password: " + secret + "}")} {
		r.write("clouds.yaml", content)
		r.clock.pass(time.Minute)
		r.revoke()
		r.wantLogin(1) // with the previous password
		r.revoke()
		r.fail(answerWith(401, nil, ""))
		wantError(r.T, "a rejected login", list(r.T, r.client), neutron.ErrUnavailable,
			"login: unavailable: 401: Unauthorized", "; the changed cloud configuration is unusable: ", r.path("clouds.yaml"))
		r.fail(nil)
		r.wantLogins(r.T, 1)
		r.clock.pass(time.Minute)
		r.wantLogin(1)
	}
	if err := os.Remove(r.path("clouds.yaml")); err != nil {
		r.Fatal(err)
	}
	r.clock.pass(time.Minute)
	r.wantLogin(0)
	r.rotate()
	r.clock.pass(time.Minute)
	r.wantLogin(1)
}

// testMountedSecret replaces files as the kubelet does: clouds.yaml is a link
// through ..data, which is replaced.
func testMountedSecret(r *rotation) {
	mount := func(version string) {
		r.Helper()
		if err := os.MkdirAll(r.path(version), 0o700); err != nil {
			r.Fatal(err)
		}
		r.write(version+"/clouds.yaml", clouds(withPassword(r.URL, version+secret)...))
		if err := os.Symlink(version, r.path("..data_tmp")); err != nil {
			r.Fatal(err)
		}
		if err := os.Rename(r.path("..data_tmp"), r.path("..data")); err != nil {
			r.Fatal(err)
		}
		r.set(func() { r.password = version + secret })
		r.revoke()
	}
	mount("..1")
	if err := os.Remove(r.path("clouds.yaml")); err != nil {
		r.Fatal(err)
	}
	if err := os.Symlink("..data/clouds.yaml", r.path("clouds.yaml")); err != nil {
		r.Fatal(err)
	}
	r.wantLogin(1)
	mount("..2")
	r.wantLogin(1)
}

// TestAnotherCloud: when the client has read that the files name another cloud, it makes
// no request to the previous one, even while the new one is unavailable.
func TestAnotherCloud(t *testing.T) {
	one, two := startKeystone(t, embedded.Options{}), startKeystone(t, embedded.Options{})
	f := useFiles(t)
	watch := &clock{}
	first := clouds(withPassword(one.URL, password)...)
	change := func(t *testing.T, before, after string) neutron.Client {
		t.Helper()
		one.neutron.ResetRequests()
		f.write("clouds.yaml", before)
		client := connectCloud(t, openstack.WithClock(watch.Now))
		wantList(t, client)
		f.write("clouds.yaml", after)
		watch.pass(time.Minute)
		wantList(t, client) // with the previous session: no request waits for the files
		openstack.WaitForFiles(client)
		return client
	}
	inProject := func(id string) string {
		return clouds("auth: {auth_url: '" + one.URL + "', username: me, user_domain_name: Default, password: " + password + ", project_id: " + id + "}")
	}
	two.fail(answerWith(503, nil, ""))
	for name, test := range map[string]struct{ before, after, want string }{
		"another region":    {first, strings.ReplaceAll(first, "RegionOne", "RegionTwo"), "RegionTwo"},
		"another project":   {inProject("project-id"), inProject("not-ours"), "401 Unauthorized"},
		"another interface": {first, clouds(withPassword(one.URL, password, "interface: admin")...), "interface admin"},
		"another Keystone":  {first, clouds(withPassword(two.URL, password)...), "503"},
	} {
		t.Run(name, func(t *testing.T) {
			client := change(t, test.before, test.after)
			for range 3 {
				wantError(t, "after the change", list(t, client), neutron.ErrUnavailable, "login: unavailable: ", test.want)
			}
			if n := len(one.neutron.Requests()); n != 2 {
				t.Errorf("%d requests to the previous cloud, want 2", n)
			}
		})
	}
	two.fail(nil)
	wantList(t, change(t, first, clouds(withPassword(two.URL, password)...)))
	if n := len(two.neutron.Requests()); n != 1 {
		t.Errorf("%d requests to the new cloud, want 1", n)
	}
}

// TestCloudTLS: certificates are verified with the configured CA, unless the
// files switch that off; a client certificate is sent.
func TestCloudTLS(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	secureKeystone := httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(secureKeystone.Close)
	secureNeutron := httptest.NewUnstartedServer(http.HandlerFunc(k.serveNeutron))
	secureNeutron.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	secureNeutron.StartTLS()
	t.Cleanup(secureNeutron.Close)
	for _, server := range []*httptest.Server{secureKeystone, secureNeutron} {
		server.Config.ErrorLog = quiet
	}
	k.set(func() { k.catalog = []object{networkAt(endpointAt("public", "RegionOne", secureNeutron.URL))} })
	certificate := secureKeystone.TLS.Certificates[0]
	ca, key := pemPair(t, certificate.Certificate[0], certificate.PrivateKey)
	otherCA, otherKey := newPair(t)
	const unknown = "x509: certificate signed by unknown authority"
	cloud := func(more ...string) string { return clouds(withPassword(secureKeystone.URL, password, more...)...) }

	t.Run("unknown CA", func(t *testing.T) {
		useFiles(t).write("clouds.yaml", cloud())
		wantError(t, "a list", list(t, connectCloud(t)), neutron.ErrUnavailable,
			"login: unavailable: "+strings.TrimPrefix(secureKeystone.URL, "https://")+": "+unknown)
	})
	t.Run("cacert and a client certificate", func(t *testing.T) {
		f := useFiles(t)
		f.write("clouds.yaml", cloud("cacert: ~/ca.pem", "cert: "+f.path("cert.pem"), "key: ~/key.pem"))
		f.write("ca.pem", ca)
		f.write("cert.pem", ca)
		f.write("key.pem", key)
		watch := &clock{}
		client := connectCloud(t, openstack.WithClock(watch.Now))
		for _, want := range []string{"Acme Co", "new"} {
			k.requests()
			wantList(t, client)
			if got := k.requests(); len(got) != 1 || len(got[0].TLS.PeerCertificates) != 1 || got[0].TLS.PeerCertificates[0].Subject.Organization[0] != want {
				t.Errorf("the requests are %+v, want one with a certificate of %s", got, want)
			}
			f.write("cert.pem", otherCA)
			f.write("key.pem", otherKey)
			watch.pass(time.Minute)
			wantList(t, client)
			openstack.WaitForFiles(client)
		}
	})
	t.Run("verify: false", func(t *testing.T) {
		f, watch := useFiles(t), &clock{}
		f.write("clouds.yaml", cloud("verify: false"))
		client := connectCloud(t, openstack.WithClock(watch.Now))
		wantList(t, client)
		f.write("clouds.yaml", cloud())
		watch.pass(time.Minute)
		wantList(t, client)
		openstack.WaitForFiles(client)
		wantError(t, "a list without it", list(t, client), neutron.ErrUnavailable, unknown)
	})
	t.Run("a CA that changes", func(t *testing.T) {
		f := useFiles(t)
		f.write("ca.pem", otherCA)
		f.write("clouds.yaml", cloud())
		t.Setenv("OS_CACERT", "~/ca.pem")
		watch := &clock{}
		client := connectCloud(t, openstack.WithClock(watch.Now))
		wantError(t, "a list", list(t, client), neutron.ErrUnavailable, unknown)
		f.write("ca.pem", ca)
		wantList(t, client) // at once
		f.write("ca.pem", otherCA)
		watch.pass(time.Minute)
		wantList(t, client) // with the previous token, while it is valid
		openstack.WaitForFiles(client)
		wantList(t, client)
		k.revoke()
		wantError(t, "a list", list(t, client), neutron.ErrUnavailable, unknown)
	})
}

// TestAnotherProject: an application credential does not name its project. If the login
// with a new one leads to another project, the session for the first one ends.
func TestAnotherProject(t *testing.T) {
	k, f, watch := startKeystone(t, embedded.Options{}), useFiles(t), &clock{}
	application := func(credential string) {
		f.write("clouds.yaml", clouds("auth: {auth_url: '"+k.URL+"', "+credential+
			", application_credential_secret: "+appSecret+"}"))
	}
	const first = "application_credential_id: app-id"
	application(first)
	client := connectCloud(t, openstack.WithClock(watch.Now))
	wantList(t, client)
	ours := k.project
	k.set(func() { k.project = object{"id": "theirs", "name": "theirs"} })
	application("application_credential_name: app, user_id: user-id")
	watch.pass(time.Minute)
	wantList(t, client)
	openstack.WaitForFiles(client)
	k.requests()
	for range 3 {
		wantError(t, "in the other project", list(t, client), neutron.ErrUnavailable,
			`cloud ours of clouds.yaml is now "RegionOne/theirs", but the controller works in "RegionOne/fake_project_id"`)
		watch.pass(time.Minute)
	}
	if asked := k.requests(); len(asked) != 0 {
		t.Errorf("%d requests were sent to Neutron", len(asked))
	}
	k.set(func() { k.project = ours })
	application(first)
	wantList(t, client)
}

// TestSecondRegion: a region that appears in the catalog does not break the next login.
func TestSecondRegion(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	useFiles(t).write("clouds.yaml", clouds(withPassword(k.URL, password)[1:]...))
	client := connectCloud(t)
	wantList(t, client)
	k.set(func() {
		k.catalog = []object{networkAt(
			endpointAt("public", "RegionNew", "http://127.0.0.1:1"), endpointAt("public", "RegionOne", k.front.URL))}
	})
	k.revoke()
	wantList(t, client)
	k.wantLogins(t, 2)
	k.set(func() { k.catalog = []object{networkAt(endpointAt("public", "RegionNew", k.front.URL))} })
	k.revoke()
	wantError(t, "without the first region", list(t, client), neutron.ErrUnavailable, `is now "RegionNew/`)
}
