package openstack_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

const nextPassword = "next-" + secret

// rotate changes the password in Keystone and in clouds.yaml.
func (c *cloudTest) rotate() {
	c.set(func() { c.password = nextPassword })
	c.writeNextPassword()
}

func (c *cloudTest) writeNextPassword() {
	c.write("clouds.yaml", clouds(withPassword(c.URL, nextPassword)...))
}

// wantLogin lists networks and counts the logins that this causes.
func (c *cloudTest) wantLogin(logins int) {
	c.Helper()
	c.wantList()
	openstack.WaitForFiles(c.client)
	c.wantLogins(logins)
}

// TestRotation: changed files take effect without a restart.
func TestRotation(t *testing.T) {
	for name, run := range map[string]func(*cloudTest){
		"at once if the token is rejected": func(c *cloudTest) {
			c.rotate()
			c.revoke()
			c.wantLogin(1)
		},
		"within seconds if the token is valid": func(c *cloudTest) {
			c.rotate()
			c.wantLogin(0)
			c.clock.pass(5 * time.Second)
			c.wantLogin(1)
			c.clock.pass(time.Minute)
			c.wantLogin(0)
		},
		"at once after a rejected login": func(c *cloudTest) {
			c.set(func() { c.password = nextPassword })
			c.revoke()
			c.wantUnavailable("login: unavailable: 401")
			c.wantLogins(1)
			c.rotate()
			c.wantLogin(1)
		},
		"the file before Keystone": func(c *cloudTest) {
			c.writeNextPassword()
			c.clock.pass(time.Minute)
			c.wantLogin(1) // which fails: the previous token stays in use
			c.wantLogin(0)
			c.set(func() { c.password = nextPassword })
			c.clock.pass(time.Minute)
			c.wantLogin(1)
			c.wantLogin(0)
		},
		"unusable files change nothing": testUnusableFiles,
		"secure.yaml appears and changes": func(c *cloudTest) {
			for _, password := range []string{"a-" + secret, "b-" + secret} {
				c.set(func() { c.password = password })
				c.revoke()
				c.write("secure.yaml", clouds("auth: {password: "+password+"}"))
				c.wantLogin(1)
			}
		},
		"a mounted Secret": testMountedSecret,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			c.wantLogin(1)
			run(c)
		})
	}
}

func testUnusableFiles(c *cloudTest) {
	for _, content := range []string{"clouds: {ours: *" + secret, "clouds: {}", clouds("auth: {password: " + secret + "}")} {
		c.write("clouds.yaml", content)
		c.clock.pass(time.Minute)
		c.revoke()
		c.wantLogin(1) // with the previous password
		c.revoke()
		c.fail(respondWith(401, nil, ""))
		c.wantUnavailable("login: unavailable: 401: Unauthorized",
			"; the changed cloud configuration is unusable: ", c.path("clouds.yaml"))
		c.fail(nil)
		c.wantLogins(1)
		c.clock.pass(time.Minute)
		c.wantLogin(1)
	}
	c.must(os.Remove(c.path("clouds.yaml")))
	c.clock.pass(time.Minute)
	c.wantLogin(0)
	c.rotate()
	c.clock.pass(time.Minute)
	c.wantLogin(1)
}

// testMountedSecret replaces files as the kubelet does: clouds.yaml is a link
// through ..data, which is replaced.
func testMountedSecret(c *cloudTest) {
	mount := func(version string) {
		c.Helper()
		c.must(os.MkdirAll(c.path(version), 0o700))
		c.write(version+"/clouds.yaml", clouds(withPassword(c.URL, version+secret)...))
		c.must(os.Symlink(version, c.path("..data_tmp")))
		c.must(os.Rename(c.path("..data_tmp"), c.path("..data")))
		c.set(func() { c.password = version + secret })
		c.revoke()
	}
	mount("..1")
	c.must(os.Remove(c.path("clouds.yaml")))
	c.must(os.Symlink("..data/clouds.yaml", c.path("clouds.yaml")))
	c.wantLogin(1)
	mount("..2")
	c.wantLogin(1)
}

// TestAnotherCloud: when the client has read that the files name another cloud, it makes
// no request to the previous one, even while the new one is unavailable.
func TestAnotherCloud(t *testing.T) {
	two := startKeystone(t, embedded.Options{})
	inProject := func(id string) []string {
		return []string{"auth: {auth_url: 'KEYSTONE', username: me, user_domain_name: Default, password: " + password + ", project_id: " + id + "}"}
	}
	ours := withPassword("KEYSTONE", password)
	for name, test := range map[string]struct {
		before, after []string
		want          string
	}{
		"another region":    {ours, append([]string{"region_name: RegionTwo"}, ours[1:]...), "RegionTwo"},
		"another project":   {inProject("project-id"), inProject("not-ours"), "401 Unauthorized"},
		"another interface": {ours, append(ours, "interface: admin"), "interface admin"},
		"another Keystone":  {ours, withPassword(two.URL, password), "503"},
	} {
		t.Run(name, func(t *testing.T) {
			two.fail(respondWith(503, nil, ""))
			c := newCloud(t, test.before...)
			c.wantList()
			c.write("clouds.yaml", clouds(test.after...))
			c.readFiles() // with the previous session: no request waits for the files
			for range 3 {
				c.wantUnavailable("login: unavailable: ", test.want)
			}
			if n := len(c.neutron.Requests()); n != 2 {
				t.Errorf("%d requests to the previous cloud, want 2", n)
			}
			if two.fail(nil); test.want == "503" { // its cloud is the same
				c.clock.pass(time.Minute)
				c.wantList()
			}
		})
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
	secureKeystone.Config.ErrorLog, secureNeutron.Config.ErrorLog = quiet, quiet
	k.catalog = []object{networkAt(endpointAt("public", "RegionOne", secureNeutron.URL))}
	certificate := secureKeystone.TLS.Certificates[0]
	ca, key := pemPair(t, certificate.Certificate[0], certificate.PrivateKey)
	otherCA, otherKey := newPair(t)
	const unknown = "x509: certificate signed by unknown authority"
	cloud := func(more ...string) []string { return withPassword(secureKeystone.URL, password, more...) }

	t.Run("unknown CA", func(t *testing.T) {
		newCloudOf(t, k, cloud()...).wantUnavailable(
			"login: unavailable: " + strings.TrimPrefix(secureKeystone.URL, "https://") + ": " + unknown)
	})
	t.Run("cacert and a client certificate", func(t *testing.T) {
		c := newCloudOf(t, k)
		c.write("clouds.yaml", clouds(cloud("cacert: ~/ca.pem", "cert: "+c.path("cert.pem"), "key: ~/key.pem")...))
		c.write("ca.pem", ca)
		c.write("cert.pem", ca)
		c.write("key.pem", key)
		c.connect(openstack.Options{})
		for _, want := range []string{"Acme Co", "new"} {
			c.requests()
			c.wantList()
			got := c.requests()
			if len(got) != 1 || len(got[0].TLS.PeerCertificates) != 1 ||
				got[0].TLS.PeerCertificates[0].Subject.Organization[0] != want {
				t.Errorf("the requests are %+v, want one with a certificate of %s", got, want)
			}
			c.write("cert.pem", otherCA)
			c.write("key.pem", otherKey)
			c.readFiles()
		}
	})
	t.Run("verify: false", func(t *testing.T) {
		c := newCloudOf(t, k, cloud("verify: false")...)
		c.wantList()
		c.write("clouds.yaml", clouds(cloud()...))
		c.readFiles()
		c.wantUnavailable(unknown)
	})
	t.Run("a CA that changes", func(t *testing.T) {
		c := newCloudOf(t, k)
		c.write("ca.pem", otherCA)
		c.write("clouds.yaml", clouds(cloud()...))
		t.Setenv("OS_CACERT", "~/ca.pem")
		c.connect(openstack.Options{})
		c.wantUnavailable(unknown)
		c.write("ca.pem", ca)
		c.wantList() // at once
		c.write("ca.pem", otherCA)
		c.readFiles()
		c.wantList() // with the previous token, while it is valid
		c.revoke()
		c.wantUnavailable(unknown)
	})
}

// TestAnotherProject: an application credential does not name its project. If the login
// with a new one leads to another project, the session for the first one ends.
func TestAnotherProject(t *testing.T) {
	application := func(credential string) string {
		return "auth: {auth_url: 'KEYSTONE', " + credential + ", application_credential_secret: " + appSecret + "}"
	}
	const first = "application_credential_id: app-id"
	c := newCloud(t, application(first))
	c.wantList()
	ours := c.project
	c.set(func() { c.project = object{"id": "theirs", "name": "theirs"} })
	c.write("clouds.yaml", clouds(application("application_credential_name: app, user_id: user-id")))
	c.readFiles()
	c.requests()
	for range 3 {
		c.wantUnavailable(
			`cloud ours of clouds.yaml is now "RegionOne/theirs", but the controller works in "RegionOne/fake-project-id"`)
		c.clock.pass(time.Minute)
	}
	if asked := c.requests(); len(asked) != 0 {
		t.Errorf("%d requests were sent to Neutron", len(asked))
	}
	c.set(func() { c.project = ours })
	c.write("clouds.yaml", clouds(application(first)))
	c.wantList()
}

// TestSecondRegion: a region that appears in the catalog does not break the next login.
func TestSecondRegion(t *testing.T) {
	c := newCloud(t, withPassword("KEYSTONE", password)[1:]...)
	c.wantList()
	newRegion := endpointAt("public", "RegionNew", c.front.URL)
	c.set(func() { c.catalog = []object{networkAt(newRegion, endpointAt("public", "RegionOne", c.front.URL))} })
	c.revoke()
	c.wantLogin(2)
	c.set(func() { c.catalog = []object{networkAt(newRegion)} })
	c.revoke()
	c.wantUnavailable(`is now "RegionNew/`)
}
