package openstack_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/test/keystone"
)

// words are what happens to a client, and what it then does.
var words = map[string]func(*cloudTest){
	"keystone": func(c *cloudTest) { c.SetPassword(nextPassword) },
	"file":     func(c *cloudTest) { c.usePassword(nextPassword) },
	"revoke":   func(c *cloudTest) { c.Revoke() },
	"5s":       func(c *cloudTest) { c.clock.pass(5 * time.Second) },
	"1m":       func(c *cloudTest) { c.clock.pass(time.Minute) },
	"-1h":      func(c *cloudTest) { c.clock.pass(-time.Hour) }, // somebody sets the clock
	"4m":       func(c *cloudTest) { c.clock.pass(4 * time.Minute) },
	"list":     func(c *cloudTest) { c.wantLogin(0) }, // with the present token
	"login":    func(c *cloudTest) { c.wantLogin(1) },
	"rejected": func(c *cloudTest) {
		c.wantUnavailable("login: unavailable: 401")
		c.wantLogins(1)
	},
	"forbidden":  func(c *cloudTest) { c.wantForbidden(0) },
	"forbidden1": func(c *cloudTest) { c.wantForbidden(1) }, // after a login
	"permitted":  func(c *cloudTest) { c.wantPermitted(0) },
	"permitted1": func(c *cloudTest) { c.wantPermitted(1) },
}

func (c *cloudTest) run(script string) {
	c.Helper()
	for i, word := range strings.Fields(script) {
		if words[word](c); c.Failed() {
			c.Fatalf("%q fails at word %d, %s", script, i+1, word)
		}
	}
}

// TestRotation: changed files take effect without a restart.
func TestRotation(t *testing.T) {
	for name, script := range map[string]string{
		"at once if the token is rejected":     "login  keystone file revoke login",
		"within seconds if the token is valid": "login  keystone file list  5s login  1m list",
		"at once after a rejected login":       "login  keystone revoke rejected  file login",
		"also if the clock is set back":        "login  keystone file -1h login",
		// The first login fails: the previous token stays in use.
		"the file before Keystone": "login  file 1m login list  keystone 1m login list",
	} {
		t.Run(name, func(t *testing.T) { newCloud(t).run(script) })
	}
}

// TestSecureFile: a secure.yaml that appears, and changes, is used.
func TestSecureFile(t *testing.T) {
	c := newCloud(t)
	c.wantLogin(1)
	for _, password := range []string{"a-" + secret, "b-" + secret} {
		c.SetPassword(password)
		c.Revoke()
		c.write("secure.yaml", clouds("auth: {password: "+password+"}"))
		c.wantLogin(1)
	}
}

// TestUnusableFiles: unusable files change nothing, and are part of the error when a login fails.
func TestUnusableFiles(t *testing.T) {
	c := newCloud(t)
	c.wantLogin(1)
	for _, content := range []string{"clouds: {ours: *" + secret, "clouds: {}", clouds("auth: {password: " + secret + "}")} {
		c.write("clouds.yaml", content)
		c.run("1m revoke login revoke") // with the previous password
		c.fail(respondWith(401, nil, ""))
		c.wantUnavailable("login: unavailable: 401: Unauthorized",
			"; the changed cloud configuration is unusable: ", c.path("clouds.yaml"))
		c.fail(nil)
		c.wantLogins(1)
		c.run("1m login")
	}
	must(t, os.Remove(c.path("clouds.yaml")))
	c.run("1m list keystone file 1m login")
}

// TestMountedSecret replaces files as the kubelet does: clouds.yaml is a link
// through ..data, which is replaced.
func TestMountedSecret(t *testing.T) {
	c := newCloud(t)
	must(t, os.Remove(c.path("clouds.yaml")))
	must(t, os.Symlink("..data/clouds.yaml", c.path("clouds.yaml")))
	for _, version := range []string{"..1", "..2"} {
		must(t, os.MkdirAll(c.path(version), 0o700))
		c.write(version+"/clouds.yaml", clouds(withPassword(c.URL, version+secret)...))
		must(t, os.Symlink(version, c.path("..data_tmp")))
		must(t, os.Rename(c.path("..data_tmp"), c.path("..data")))
		c.SetPassword(version + secret)
		c.Revoke()
		c.wantLogin(1)
	}
}

// TestAnotherCloud: when the client has read that the files name another cloud, it makes
// no request to the previous one, even while the new one is unavailable.
func TestAnotherCloud(t *testing.T) {
	two := startOpenStack(t, embedded.Options{})
	inProject := func(id string) []string {
		return []string{"auth: {auth_url: 'KEYSTONE', username: ours, user_domain_name: Default, password: " + password + ", project_id: " + id + "}"}
	}
	ours := withPassword("KEYSTONE", password)
	for name, test := range map[string]struct {
		before, after []string
		want          string
	}{
		"another region":    {ours, append([]string{"region_name: RegionTwo"}, ours[1:]...), "RegionTwo"},
		"another project":   {inProject("ours-id"), inProject("not-ours"), "401 Unauthorized"},
		"another interface": {ours, append(ours, "interface: admin"), "interface admin"},
		"another Keystone":  {ours, withPassword(two.URL, password), "503"},
	} {
		t.Run(name, func(t *testing.T) {
			two.fail(respondWith(503, nil, ""))
			c := newCloud(t, test.before...)
			c.wantList()
			c.use(test.after...)
			c.readFiles() // with the previous session: no request waits for the files
			for range 3 {
				c.wantUnavailable("login: unavailable: ", test.want)
			}
			if n := c.sent(); n != 2 {
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
	o := startOpenStack(t, embedded.Options{})
	var sent []*x509.Certificate // by the client, with its last request to Neutron
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.TLS.PeerCertificates
		o.Config.Handler.ServeHTTP(w, r)
	}))
	secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	o.offer(keystone.Service(keystone.Endpoint("public", "RegionOne", secure.URL+"/networking")))
	certificate := secure.TLS.Certificates[0]
	ca, key := pemPair(t, certificate.Certificate[0], certificate.PrivateKey)
	otherCA, otherKey := newPair(t)
	const unknown = "x509: certificate signed by unknown authority"
	cloud := func(more ...string) []string { return withPassword(secure.URL, password, more...) }

	t.Run("unknown CA", func(t *testing.T) {
		newCloudOf(t, o, cloud()...).wantUnavailable(
			"login: unavailable: " + strings.TrimPrefix(secure.URL, "https://") + ": " + unknown)
	})
	t.Run("cacert and a client certificate", func(t *testing.T) {
		c := newCloudOf(t, o)
		c.use(cloud("cacert: ~/ca.pem", "cert: "+c.path("cert.pem"), "key: ~/key.pem")...)
		c.write("ca.pem", ca)
		c.write("cert.pem", ca)
		c.write("key.pem", key)
		c.connect(openstack.Options{})
		for _, want := range []string{"Acme Co", "new"} {
			sent = nil
			c.wantList()
			if len(sent) != 1 || sent[0].Subject.Organization[0] != want {
				t.Errorf("the certificates are %+v, want one of %s", sent, want)
			}
			c.write("cert.pem", otherCA)
			c.write("key.pem", otherKey)
			c.readFiles()
		}
	})
	t.Run("verify: false", func(t *testing.T) {
		c := newCloudOf(t, o, cloud("verify: false")...)
		c.wantList()
		c.use(cloud()...)
		c.readFiles()
		c.wantUnavailable(unknown)
	})
	t.Run("a CA that changes", func(t *testing.T) {
		c := newCloudOf(t, o, cloud()...)
		c.write("ca.pem", otherCA)
		t.Setenv("OS_CACERT", "~/ca.pem")
		c.connect(openstack.Options{})
		c.wantUnavailable(unknown)
		c.write("ca.pem", ca)
		c.wantList() // at once
		c.write("ca.pem", otherCA)
		c.readFiles()
		c.wantList() // with the previous token, while it is valid
		c.Revoke()
		c.wantUnavailable(unknown)
	})
}

// TestAnotherProject: an application credential does not name its project. If the login
// with a new one leads to another project, the session for the first one ends.
func TestAnotherProject(t *testing.T) {
	application := func(project string) string {
		return "auth: {auth_url: 'KEYSTONE', application_credential_id: " + project + "-app, application_credential_secret: " + password + "}"
	}
	c := newCloud(t, application("ours"))
	c.AddProject("theirs").SetPassword(password)
	c.wantList()
	c.use(application("theirs"))
	c.readFiles()
	before := c.sent()
	for range 3 {
		c.wantUnavailable(`cloud ours of clouds.yaml is now "RegionOne/theirs-id", but the controller works in "RegionOne/ours-id"`)
		c.clock.pass(time.Minute)
	}
	if n := c.sent() - before; n != 0 {
		t.Errorf("%d requests were sent to Neutron", n)
	}
	c.use(application("ours"))
	c.wantList()
}

// TestSecondRegion: a region that appears in the catalog does not break the next login.
func TestSecondRegion(t *testing.T) {
	c := newCloud(t, withPassword("KEYSTONE", password)[1:]...)
	c.wantList()
	at := func(region string) any { return keystone.Endpoint("public", region, c.network) }
	c.offer(keystone.Service(at("RegionNew"), at("RegionOne")))
	c.Revoke()
	c.wantLogin(2)
	c.offer(keystone.Service(at("RegionNew")))
	c.Revoke()
	c.wantUnavailable(`is now "RegionNew/`)
}
