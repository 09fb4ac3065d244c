package openstack_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestCloudErrors: what is wrong with the files, in a sentence without secrets.
func TestCloudErrors(t *testing.T) {
	const user, project = "username: me, user_domain_name: Default", "project_name: ours, project_domain_name: Default"
	auth := func(fields ...string) string {
		return clouds("auth: {" + strings.Join(append(fields, "password: "+password), ", ") + "}")
	}
	const url = "auth_url: 'http://127.0.0.1:5000'"
	good := auth(url, user, project)
	ours := `the cloud "ours" of DIR/clouds.yaml: `
	for name, test := range map[string]struct {
		clouds, secure string
		environment    map[string]string
		want           string
	}{
		"no such name":        {clouds: "clouds: {theirs: {}, another: {}}", want: `DIR/clouds.yaml has no cloud "ours"; it has ["another" "theirs"]`},
		"no names":            {clouds: "clouds:", want: `DIR/clouds.yaml has no cloud "ours"; it has none at all`},
		"empty":               {clouds: " ", want: `DIR/clouds.yaml has no cloud "ours"; it has none at all`},
		"only in secure.yaml": {clouds: "clouds: {a: {}}", secure: good, want: `DIR/clouds.yaml has no cloud "ours"; it has ["a"]`},
		"many names":          {clouds: "clouds: {" + manyNames() + "}", want: `DIR/clouds.yaml has no cloud "ours"; it has ["n10" "n11" `},
		"too large":           {clouds: "# " + strings.Repeat("x", 4<<20), want: "reading DIR/clouds.yaml: it has more than 4194304 bytes"},
		"no file":             {want: "OS_CLIENT_CONFIG_FILE names DIR/clouds.yaml, which is not there"},
		"no secure file":      {clouds: good, environment: map[string]string{"OS_CLIENT_SECURE_FILE": "DIR/elsewhere.yaml"}, want: "OS_CLIENT_SECURE_FILE names DIR/elsewhere.yaml, which is not there"},
		"a directory":         {clouds: good, environment: map[string]string{"OS_CLIENT_CONFIG_FILE": "DIR"}, want: "reading a file: read DIR: is a directory"},
		"no profile":          {clouds: clouds("profile: vendor"), want: `the cloud "ours" of DIR/clouds.yaml: its profile is "vendor", and there is none of `},

		"not YAML":           {clouds: "clouds:\n  ours: {password: " + password + "\n" + secret + ": *" + secret, want: "DIR/clouds.yaml is not valid YAML, in or near line"},
		"an anchor":          {clouds: "clouds:\n  ours: *" + secret, want: "DIR/clouds.yaml is not valid YAML"},
		"a tag":              {clouds: "clouds:\n  ours: !!float " + secret, want: "DIR/clouds.yaml"},
		"a tab":              {clouds: "clouds:\n\tours: " + secret, want: "DIR/clouds.yaml is not valid YAML, in or near line"},
		"a list":             {clouds: "[" + secret + "]", want: "DIR/clouds.yaml does not have the form of a clouds.yaml, in or near line 1"},
		"a text":             {clouds: secret, want: "DIR/clouds.yaml does not have the form of a clouds.yaml, in or near line 1"},
		"a text for a cloud": {clouds: "clouds:\n  ours: " + secret, want: "DIR/clouds.yaml does not have the form of a clouds.yaml, in or near line 2"},
		"a text for auth":    {clouds: clouds("auth: " + secret), want: "DIR/clouds.yaml does not have the form of a clouds.yaml, in or near line 3"},
		"a list for a name":  {clouds: clouds("auth: {username: [" + secret + "]}"), want: "DIR/clouds.yaml does not have the form"},
		"a text for verify":  {clouds: clouds("verify: " + secret), want: "DIR/clouds.yaml does not have the form"},
		"binary":             {clouds: "\x00\x01" + secret, want: "DIR/clouds.yaml is not valid YAML"},
		"secure is not YAML": {clouds: good, secure: "clouds: {" + secret, want: "DIR/secure.yaml is not valid YAML, in or near line"},
		"secure is a text":   {clouds: good, secure: secret, want: "DIR/secure.yaml does not have the form"},

		"no auth":               {clouds: clouds("region_name: RegionOne"), want: ours + "auth is missing"},
		"nothing":               {clouds: "clouds: {ours: }", want: ours + "auth is missing"},
		"nothing, in both":      {clouds: "clouds: {ours: }", secure: "clouds: {ours: }", want: `the cloud "ours" of DIR/clouds.yaml and DIR/secure.yaml: auth is missing`},
		"no auth_url":           {clouds: auth(user, project), want: ours + "auth_url is missing"},
		"auth_url is not a URL": {clouds: auth("auth_url: 'keystone:5000'", user, project), want: ours + "auth_url begins with neither http:// nor https://"},
		"auth_url is bad":       {clouds: auth("auth_url: 'http://me:"+secret+"@%zz'", user, project), want: ours + "auth_url is not a URL"},
		"auth_url with a login": {clouds: auth("auth_url: 'http://me:"+secret+"@k:5000'", user, project), want: ours + "auth_url holds a user name or password"},
		"auth_url of v2":        {clouds: auth("auth_url: 'http://k:5000/v2.0/'", user, project), want: ours + "auth_url ends with /v2.0: want the Identity API of the version 3"},
		"no user":               {clouds: auth(url, project), want: ours + "username is missing"},
		"two users":             {clouds: auth(url, user, "user_id: x", project), want: ours},
		"no user's domain":      {clouds: auth(url, "username: me", project), want: ours + "user_domain_name is missing"},
		"no project's domain":   {clouds: auth(url, user, "project_name: ours"), want: ours + "project_domain_name is missing"},
		"no password":           {clouds: clouds("auth: {" + url + ", " + user + ", " + project + "}"), want: ours + "password is missing (or token, or application_credential_id)"},
		"no password, by type":  {clouds: clouds("auth_type: password", "auth: {"+url+", token: "+secret+"}"), want: ours + "password is missing"},
		"no token":              {clouds: clouds("auth_type: token", "auth: {"+url+", password: "+secret+"}"), want: ours + "token is missing"},
		"no credential":         {clouds: clouds("auth_type: v3applicationcredential", "auth: {"+url+", application_credential_secret: "+secret+"}"), want: ours + "application_credential_id is missing"},
		"no secret":             {clouds: clouds("auth: {" + url + ", application_credential_id: x}"), want: ours + "application_credential_secret is missing"},
		"whose credential":      {clouds: clouds("auth: {" + url + ", application_credential_name: x, application_credential_secret: " + secret + "}"), want: ours + "username is missing, which an application_credential_name needs"},
		"an unknown auth_type":  {clouds: clouds("auth_type: v3oidcpassword", "auth: {"+url+"}"), want: ours + `auth_type is "v3oidcpassword": it must be password, token or v3applicationcredential`},
		"an unknown interface":  {clouds: good + "    interface: pubic\n", want: ours + `interface is "pubic": it must be public, internal or admin`},
		"another system":        {clouds: auth(url, user, "system_scope: some"), want: ours + "only system scope of all is supported"},

		"no CA file":        {clouds: good + "    cacert: DIR/none.pem\n", want: ours + "failed to open the CA cert file: open DIR/none.pem: no such file or directory"},
		"no CA file, by OS": {clouds: good, environment: map[string]string{"OS_CACERT": "DIR/none.pem"}, want: ours + "failed to open the CA cert file: open DIR/none.pem: no such file or directory"},
		"not a CA file":     {clouds: good + "    cacert: DIR/clouds.yaml\n", want: ours + `failed to parse the CA Cert from "DIR/clouds.yaml"`},
		"no key":            {clouds: good + "    cert: DIR/none.pem\n", want: ours + "client cert is set, but client cert key is missing"},
		"no key file":       {clouds: good + "    cert: DIR/clouds.yaml\n    key: DIR/none.pem\n", want: ours + "failed to read the client cert key file: open DIR/none.pem: no such file or directory"},
		"not a key":         {clouds: good + "    cert: DIR/clouds.yaml\n    key: DIR/clouds.yaml\n", want: ours + "tls: failed to find any PEM data in certificate input"},
	} {
		t.Run(name, func(t *testing.T) {
			f := useFiles(t)
			here := func(text string) string { return strings.ReplaceAll(text, "DIR", f.dir) }
			if test.clouds != "" {
				f.write("clouds.yaml", here(test.clouds))
			}
			if test.secure != "" {
				f.write("secure.yaml", here(test.secure))
			}
			for key, value := range test.environment {
				t.Setenv(key, here(value))
			}
			_, err := openstack.NewFromCloud("ours")
			if err == nil || !strings.HasPrefix(err.Error(), here(test.want)) {
				t.Errorf("error is\n     %v\nwant %s", err, here(test.want))
			}
			noSecrets(t, err)
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is more than a line: %q", err)
			}
		})
	}
}

func manyNames() string {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("n%d: {}", 10+i))
	}
	return strings.Join(names, ", ")
}

// TestCloudPlaces: where the files are looked for.
func TestCloudPlaces(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	content := clouds(withPassword(k.URL, password)...)
	connects := func(t *testing.T) {
		t.Helper()
		wantList(t, connectCloud(t))
	}
	var dirs [3]string // working directory, XDG_CONFIG_HOME, home
	prepare := func(t *testing.T) {
		useFiles(t)
		t.Setenv("OS_CLIENT_CONFIG_FILE", "")
		for i := range dirs {
			dirs[i] = t.TempDir()
		}
		t.Chdir(dirs[0])
		t.Setenv("HOME", dirs[2])
	}
	write := func(t *testing.T, content string, path ...string) {
		t.Helper()
		name := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("nowhere", func(t *testing.T) {
		prepare(t)
		_, err := openstack.NewFromCloud("ours")
		want := "there is no clouds.yaml: OS_CLIENT_CONFIG_FILE is not set, and there is none of " +
			dirs[0] + "/clouds.yaml, " + dirs[2] + "/.config/openstack/clouds.yaml, /etc/openstack/clouds.yaml"
		if err == nil || err.Error() != want {
			t.Errorf("error is\n     %v\nwant %s", err, want)
		}
	})
	t.Run("no name", func(t *testing.T) {
		prepare(t)
		if _, err := openstack.NewFromCloud(""); err == nil || err.Error() != "no cloud is named, and OS_CLOUD is not set" {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("in the home directory, with OS_CLOUD", func(t *testing.T) {
		prepare(t)
		t.Setenv("OS_CLOUD", "ours")
		write(t, content, dirs[2], ".config/openstack/clouds.yaml")
		client, err := openstack.NewFromCloud("")
		if err != nil {
			t.Fatal(err)
		}
		wantList(t, client)
	})
	t.Run("XDG_CONFIG_HOME", func(t *testing.T) {
		prepare(t)
		t.Setenv("XDG_CONFIG_HOME", dirs[1])
		write(t, "not it", dirs[2], ".config/openstack/clouds.yaml")
		write(t, content, dirs[1], "openstack/clouds.yaml")
		connects(t)
	})
	t.Run("the working directory first", func(t *testing.T) {
		prepare(t)
		write(t, "not it", dirs[2], ".config/openstack/clouds.yaml")
		write(t, content, dirs[0], "clouds.yaml")
		connects(t)
	})
	t.Run("OS_CLIENT_SECURE_FILE", func(t *testing.T) {
		prepare(t)
		write(t, clouds(withPassword(k.URL, "wrong")...), dirs[0], "clouds.yaml")
		write(t, "not it", dirs[0], "secure.yaml")
		write(t, clouds("auth: {password: "+password+"}"), dirs[1], "any.yaml")
		t.Setenv("OS_CLIENT_SECURE_FILE", filepath.Join(dirs[1], "any.yaml"))
		connects(t)
	})
	t.Run("a profile", func(t *testing.T) {
		prepare(t)
		write(t, clouds("profile: vendor", "auth: {username: me, user_domain_name: Default, password: "+password+", project_id: project-id}"), dirs[0], "clouds.yaml")
		write(t, "public-clouds: {vendor: {auth: {auth_url: '"+k.URL+"'}}}", dirs[0], "clouds-public.yaml")
		connects(t)
		write(t, "public-clouds: {another: {}}", dirs[0], "clouds-public.yaml")
		if _, err := openstack.NewFromCloud("ours"); err == nil || !strings.Contains(err.Error(), `its profile is "vendor", which is not in `+dirs[0]+`/clouds-public.yaml; it has ["another"]`) {
			t.Errorf("error is %v", err)
		}
	})
}

// TestRotation: credentials that change on disk.
func TestRotation(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	const next = "next-" + secret
	rotate := func(f files) {
		k.set(func() { k.password = next })
		f.write("clouds.yaml", clouds(withPassword(k.URL, next)...))
	}
	begin := func(t *testing.T) (files, neutron.Client, *clock) {
		t.Helper()
		k.fail(nil)
		k.set(func() { k.password, k.logins = password, 0 })
		f := useFiles(t)
		f.write("clouds.yaml", clouds(withPassword(k.URL, password)...))
		watch := &clock{}
		client := connectCloud(t, openstack.WithClock(watch.Now))
		wantList(t, client)
		k.wantLogins(t, 1)
		return f, client, watch
	}
	t.Run("the old token is refused", func(t *testing.T) {
		f, client, _ := begin(t)
		rotate(f)
		k.revoke()
		wantList(t, client) // at once
		k.wantLogins(t, 1)
	})
	t.Run("the old token is good", func(t *testing.T) {
		f, client, watch := begin(t)
		rotate(f)
		wantList(t, client)
		k.wantLogins(t, 0)
		watch.pass(5 * time.Second)
		wantList(t, client)
		k.wantLogins(t, 1)
		watch.pass(time.Minute)
		wantList(t, client)
		k.wantLogins(t, 0)
	})
	t.Run("after a refusal", func(t *testing.T) {
		f, client, _ := begin(t)
		k.set(func() { k.password = next })
		k.revoke()
		wantError(t, "with the old password", list(t, client), neutron.ErrUnavailable, "login: unavailable: 401")
		k.wantLogins(t, 1)
		rotate(f)
		wantList(t, client) // at once
		k.wantLogins(t, 1)
	})
	t.Run("while it is refused", func(t *testing.T) {
		f, client, _ := begin(t)
		k.revoke()
		k.fail(func(w http.ResponseWriter, _ *http.Request) {
			k.fail(nil)
			rotate(f)
			w.WriteHeader(http.StatusUnauthorized)
		})
		wantList(t, client)
		k.wantLogins(t, 2)
	})
	t.Run("the file before Keystone", func(t *testing.T) {
		f, client, watch := begin(t)
		f.write("clouds.yaml", clouds(withPassword(k.URL, next)...))
		watch.pass(time.Minute)
		wantList(t, client) // with the old token
		k.wantLogins(t, 1)
		wantList(t, client)
		k.wantLogins(t, 0)
		k.set(func() { k.password = next })
		watch.pass(time.Minute)
		wantList(t, client)
		wantList(t, client)
		k.wantLogins(t, 1)
	})
	t.Run("broken", func(t *testing.T) {
		f, client, watch := begin(t)
		for _, content := range []string{"clouds: {ours: *" + secret, "clouds: {}", clouds("auth: {password: " + secret + "}")} {
			f.write("clouds.yaml", content)
			watch.pass(time.Minute)
			wantList(t, client)
			k.revoke()
			wantList(t, client) // with the old password
			k.wantLogins(t, 1)
			k.revoke()
			k.fail(answerWith(401, nil, ""))
			wantError(t, "when the old one is refused", list(t, client), neutron.ErrUnavailable,
				"login: unavailable: 401: Unauthorized", "; the files were changed since, and cannot be used: ", f.path("clouds.yaml"))
			k.fail(nil)
			k.wantLogins(t, 1)
			watch.pass(time.Minute)
			wantList(t, client)
			k.wantLogins(t, 1)
		}
		if err := os.Remove(f.path("clouds.yaml")); err != nil {
			t.Fatal(err)
		}
		watch.pass(time.Minute)
		wantList(t, client)
		rotate(f)
		watch.pass(time.Minute)
		wantList(t, client)
		k.wantLogins(t, 1)
	})
	t.Run("secure.yaml appears and changes", func(t *testing.T) {
		f, client, _ := begin(t)
		for _, password := range []string{"a-" + secret, "b-" + secret} {
			k.set(func() { k.password = password })
			k.revoke()
			f.write("secure.yaml", clouds("auth: {password: "+password+"}"))
			wantList(t, client)
		}
	})
	t.Run("as Kubernetes does it", func(t *testing.T) {
		f, _, _ := begin(t)
		// A Secret is mounted as links that lead through one to a directory,
		// and that one is replaced.
		mount := func(version, password string) {
			t.Helper()
			k.set(func() { k.password = password })
			k.revoke()
			if err := os.MkdirAll(f.path(version), 0o700); err != nil {
				t.Fatal(err)
			}
			f.write(version+"/clouds.yaml", clouds(withPassword(k.URL, password)...))
			if err := os.Symlink(version, f.path("..data_tmp")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(f.path("..data_tmp"), f.path("..data")); err != nil {
				t.Fatal(err)
			}
		}
		mount("..1", password)
		if err := os.Remove(f.path("clouds.yaml")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..data/clouds.yaml", f.path("clouds.yaml")); err != nil {
			t.Fatal(err)
		}
		client := connectCloud(t)
		wantList(t, client)
		for _, version := range []string{"..2", "..3"} {
			mount(version, version+secret)
			wantList(t, client)
		}
	})
}

// TestAnotherCloud: the files may come to name another cloud. From then on, the
// old one is left alone, also while the other one cannot be reached.
func TestAnotherCloud(t *testing.T) {
	one, two := startKeystone(t, embedded.Options{}), startKeystone(t, embedded.Options{})
	f := useFiles(t)
	watch := &clock{}
	inProject := func(id string) string {
		return clouds("auth: {auth_url: '" + one.URL + "', username: me, user_domain_name: Default, password: " + password + ", project_id: " + id + "}")
	}
	for name, test := range map[string]struct{ before, after, want string }{
		"another region":    {clouds(withPassword(one.URL, password)...), strings.ReplaceAll(clouds(withPassword(one.URL, password)...), "RegionOne", "RegionTwo"), "RegionTwo"},
		"another project":   {inProject("project-id"), inProject("not-ours"), "401 Unauthorized"},
		"another interface": {clouds(withPassword(one.URL, password)...), clouds(withPassword(one.URL, password, "interface: admin")...), "interface admin"},
		"another Keystone":  {clouds(withPassword(one.URL, password)...), clouds(withPassword(two.URL, password)...), "503"},
	} {
		t.Run(name, func(t *testing.T) {
			one.neutron.ResetRequests()
			two.fail(answerWith(503, nil, ""))
			f.write("clouds.yaml", test.before)
			client := connectCloud(t, openstack.WithClock(watch.Now))
			wantList(t, client)
			f.write("clouds.yaml", test.after)
			watch.pass(time.Minute)
			for range 3 {
				wantError(t, "after the change", list(t, client), neutron.ErrUnavailable, "login: unavailable: ", test.want)
			}
			if n := len(one.neutron.Requests()); n != 1 {
				t.Errorf("the old one was asked %d times, want once", n)
			}
		})
	}
	f.write("clouds.yaml", clouds(withPassword(one.URL, password)...))
	client := connectCloud(t, openstack.WithClock(watch.Now))
	wantList(t, client)
	two.fail(nil)
	f.write("clouds.yaml", clouds(withPassword(two.URL, password)...))
	watch.pass(time.Minute)
	wantList(t, client)
	if n := len(two.neutron.Requests()); n != 1 {
		t.Errorf("the other one was asked %d times, want once", n)
	}
}

// TestCloudTLS: what the files say of certificates.
func TestCloudTLS(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	secureKeystone := httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(secureKeystone.Close)
	secureFront := httptest.NewUnstartedServer(http.HandlerFunc(k.serveNeutron))
	secureFront.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	secureFront.StartTLS()
	t.Cleanup(secureFront.Close)
	for _, server := range []*httptest.Server{secureKeystone, secureFront} {
		server.Config.ErrorLog = quiet
	}
	k.set(func() {
		k.catalog = []object{networkAt(endpointAt("public", "RegionOne", secureFront.URL))}
	})
	certificate := secureKeystone.TLS.Certificates[0]
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))
	key := pemKey(t, certificate)

	k.wantLogins(t, 0)
	t.Run("unknown", func(t *testing.T) {
		useFiles(t).write("clouds.yaml", clouds(withPassword(secureKeystone.URL, password)...))
		wantError(t, "a list", list(t, connectCloud(t)), neutron.ErrUnavailable,
			"login: unavailable: "+strings.TrimPrefix(secureKeystone.URL, "https://")+": x509: certificate signed by unknown authority")
	})
	t.Run("cacert, and a certificate of ours", func(t *testing.T) {
		f := useFiles(t)
		f.write("ca.pem", ca)
		f.write("key.pem", key)
		f.write("clouds.yaml", clouds(withPassword(secureKeystone.URL, password, "cacert: "+f.path("ca.pem"), "cert: "+f.path("ca.pem"), "key: ~/key.pem")...))
		k.requests()
		wantList(t, connectCloud(t))
		if got := k.requests(); len(got) != 1 || len(got[0].TLS.PeerCertificates) != 1 {
			t.Errorf("the requests are %+v, want one with a certificate", got)
		}
	})
	t.Run("verify: false", func(t *testing.T) {
		useFiles(t).write("clouds.yaml", clouds(withPassword(secureKeystone.URL, password, "verify: false")...))
		wantList(t, connectCloud(t))
	})
	t.Run("cacert changes", func(t *testing.T) {
		k.set(func() { k.logins = 0 })
		f := useFiles(t)
		other := pemCertificate(t)
		f.write("ca.pem", other)
		f.write("clouds.yaml", clouds(withPassword(secureKeystone.URL, password)...))
		t.Setenv("OS_CACERT", "~/ca.pem")
		watch := &clock{}
		client := connectCloud(t, openstack.WithClock(watch.Now))
		wantError(t, "a list", list(t, client), neutron.ErrUnavailable, "certificate signed by unknown authority")
		f.write("ca.pem", ca)
		wantList(t, client) // at once
		k.wantLogins(t, 1)
		f.write("ca.pem", other)
		watch.pass(time.Minute)
		wantList(t, client) // with the old token, as long as it is good
		k.revoke()
		wantError(t, "a list", list(t, client), neutron.ErrUnavailable, "certificate signed by unknown authority")
	})
}
