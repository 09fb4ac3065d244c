package openstack_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/test/keystone"
)

// allowing returns the Addresses for URLs.
func allowing(t testing.TB, urls ...string) *openstack.Addresses {
	t.Helper()
	addresses, err := openstack.ParseAddresses(urls)
	must(t, err)
	return addresses
}

func parse(t *testing.T, cloudsYAML, ca string, urls ...string) (*openstack.Credentials, error) {
	t.Helper()
	return openstack.ParseCredentials(openstack.Source{
		Name: "the Secret a/b", CloudsYAML: []byte(cloudsYAML), CACertificate: []byte(ca), Addresses: allowing(t, urls...),
	})
}

// TestCredentials: what a tenant writes is used as it is, or rejected with an error that
// names the field and holds no secret. Nothing of it reads a file or an environment variable.
func TestCredentials(t *testing.T) {
	f := useFiles(t)
	f.write("ca.pem", "not a certificate")
	f.write("clouds-public.yaml", "public-clouds: {vendor: {auth: {auth_url: 'https://k:5000'}}}")
	const allowed = "https://k.example:5000"
	with := func(url string, more ...string) string { return clouds(withPassword(url, password, more...)...) }
	good := with(allowed + "/v3")
	for name, test := range map[string]struct {
		clouds, ca string
		want       string // part of the error, or empty
	}{
		"one cloud":                   {clouds: good},
		"the one named openstack":     {clouds: strings.Replace(good, "ours:", "openstack:", 1) + "  other: {}\n"},
		"two, none named openstack":   {clouds: good + "  other: {}\n", want: `must have one cloud, or one with the name "openstack"; it has ["other" "ours"]`},
		"none":                        {clouds: "clouds: {}", want: "it has none"},
		"empty":                       {want: "the Secret a/b has no clouds.yaml"},
		"another port":                {clouds: with("https://k.example:5001"), want: "auth_url is not one that the administrator"},
		"another scheme":              {clouds: with("http://k.example:5000"), want: "auth_url is not one that the administrator"},
		"another host":                {clouds: with("https://k.example.evil:5000"), want: "auth_url is not one that the administrator"},
		"user in the URL":             {clouds: with("https://k.example:5000@evil"), want: "auth_url "},
		"the host in capitals":        {clouds: with("https://K.EXAMPLE:5000/v3")},
		"a file as CA":                {clouds: with(allowed, "cacert: "+f.path("ca.pem")), want: "cacert names a file"},
		"a file as certificate":       {clouds: with(allowed, "cert: /etc/passwd"), want: "cert names a file"},
		"a file as key":               {clouds: with(allowed, "key: /etc/passwd"), want: "key names a file"},
		"a profile":                   {clouds: with(allowed, "profile: vendor"), want: "profile names a file"},
		"a public cloud":              {clouds: with(allowed, "cloud: vendor"), want: "cloud names a file"},
		"a command to log in":         {clouds: with(allowed, "auth_type: v3oidcpassword"), want: `auth_type is "v3oidcpassword"`},
		"an endpoint somewhere else":  {clouds: with(allowed, "network_endpoint_override: https://10.0.0.1"), want: "network_endpoint_override is not a URL that"},
		"an endpoint that is allowed": {clouds: with(allowed, "network_endpoint_override: https://k.example:5000/network")},
		"no certificate in cacert":    {clouds: good, ca: secret, want: "cacert of the Secret has no certificate"},
		"no YAML":                     {clouds: "clouds: {ours: *" + secret, want: "is not valid YAML"},
		"large":                       {clouds: good + "#" + strings.Repeat(" ", 64<<10), want: "is too large"},
		"many aliases":                {clouds: billion(), want: "clouds.yaml in the Secret a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, test.clouds, test.ca, allowed)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error is %q", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error is %v, want %q in it", err, test.want)
			case err != nil && strings.Contains(err.Error(), secret):
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
	credentials, err := parse(t, good, "", allowed)
	if text := fmt.Sprintf("%v %+v %#v %s", credentials, credentials, credentials, credentials); err != nil || strings.Contains(text, secret) {
		t.Errorf("the text of credentials is %q (%v)", text, err)
	}
}

// maxMemory is how much may be allocated for the credentials of a tenant.
const maxMemory = 24 << 20

// TestMemoryOfCredentials: aliases do not repeat what is large in memory, or as text.
func TestMemoryOfCredentials(t *testing.T) {
	const url = "https://k.example:5000"
	for name, test := range map[string]struct {
		line, other string // of the cloud, and of each other one
		others      int
		want        string // part of the error, or empty
	}{
		"a long list":         {"regions: &a [" + strings.Repeat("~,", 12_000) + "]", "{regions: *a}", 25, ""},
		"a long text":         {"unused: &a " + strings.Repeat("x", 30_000), "{cert: *a, key: *a, profile: *a}", 800, ""},
		"all in one":          {"cert: &a " + strings.Repeat("x", 30_000) + "\n    key: *a\n    profile: *a", "{}", 0, "is too large"},
		"a large cloud":       {"<<: &a {cert: " + strings.Repeat("x", 30_000) + "}\n    cert: ''", "*a", 2500, ""},
		"a name as a pointer": {"? &a " + strings.Repeat("x", 30_000) + "\n    : x", "{? *a : x, cert: *a}", 800, ""},
	} {
		var text strings.Builder
		text.WriteString(strings.Replace(clouds(withPassword(url, password, test.line)...), "ours:", "openstack:", 1))
		for i := range test.others {
			fmt.Fprintf(&text, "  c%d: %s\n", i, test.other)
		}
		var err error
		used, _ := allocated(func() { _, err = parse(t, text.String(), "", url) })
		if isRight := (err == nil) == (test.want == ""); used > maxMemory || !isRight || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, of %d bytes: %d MB were allocated, want at most %d MB (error: %v, want %q)",
				name, text.Len(), used>>20, maxMemory>>20, err, test.want)
		}
	}
}

// FuzzParseCredentials: whatever a tenant writes costs little memory and time. If it is
// accepted, it leads to the allowed URL, and nothing in it is from a file.
func FuzzParseCredentials(f *testing.F) {
	const allowed, ofFile = "https://k.example:5000/identity", "region-in-a-file"
	files := useFiles(f)
	must(f, os.MkdirAll(files.path(".config/openstack"), 0o700))
	files.write(".config/openstack/clouds-public.yaml", "public-clouds: {vendor: {region_name: "+ofFile+"}}")
	for _, line := range []string{
		"", "profile: vendor", "cloud: vendor", "cacert: doc.go", "cert: doc.go\n    key: doc.go", "auth_type: v3oidcpassword",
		"network_endpoint_override: " + allowed + "/../network", "interface: internalURL\n    verify: false",
		"<<: &a {cert: x}\n    cert: ''", "regions: &a [~, {name: a, values: {cert: b}}]\n  openstack: {regions: *a}",
	} {
		f.Add(clouds(withPassword(allowed, password, line)[1:]...), "") // without a region
	}
	f.Add(clouds(withPassword("https://evil:5000/identity", password)...), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")
	f.Add(clouds("auth_type: token", "auth: {auth_url: '"+allowed+"', token: !!binary c2VjcmV0}"), "")
	f.Add(billion(), "")
	f.Fuzz(func(t *testing.T, cloudsYAML, ca string) {
		var credentials *openstack.Credentials
		var err error
		used, took := allocated(func() { credentials, err = parse(t, cloudsYAML, ca, allowed) })
		if used > maxMemory || took > 10*time.Second {
			t.Errorf("%d MB were allocated, in %v", used>>20, took)
		}
		if err != nil {
			return
		}
		urls, region := openstack.Targets(credentials)
		for _, u := range urls {
			parsed, err := url.Parse(u.String())
			if err != nil || *parsed != *u || !strings.EqualFold(u.Scheme+"://"+u.Host, "https://k.example:5000") ||
				!strings.HasPrefix(path.Clean(u.Path)+"/", "/identity/") {
				t.Errorf("%q is accepted", u)
			}
		}
		if region == ofFile {
			t.Error("the region is that in a file")
		}
	})
}

// billion returns a YAML document that grows without end if its aliases are expanded.
func billion() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		fmt.Fprintf(&text, "a%d: &a%[1]d [*a%d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d,*a%[2]d]\n", i+1, i)
	}
	return text.String() + "clouds: {ours: {regions: *a9}}\n"
}

// TestAllowedURLs: a URL is allowed if its scheme, host and port are those of one of the list,
// and its path is the same or below.
func TestAllowedURLs(t *testing.T) {
	for name, test := range map[string]struct {
		list, url string
		allowed   bool
	}{
		"same":                      {"https://k/identity", "https://k/identity", true},
		"with a version":            {"https://k/identity/v3", "https://k/identity/", true},
		"below":                     {"https://k/identity", "https://k/identity/eu", true},
		"any path":                  {"https://k", "https://k/identity/v3", true},
		"the default port":          {"https://k:443", "https://k/v3", true},
		"another path":              {"https://k/identity", "https://k/other", false},
		"a path with this prefix":   {"https://k/identity", "https://k/identity2", false},
		"a path that goes up":       {"https://k/identity", "https://k/identity/../other", false},
		"a path that goes up, as %": {"https://k/identity", "https://k/identity/%2e%2e/other", false},
		"a host with this prefix":   {"https://k", "https://k.evil", false},
		"no encryption":             {"https://k", "http://k", false},
		"one of two":                {"https://a,https://k", "https://k/v3", true},
	} {
		_, err := parse(t, clouds(withPassword(test.url, password)...), "", strings.Split(test.list, ",")...)
		if allowed := err == nil; allowed != test.allowed {
			t.Errorf("%s: allowed is %t, want %t (%v)", name, allowed, test.allowed, err)
		}
	}
	if _, err := openstack.ParseAddresses([]string{"https://k", "ftp://me:" + secret + "@k"}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a URL that is none: error is %v", err)
	}
}

// TestAddressesOfNames: a name that is allowed, and that resolves to this machine, leads nowhere.
// Neither does the catalog. An IP address that is on the list does.
func TestAddressesOfNames(t *testing.T) {
	o := startOpenStack(t, embedded.Options{})
	other := httptest.NewServer(o.Config.Handler)
	t.Cleanup(other.Close)
	o.offer(keystone.Service(keystone.Endpoint("public", "RegionOne", other.URL+"/networking")))
	var operations []string
	observed := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			operations = append(operations, openstack.Operation(r))
			return next.RoundTrip(r)
		})
	}
	login := func(urls ...string) error {
		credentials, err := parse(t, clouds(withPassword(urls[0], password)...), "", urls...)
		must(t, err)
		client, err := openstack.NewFromCredentials(func(context.Context, bool) (*openstack.Credentials, error) { return credentials, nil },
			openstack.Options{Transport: observed})
		must(t, err)
		_, err = client.Extensions(t.Context())
		return err
	}
	const forbidden = "the address is one of this machine"
	wantError(t, "a name for this machine", login("http://localhost"+o.URL[strings.LastIndex(o.URL, ":"):]), neutron.ErrUnavailable, forbidden)
	wantError(t, "a catalog that leads to this machine", login(o.URL), neutron.ErrUnavailable, forbidden)
	if o.sent() != 0 {
		t.Errorf("%d requests were sent to Neutron", o.sent())
	}
	must(t, login(o.URL, other.URL))
	if want := "login of a namespace"; operations[0] != want || !slices.Contains(operations, "list extensions") {
		t.Errorf("the operations are %q, want %q first, on which no alert depends", operations, want)
	}
}
