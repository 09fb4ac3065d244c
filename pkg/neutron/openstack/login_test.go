package openstack_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/neutrontest"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/test/keystone"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// TestCloudContract: the contract holds with a login, with tokens that are valid for two
// requests, so that every kind of request meets an expired one.
func TestCloudContract(t *testing.T) {
	neutrontest.TestClient(t, func(t *testing.T) neutrontest.Cloud {
		o := startOpenStack(t, embedded.Options{MaxPage: 2})
		if !strings.Contains(t.Name(), "concurrent") { // there, other callers could use up a new token
			o.Change(func(s *keystone.Settings) { s.Uses = 2 })
		}
		withoutLogin := httptest.NewServer(o.Neutron)
		t.Cleanup(withoutLogin.Close)
		return neutrontest.Cloud{Client: newCloudOf(t, o).client, Endpoint: withoutLogin.URL, SetQuotas: true}
	})
}

// TestOnlyOurProject: lists are limited to the token's project, whatever others
// write into their networks, and whatever IDs they are known by.
func TestOnlyOurProject(t *testing.T) {
	c := newCloudOf(t, startOpenStack(t, embedded.Options{MaxPage: 1}))
	shared := object{"tenant_id": "theirs", "shared": true, "name": "default/example", "prefixes": []string{"10.0.0.0/8"}}
	create := func(kind string, attributes ...string) (id string) {
		given := object{"tenant_id": shared["tenant_id"]}
		for _, name := range attributes {
			given[name] = shared[name]
		}
		var created map[string]struct{ ID string }
		must(t, neutronapi.API{Neutron: c.Neutron}.Do(http.MethodPost, kind+"s", object{kind: given}, &created))
		return created[kind].ID
	}
	theirs := create("network", "shared", "name")
	ours, err := c.client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "default/example"})
	must(t, err)
	for filter, want := range map[neutron.NetworkFilter][]neutron.Network{
		{}: {ours}, {Name: "default/example"}: {ours}, {ID: theirs}: nil,
	} {
		found, err := c.client.Networks(t.Context(), filter)
		if diff := cmp.Diff(want, found, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("Networks(%+v): %v (-want +got):\n%s", filter, err, diff)
		}
	}
	for id, want := range map[string]int{
		create("subnetpool", "name", "prefixes"): 0, create("subnetpool", "name", "prefixes", "shared"): 1,
	} {
		if found, err := c.client.SubnetPools(t.Context(), neutron.SubnetPoolFilter{ID: id}); err != nil || len(found) != want {
			t.Errorf("a subnet pool of another project: SubnetPools() = %v, %v, want %d", found, err, want)
		}
	}
}

// TestLogin: each way to log in takes one login, whatever the form of auth_url.
func TestLogin(t *testing.T) {
	o := startOpenStack(t, embedded.Options{})
	newCloudOf(t, o).wantLogin(1) // which issues the token that two cases have
	o.Change(func(s *keystone.Settings) {
		s.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
			if agent := r.UserAgent(); !strings.HasPrefix(agent, "samplecrd-controller/") {
				t.Errorf("User-Agent is %q", agent)
			}
			return false
		}
	})
	const project, user = "project_name: ours, project_domain_name: Default", "username: ours, user_domain_name: Default"
	const withSecret, withMe = "application_credential_secret: " + password, me + ", password: " + password
	for name, test := range map[string]struct{ auth, authType, secure string }{
		"password":                {auth: withMe},
		"domain by ID":            {auth: "username: ours, user_domain_id: default, password: " + password + ", project_name: ours, project_domain_id: default"},
		"one domain":              {auth: "username: ours, domain_name: Default, password: " + password + ", project_name: ours"},
		"project by ID":           {auth: user + ", password: " + password + ", project_id: ours-id, project_domain_name: Default"},
		"user by ID":              {auth: "user_id: ours-user, user_domain_name: Default, password: " + password + ", " + project},
		"v3password":              {auth: withMe + ", token: x", authType: "v3password"},
		"password in secure.yaml": {auth: me, secure: clouds("auth: {password: " + password + "}")},
		"all in secure.yaml":      {secure: clouds(withPassword(o.URL, password)...)},
		"others in secure.yaml":   {auth: withMe, secure: "clouds: {theirs: {auth: {password: x}}}"},
		"empty secure.yaml":       {auth: withMe, secure: " \n"},
		"application credential":  {auth: "application_credential_id: ours-app, " + withSecret, authType: "v3applicationcredential"},
		"its secret apart":        {auth: "application_credential_id: ours-app", secure: clouds("auth: {" + withSecret + "}")},
		"by name and user":        {auth: "application_credential_name: ours, " + withSecret + ", " + user},
		"by name and user's ID":   {auth: "application_credential_name: ours, " + withSecret + ", user_id: ours-user"},
		"beside a password":       {auth: "application_credential_id: ours-app, " + withSecret + ", username: me, password: x", authType: "v3applicationcredential"},
		"token":                   {auth: "token: token-" + secret + "-1", authType: "token"},
		"token, for a project":    {auth: "token: token-" + secret + "-1, " + me, authType: "v3token"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloudOf(t, o)
			for _, url := range []string{o.URL, o.URL + "/v3/"} {
				c.use("auth_type: "+test.authType, "auth: {auth_url: '"+url+"', "+test.auth+"}")
				if test.secure != "" {
					c.write("secure.yaml", test.secure)
				}
				c.connect(openstack.Options{})
				c.wantLogins(0)
				c.wantLogin(1)
			}
		})
	}
}

// TestCatalog: Neutron is found in the catalog, or the error lists what there is.
func TestCatalog(t *testing.T) {
	o := startOpenStack(t, embedded.Options{})
	at := keystone.Endpoint
	only := func(url string) []any { return []any{keystone.Service(at("public", "R", url))} }
	three := []any{
		object{"type": "compute", "endpoints": []any{at("public", "RegionOne", "http://127.0.0.1:1")}},
		keystone.Service(at("public", "RegionOne", "http://127.0.0.1:1"), at("internal", "RegionOne", o.network), at("public", "RegionTwo", o.network+"/v2.0")),
	}
	for name, test := range map[string]struct {
		catalog     []any
		lines       []string
		environment map[string]string
		want        string // the error
	}{
		"by region":          {catalog: three, lines: []string{"region_name: RegionTwo"}},
		"by interface":       {catalog: three, lines: []string{"interface: internal"}},
		"by endpoint_type":   {catalog: three, lines: []string{"endpoint_type: internalURL"}},
		"by the environment": {catalog: three, lines: []string{"region_name: RegionNine", "interface: admin"}, environment: map[string]string{"OS_REGION_NAME": "RegionOne", "OS_INTERFACE": "internal"}},
		"with a slash":       {catalog: only(o.network + "/")},
		"with a version":     {catalog: only(o.network + "/v2.0/")},
		"region by its ID":   {catalog: []any{keystone.Service(object{"interface": "public", "region_id": "R", "url": o.network})}, lines: []string{"region_name: R"}},
		"no such region":     {three, []string{"region_name: RegionNine"}, nil, `its catalog has no network service with interface public in region "RegionNine"; it has internal in RegionOne, public in RegionOne, public in RegionTwo`},
		"no such interface":  {three, []string{"region_name: RegionTwo", "interface: admin"}, nil, `no network service with interface admin in region "RegionTwo"; it has`},
		"no region":          {three, nil, nil, "network services in the regions RegionOne, RegionTwo; set region_name to one of them"},
		"no network":         {three[:1], nil, nil, "no network service; check that auth_url is the one of the right cloud"},
		"empty":              {[]any{}, nil, nil, "no network service;"},
		"a long region":      {[]any{keystone.Service(at("public", strings.Repeat("r", 255), o.network))}, nil, nil, "its region and project ID have more than 253 bytes"},
		"not a URL":          {only("neutron:9696"), nil, nil, "the address of the network service in its catalog must begin with http:// or https://"},
		"with a password":    {only("http://me:" + secret + "@neutron"), nil, nil, "in its catalog holds a user name or password"},
	} {
		t.Run(name, func(t *testing.T) {
			o.offer(test.catalog...)
			c := newCloudOf(t, o, append(test.lines, withPassword(o.URL, password)[1:]...)...)
			for key, value := range test.environment {
				t.Setenv(key, value)
			}
			if c.connect(openstack.Options{}); test.want == "" {
				c.wantList()
			} else {
				c.wantUnavailable("login: unavailable: the response from ", test.want)
			}
		})
	}
}

// TestNoTokenWithoutEncryption: the catalog of a Keystone with https cannot send the
// token to an http address on another machine, unless clouds.yaml names it.
func TestNoTokenWithoutEncryption(t *testing.T) {
	o := startOpenStack(t, embedded.Options{})
	encrypted := httptest.NewTLSServer(o.Config.Handler)
	t.Cleanup(encrypted.Close)
	const elsewhere = "http://neutron.example/networking"
	const refused = "its catalog has an http address for the network service (" + elsewhere + "), but auth_url begins with https://"
	for name, test := range map[string]struct {
		auth, catalog, override string
		proxied                 int
		want                    string // in the error; empty for success
	}{
		"http":                    {encrypted.URL, elsewhere, "", 0, refused},
		"http on this machine":    {encrypted.URL, o.network, "", 0, ""},
		"http, also for Keystone": {o.URL, elsewhere, "", 1, ""},
		"http, as configured":     {encrypted.URL, elsewhere, elsewhere + "/v2.0", 1, ""},
		"another address":         {encrypted.URL, elsewhere, o.network, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o.offer(keystone.Service(keystone.Endpoint("public", "RegionOne", test.catalog)))
			c := newCloudOf(t, o, withPassword(test.auth, password, "network_endpoint_override: "+test.override, "verify: false")...)
			proxied := 0
			c.connect(openstack.Options{Transport: func(next http.RoundTripper) http.RoundTripper {
				next.(*http.Transport).Proxy = func(r *http.Request) (*url.URL, error) {
					if r.URL.Hostname() != "neutron.example" {
						return nil, nil
					}
					proxied++
					return url.Parse(o.URL)
				}
				return next
			}})
			if test.want == "" {
				c.wantList()
			} else {
				c.wantUnavailable(test.want)
			}
			if proxied != test.proxied {
				t.Errorf("%d requests without encryption, want %d", proxied, test.proxied)
			}
		})
	}
}

// TestLoginFails: a failed login is described in the same words each time, without
// a secret, and Neutron gets no request.
func TestLoginFails(t *testing.T) {
	o := startOpenStack(t, embedded.Options{})
	address, free := strings.TrimPrefix(o.URL, "http://"), freeAddress(t)
	html, good := header("Content-Type", "text/html"), withPassword(o.URL, password)
	application := func(id string) []string {
		return []string{"auth: {auth_url: '" + o.URL + "', application_credential_id: " + id + ", application_credential_secret: " + secret + "}"}
	}
	unusable, noKeystone := "the response from "+address+" is unusable: ", " ("+address+" does not respond like a Keystone; check auth_url)"
	for name, test := range map[string]struct {
		lines []string
		fault http.HandlerFunc
		want  string
	}{
		"wrong password":     {withPassword(o.URL, "wrong-"+secret), nil, "401 Unauthorized: The request you have made requires authentication. (login to cloud ours of clouds.yaml)"},
		"wrong credential":   {application("gone"), nil, "401 Unauthorized: "},
		"deleted credential": {application("ours-app"), respondWith(404, nil, `{"error": {"code": 404, "title": "Not Found", "message": "Could not find Application Credential: app-id."}}`), "404 Not Found: Could not find Application Credential: app-id."},
		"expired token":      {[]string{"auth: {auth_url: '" + o.URL + "', token: over-" + secret + "}"}, nil, "401 Unauthorized: "},
		"wrong path":         {withPassword(o.URL+"/identity", password), nil, "404 Not Found: there is no /identity/v3/auth/tokens"},
		"wrong port":         {withPassword("http://"+free, password), nil, "dial tcp " + free + ": connect: connection refused"},
		"no such host":       {withPassword("http://nosuch.invalid:5000", password), nil, "lookup nosuch.invalid: "},
		"wrong scheme":       {withPassword("https://"+address, password), nil, address + ": http: server gave HTTP response to HTTPS client"},
		"500 in HTML":        {good, respondWith(500, html, "<html>"+secret), "500: Internal Server Error"},
		"overloaded":         {good, respondWith(503, header("Retry-After", "7"), ""), "503: Service Unavailable"},
		"rate limit":         {good, respondWith(429, header("Retry-After", "7"), ""), "429: Too Many Requests"},
		"HTML":               {good, respondWith(200, html, "<html>"), "200: OK" + noKeystone},
		"a redirect":         {good, respondWith(302, header("Location", o.network), ""), "302: Found" + noKeystone},
		"no JSON":            {good, respondWith(201, nil, "<html>"), unusable + "it is not the JSON of an OpenStack service"},
		"null":               {good, respondWith(201, header("X-Subject-Token", secret), "null"), unusable},
		"other JSON":         {good, respondWith(201, header("X-Subject-Token", secret), `{"token": []}`), unusable},
		"no token":           {good, respondWith(201, nil, `{"token": {"catalog": []}}`), unusable + "it has no token"},
		"no project":         {good, respondWith(201, header("X-Subject-Token", secret), `{"token": {"catalog": []}}`), unusable + "its token has no project, so lists would have the networks of all projects; set project_name"},
		"a project, no ID":   {good, respondWith(201, header("X-Subject-Token", secret), `{"token": {"catalog": [], "project": {"name": "ours"}}}`), unusable + "its token has no project"},
		"cut off":            {good, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, address + " closed the connection without a response"},
		"an echo":            {good, respondWith(400, nil, `{"error": {"title": "Bad Request", "message": "`+password+` is not of type 'object' (req-652e9646-3e55-4d17-8cee-f3c3c5cdc1ed)"}}`), "400 Bad Request: *** is not of type 'object'"},
	} {
		t.Run(name, func(t *testing.T) {
			o.fail(test.fault)
			before, c := o.sent(), newCloudOf(t, o, test.lines...)
			texts := map[string]bool{}
			for op, request := range requests {
				err := request(t.Context(), c.client)
				wantError(t, op, err, neutron.ErrUnavailable, "login: unavailable: "+test.want)
				noSecrets(t, err)
				var failure *neutron.Error
				_ = errors.As(err, &failure)
				if at := failure.Keystone; !strings.HasPrefix(at, "http") || !strings.HasSuffix(at, "/v3") {
					t.Errorf("%s: the address of Keystone is %q", op, at)
				}
				texts[fmt.Sprint(err)] = true
				c.clock.pass(time.Minute)
			}
			if identity, err := c.client.Cloud(t.Context()); err == nil {
				t.Errorf("Cloud() = %q, want an error", identity)
			}
			if len(texts) != 1 || o.sent() != before {
				t.Errorf("the texts are %v, or there were requests to Neutron", texts)
			}
		})
	}
}

// TestLoginRetry: a failed login is not repeated for each request, but after a
// while, as Keystone requests.
func TestLoginRetry(t *testing.T) {
	for header, want := range map[string]struct{ inError, quiet time.Duration }{
		"":      {0, 2 * time.Second},
		"30":    {30 * time.Second, 30 * time.Second},
		"86400": {time.Hour, 2 * time.Minute},
	} {
		t.Run("Retry-After "+header, func(t *testing.T) {
			c := newCloud(t)
			c.fail(respondWith(503, http.Header{"Retry-After": {header}}, ""))
			for range 10 {
				var failure *neutron.Error
				if err := c.list(); !errors.As(err, &failure) || failure.RetryAfter != want.inError {
					t.Fatalf("error is %+v, want one with RetryAfter %v", failure, want.inError)
				}
			}
			c.wantLogins(1)
			c.fail(nil)
			c.clock.pass(want.quiet - 1)
			c.wantUnavailable()
			c.wantLogins(0)
			c.clock.pass(1)
			c.wantLogin(1)
		})
	}
}

// TestLoginBackoff: 20 Networks with a wrong password cause a few logins, and a changed
// file is tried at once.
func TestLoginBackoff(t *testing.T) {
	c := newCloud(t, withPassword("KEYSTONE", "wrong-"+secret)...)
	during := func(duration time.Duration) (logins int) {
		for end := c.clock.passed + duration; c.clock.passed < end; c.clock.pass(time.Second) {
			c.wantUnavailable()
		}
		return c.takeLogins()
	}
	if first, later := during(30*time.Second), during(30*time.Minute); first != 4 || later < 15 || later > 18 {
		t.Errorf("there were %d logins in 30 s and %d in the next 30 min, want 4 and 15 to 18", first, later)
	}
	c.usePassword(nextPassword)
	if n := during(time.Second); n != 1 {
		t.Errorf("%d logins follow a change of the file, want 1", n)
	}
	c.usePassword(password)
	c.wantLogin(1)

	c.SetPassword(nextPassword)
	c.Revoke()
	if n := during(5 * time.Second); n != 2 {
		t.Errorf("%d logins follow in 5 s after one that succeeded, want 2", n)
	}
}

// TestSharedLogin: callers that meet an expired token share one login, and each
// request is applied once.
func TestSharedLogin(t *testing.T) {
	c := newCloud(t)
	const many = 50
	for range 3 {
		c.Revoke()
		c.Neutron.ResetRequests()
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				if err := requests["create network"](t.Context(), c.client); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		c.wantLogins(1)
		if got := len(c.Neutron.Requests()); got != many {
			t.Errorf("%d networks were created, want %d", got, many)
		}
	}
}

// TestRepeatedRequest: a request whose token is rejected is repeated unchanged. Only 401
// proves that a request was not applied.
func TestRepeatedRequest(t *testing.T) {
	c := newCloud(t)
	var sent []string
	c.connect(openstack.Options{Transport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !openstack.IsLogin(r) {
				body, _ := r.GetBody()
				text, _ := io.ReadAll(body)
				sent = append(sent, fmt.Sprint(r.Method, " ", r.Header["If-Match"], " ", string(text)))
			}
			return next.RoundTrip(r)
		})
	}})
	network, err := c.client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x"})
	must(t, err)
	c.Revoke()
	sent = nil
	_, err = c.client.UpdateNetwork(t.Context(), network.ID, neutron.NetworkUpdate{Name: "y", Revision: network.Revision})
	must(t, err)
	want := fmt.Sprintf(`PUT [revision_number=%d] {"network":{"name":"y"}}`, network.Revision)
	if diff := cmp.Diff([]string{want, want}, sent); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	c.takeLogins()
	for name, fault := range map[string]embedded.Fault{
		"forbidden": {Status: 403}, "broken": {Status: 500}, "unavailable": {Status: 503}, "lost": {DropAnswer: true},
		"a redirect": {Status: 307, Header: header("Location", c.network)},
	} {
		remove, before := c.Neutron.Inject(fault), c.sent()
		err := requests["create network"](t.Context(), c.client)
		wantError(t, name, err, neutron.ErrUnavailable, "create network: unavailable: ")
		if n := c.sent() - before; n != 1 {
			t.Errorf("%s: %d requests, want 1", name, n)
		}
		remove()
	}
	c.wantLogins(0)
}

// TestEcho: a server that repeats the token or password puts neither into an error, in no
// form.
func TestEcho(t *testing.T) {
	const odd = `p"ä&<%/+ \` + secret // its encodings differ from it
	c := newCloud(t, withPassword("KEYSTONE", odd)...)
	c.SetPassword(odd)
	c.wantList()
	inJSON, _ := json.Marshal(odd)
	for name, form := range map[string]string{
		"as it is":                odd,
		"the token":               "token-" + secret + "-1",
		"JSON":                    string(inJSON),
		"JSON in JSON":            strings.Trim(strconv.Quote(odd), `"`),
		"a query":                 url.QueryEscape(odd),
		"a query in lower case":   regexp.MustCompile(`%..`).ReplaceAllStringFunc(url.QueryEscape(odd), strings.ToLower),
		"a path":                  url.PathEscape(odd),
		"HTML":                    html.EscapeString(odd),
		"base64":                  base64.StdEncoding.EncodeToString([]byte(odd)),
		"base64 in a URL":         base64.URLEncoding.EncodeToString([]byte(odd)),
		"base64 with user":        base64.StdEncoding.EncodeToString([]byte("me:" + odd + ":x")),
		"base64 with a":           base64.StdEncoding.EncodeToString([]byte("a" + odd + ":x")),
		"hex":                     hex.EncodeToString([]byte(odd)),
		"with control characters": odd[:len(odd)-3] + "\x00" + odd[len(odd)-3:],
	} {
		t.Run(name, func(t *testing.T) {
			body, _ := json.Marshal(object{"NeutronError": object{"type": "X", "message": "begin " + form + " end"}})
			c.Neutron.Inject(embedded.Fault{Status: 400, Body: string(body), Times: 1})
			err := c.list()
			wantError(t, "a list", err, neutron.ErrRefused, ": 400 X: begin ", "***", " end")
			_, text, _ := strings.Cut(err.Error(), "begin ")
			if rest := strings.ReplaceAll(strings.TrimSuffix(text, " end"), "***", ""); len(rest) > 12 {
				t.Errorf("the message has more than the secret's frame: %q", rest)
			}
		})
	}
}

// TestEchoOfFormerToken: a token that was in use when a request was sent is a secret when its
// response arrives, although there is a new one.
func TestEchoOfFormerToken(t *testing.T) {
	c := newCloud(t)
	c.wantList()
	c.Neutron.Inject(embedded.Fault{Status: 400, Times: 1, Delay: 300 * time.Millisecond,
		Body: `{"NeutronError": {"type": "X", "message": "token-` + secret + `-1"}}`})
	before, failed := c.sent(), make(chan error)
	go func() { failed <- c.list() }()
	for range time.Tick(time.Millisecond) {
		if c.sent() > before {
			break
		}
	}
	c.Revoke()
	c.wantLogin(2) // with the first one
	wantError(t, "the list", <-failed, neutron.ErrRefused, "400 X: ***")
}

// TestHostileText: a message of a server is one line without control characters,
// and has a bounded length.
func TestHostileText(t *testing.T) {
	const hostile = "one\r\ntwo \x1b[31mred\x1b[0m \u202ereversed\u0007\u0000"
	for _, message := range []string{hostile, strings.Repeat(hostile, 1000)} {
		neutrons, _ := json.Marshal(object{"NeutronError": object{"type": message, "message": message}})
		keystones, _ := json.Marshal(object{"error": object{"title": message, "message": message}})
		c := newCloud(t)
		c.fail(respondWith(http.StatusForbidden, nil, string(keystones)))
		errs := []error{c.list()}
		c.fail(nil)
		c.clock.pass(time.Minute)
		c.Neutron.Inject(embedded.Fault{Status: 400, Body: string(neutrons)})
		for _, err := range append(errs, c.list()) {
			text := fmt.Sprint(err)
			if !strings.Contains(text, "one two [31mred[0m reversed") || len(text) > 2000 ||
				strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("error is %.2000q", text)
			}
		}
	}
}

// TestLoginTimeout: a login counts towards the time limit of its request.
func TestLoginTimeout(t *testing.T) {
	c := newCloud(t)
	c.connect(openstack.Options{Timeout: 50 * time.Millisecond})
	c.fail(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for range 3 { // the first one waits
		c.wantUnavailable("login: unavailable: timed out: no response from " + strings.TrimPrefix(c.URL, "http://") + " within 50ms")
	}
	c.wantLogins(1)
	c.fail(nil)
	c.clock.pass(time.Minute)
	defer c.Neutron.Inject(embedded.Fault{Delay: time.Hour})()
	c.wantUnavailable("list networks: unavailable: timed out: no response from " +
		strings.TrimPrefix(c.URL, "http://") + " within 50ms")
}

// TestCallerGivesUp: a caller that gives up does not fail the login for others.
func TestCallerGivesUp(t *testing.T) {
	c := newCloud(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	c.Change(func(s *keystone.Settings) {
		s.Fault = func(http.ResponseWriter, *http.Request) bool {
			close(arrived)
			<-release
			return false
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	for range 2 {
		go func() { failed <- requests["list networks"](ctx, c.client) }()
	}
	<-arrived
	var others sync.WaitGroup
	for range 5 {
		others.Go(c.wantList)
	}
	cancel()
	for range 2 {
		err := <-failed
		wantError(t, "one that gives up", err, neutron.ErrUnavailable, "list networks: unavailable: context canceled")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("errors.Is(%v, context.Canceled) is false", err)
		}
	}
	close(release)
	others.Wait()
	c.wantLogins(1)
}

// TestCloudText: the client describes its cloud, without secrets.
func TestCloudText(t *testing.T) {
	c := newCloud(t, withPassword("KEYSTONE", password, "verify: false")...)
	want := "cloud ours at " + c.URL + "/v3, interface public, region RegionOne, certificates NOT verified, "
	if got := fmt.Sprint(c.client); got != want+"not logged in" {
		t.Errorf("the client is %q, want %q", got, want+"not logged in")
	}
	c.wantList()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, c.client); got != want+"Neutron at "+c.network {
			t.Errorf("with %s, the client is %q", verb, got)
		}
	}
	if got := fmt.Sprintf("%#v", connect(t, "http://127.0.0.1:9696/v2.0")); got != "http://127.0.0.1:9696" {
		t.Errorf("a client without a login is %q", got)
	}
}
