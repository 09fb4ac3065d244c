package openstack_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
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

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/neutrontest"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestCloudContract: the contract holds with a login, also with tokens that are
// valid for two requests, so that every kind of request meets an expired one.
func TestCloudContract(t *testing.T) {
	for name, uses := range map[string]int{"one token": 0, "short tokens": 2} {
		t.Run(name, func(t *testing.T) {
			neutrontest.TestClient(t, func(t *testing.T) neutrontest.Cloud {
				k := startKeystone(t, embedded.Options{MaxPage: 2})
				if !strings.Contains(t.Name(), "concurrent") { // there, other callers could use up a new token
					k.set(func() { k.uses = uses })
				}
				useFiles(t).write("clouds.yaml", clouds(withPassword(k.URL, password)...))
				return neutrontest.Cloud{Client: connectCloud(t), Endpoint: k.neutron.URL(), SetQuotas: true}
			})
		})
	}
}

// TestOnlyOurProject: lists are limited to the token's project, whatever others
// write into their networks, and whatever IDs they are known by.
func TestOnlyOurProject(t *testing.T) {
	k := startKeystone(t, embedded.Options{MaxPage: 1})
	useFiles(t).write("clouds.yaml", clouds(withPassword(k.URL, password)...))
	client := connectCloud(t)
	marker := neutron.Owner{Cluster: "c", Namespace: "default", Name: "example"}.Marker()
	ours := map[string]bool{}
	for range 2 {
		network, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "default/example", Description: marker})
		if err != nil {
			t.Fatal(err)
		}
		ours[network.ID] = true
	}
	post := func(kind, attributes string) (id string) {
		t.Helper()
		response, err := http.Post(k.neutron.URL()+"/v2.0/"+kind+"s", "application/json", strings.NewReader(`{"`+kind+`": {"tenant_id": "theirs", `+attributes+`}}`))
		if err != nil || response.StatusCode != http.StatusCreated {
			t.Fatalf("creating a %s of another project: %v, %v", kind, response, err)
		}
		defer func() { _ = response.Body.Close() }()
		var created map[string]struct{ ID string }
		if err := json.NewDecoder(response.Body).Decode(&created); err != nil {
			t.Fatal(err)
		}
		return created[kind].ID
	}
	theirs := post("network", `"shared": true, "name": "default/example", "description": "`+marker+`"`)

	for _, filter := range []neutron.NetworkFilter{{}, {Name: "default/example"}} {
		found, err := client.Networks(t.Context(), filter)
		if err != nil || len(found) != 2 || !ours[found[0].ID] || !ours[found[1].ID] {
			t.Errorf("Networks(%+v) = %v, %v, want ours", filter, found, err)
		}
	}
	if found, err := client.Networks(t.Context(), neutron.NetworkFilter{ID: theirs}); err != nil || len(found) != 0 {
		t.Errorf("by its ID: %v, %v", found, err)
	}

	for _, shared := range []bool{false, true} {
		id := post("subnetpool", fmt.Sprintf(`"name": "pool-%v", "prefixes": ["10.0.0.0/8"], "shared": %v`, shared, shared))
		for _, filter := range []neutron.SubnetPoolFilter{{ID: id}, {Name: fmt.Sprint("pool-", shared)}} {
			found, err := client.SubnetPools(t.Context(), filter)
			if err != nil || (len(found) == 1) != shared {
				t.Errorf("a subnet pool of another project, shared: %v: SubnetPools(%+v) = %v, %v", shared, filter, found, err)
			}
		}
	}
}

// TestLogin: each way to log in takes one login, whatever the form of auth_url.
func TestLogin(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	k.set(func() { k.tokens["given-"+secret] = 0 })
	project := "project_name: ours, project_domain_name: Default"
	for name, test := range map[string]struct {
		auth   string
		more   []string
		secure string
	}{
		"password":                {auth: "username: me, user_domain_name: Default, password: " + password + ", " + project},
		"domain by ID":            {auth: "username: me, user_domain_id: default, password: " + password + ", project_name: ours, project_domain_id: default"},
		"one domain":              {auth: "username: me, domain_name: Default, password: " + password + ", project_name: ours"},
		"project by ID":           {auth: "username: me, user_domain_name: Default, password: " + password + ", project_id: project-id, project_domain_name: Default"},
		"user by ID":              {auth: "user_id: user-id, user_domain_name: Default, password: " + password + ", " + project},
		"v3password":              {auth: "username: me, user_domain_name: Default, password: " + password + ", token: x, " + project, more: []string{"auth_type: v3password"}},
		"password in secure.yaml": {auth: "username: me, user_domain_name: Default, " + project, secure: clouds("auth: {password: " + password + "}")},
		"all in secure.yaml":      {secure: clouds(withPassword(k.URL, password)...)},
		"others in secure.yaml":   {auth: "username: me, user_domain_name: Default, password: " + password + ", " + project, secure: "clouds: {theirs: {auth: {password: x}}}"},
		"empty secure.yaml":       {auth: "username: me, user_domain_name: Default, password: " + password + ", " + project, secure: " \n"},
		"application credential":  {auth: "application_credential_id: app-id, application_credential_secret: " + appSecret, more: []string{"auth_type: v3applicationcredential"}},
		"its secret apart":        {auth: "application_credential_id: app-id", secure: clouds("auth: {application_credential_secret: " + appSecret + "}")},
		"by name and user":        {auth: "application_credential_name: app, application_credential_secret: " + appSecret + ", username: me, user_domain_name: Default"},
		"by name and user's ID":   {auth: "application_credential_name: app, application_credential_secret: " + appSecret + ", user_id: user-id"},
		"beside a password":       {auth: "application_credential_id: app-id, application_credential_secret: " + appSecret + ", username: me, password: x", more: []string{"auth_type: v3applicationcredential"}},
		"token":                   {auth: "token: given-" + secret, more: []string{"auth_type: token"}},
		"token, for a project":    {auth: "token: given-" + secret + ", username: me, user_domain_name: Default, " + project, more: []string{"auth_type: v3token"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := useFiles(t)
			for _, url := range []string{k.URL, k.URL + "/v3/"} {
				f.write("clouds.yaml", clouds(append(test.more, "auth: {auth_url: '"+url+"', "+test.auth+"}")...))
				if test.secure != "" {
					f.write("secure.yaml", test.secure)
				}
				client := connectCloud(t)
				k.wantLogins(t, 0)
				wantList(t, client)
				wantList(t, client)
				k.wantLogins(t, 1)
			}
		})
	}
}

// TestCatalog: Neutron is found in the catalog, or the error lists what there is.
func TestCatalog(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	url := k.front.URL
	three := []object{
		{"type": "compute", "endpoints": []object{endpointAt("public", "RegionOne", "http://127.0.0.1:1")}},
		networkAt(endpointAt("public", "RegionOne", url), endpointAt("internal", "RegionOne", url+"/networking"), endpointAt("public", "RegionTwo", url+"/v2.0")),
	}
	for name, test := range map[string]struct {
		catalog     []object
		lines       []string
		environment map[string]string
		want        string // the error
	}{
		"by region":               {catalog: three, lines: []string{"region_name: RegionTwo"}},
		"by interface":            {catalog: three, lines: []string{"interface: internal"}},
		"by endpoint_type":        {catalog: three, lines: []string{"endpoint_type: internalURL"}},
		"by the environment":      {catalog: three, lines: []string{"region_name: RegionNine", "interface: admin"}, environment: map[string]string{"OS_REGION_NAME": "RegionOne", "OS_INTERFACE": "internal"}},
		"with a slash":            {catalog: []object{networkAt(endpointAt("public", "R", url+"/"))}},
		"with a version":          {catalog: []object{networkAt(endpointAt("public", "R", url+"/v2.0/"))}},
		"with a path":             {catalog: []object{networkAt(endpointAt("public", "R", url+"/networking/"))}},
		"with a path and version": {catalog: []object{networkAt(endpointAt("public", "R", url+"/networking/v2.0"))}},
		"region by its ID":        {catalog: []object{networkAt(object{"interface": "public", "region_id": "R", "url": url})}, lines: []string{"region_name: R"}},
		"no such region": {
			three, []string{"region_name: RegionNine"}, nil,
			`its catalog has no network service with interface public in region "RegionNine"; it has internal in RegionOne, public in RegionOne, public in RegionTwo`,
		},
		"no such interface": {three, []string{"region_name: RegionTwo", "interface: admin"}, nil, `no network service with interface admin in region "RegionTwo"; it has`},
		"no region":         {three, nil, nil, "network services in the regions RegionOne, RegionTwo; set region_name to one of them"},
		"no network":        {three[:1], nil, nil, "no network service; check that auth_url is the one of the right cloud"},
		"empty":             {[]object{}, nil, nil, "no network service;"},
		"not a URL":         {[]object{networkAt(endpointAt("public", "R", "neutron:9696"))}, nil, nil, "the address of the network service in its catalog must begin with http:// or https://"},
		"with a password":   {[]object{networkAt(endpointAt("public", "R", "http://me:"+secret+"@neutron"))}, nil, nil, "in its catalog holds a user name or password"},
	} {
		t.Run(name, func(t *testing.T) {
			f := useFiles(t)
			for key, value := range test.environment {
				t.Setenv(key, value)
			}
			f.write("clouds.yaml", clouds(append(test.lines, withPassword(k.URL, password)[1:]...)...))
			k.set(func() { k.catalog = test.catalog })
			err := list(t, connectCloud(t))
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, "a list", err, neutron.ErrUnavailable, "login: unavailable: the answer of ", test.want)
		})
	}
}

// TestNoTokenWithoutEncryption: the catalog of a Keystone with https cannot send the
// token to an http address on another machine, unless clouds.yaml names it.
func TestNoTokenWithoutEncryption(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	encrypted := httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(encrypted.Close)
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied++
		k.serveNeutron(w, r)
	}))
	t.Cleanup(proxy.Close)
	const refused = "its catalog has an http address for the network service (http://neutron.example), but auth_url begins with https://"
	for name, test := range map[string]struct {
		auth, catalog string
		lines         []string
		proxied       int
		want          string // in the error; empty for success
	}{
		"http":                    {encrypted.URL, "http://neutron.example", nil, 0, refused},
		"http on this machine":    {encrypted.URL, k.front.URL, nil, 0, ""},
		"http, also for Keystone": {k.URL, "http://neutron.example", nil, 1, ""},
		"http, as configured":     {encrypted.URL, "http://neutron.example", []string{"network_endpoint_override: http://neutron.example/v2.0"}, 1, ""},
		"another address":         {encrypted.URL, "http://neutron.example", []string{"network_endpoint_override: " + k.front.URL}, 0, ""},
		"not an address":          {encrypted.URL, k.front.URL, []string{"network_endpoint_override: neutron:9696"}, 0, "network_endpoint_override must begin with http:// or https://"},
		"a list":                  {encrypted.URL, k.front.URL, []string{"network_endpoint_override: []"}, 0, "network_endpoint_override is not a text"},
	} {
		t.Run(name, func(t *testing.T) {
			k.set(func() { k.catalog = []object{networkAt(endpointAt("public", "RegionOne", test.catalog))} })
			useFiles(t).write("clouds.yaml", clouds(withPassword(test.auth, password, append(test.lines, "verify: false")...)...))
			proxied = 0
			client, err := openstack.NewFromCloud("ours", openstack.WithTransport(func(next http.RoundTripper) http.RoundTripper {
				next.(*http.Transport).Proxy = func(r *http.Request) (*url.URL, error) {
					if r.URL.Hostname() == "neutron.example" {
						return url.Parse(proxy.URL)
					}
					return nil, nil
				}
				return next
			}))
			if err == nil {
				_, err = client.Networks(t.Context(), neutron.NetworkFilter{})
			}
			if proxied != test.proxied || test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%d requests without encryption, error %v; want %d, %q", proxied, err, test.proxied, test.want)
			}
			noSecrets(t, err)
		})
	}
}

// TestLoginFails: a failed login is described in the same words each time, without
// a secret, and Neutron gets no request.
func TestLoginFails(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	address := strings.TrimPrefix(k.URL, "http://")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := listener.Addr().String()
	_ = listener.Close()
	html, good := header("Content-Type", "text/html"), withPassword(k.URL, password)
	application := func(id string) []string {
		return []string{"auth: {auth_url: '" + k.URL + "', application_credential_id: " + id + ", application_credential_secret: " + secret + "}"}
	}
	unusable, noKeystone := "the answer of "+address+" is unusable: ", " ("+address+" does not answer like a Keystone; check auth_url)"
	for name, test := range map[string]struct {
		lines []string
		fault http.HandlerFunc
		want  string
	}{
		"wrong password":     {withPassword(k.URL, "wrong-"+secret), nil, "401 Unauthorized: The request you have made requires authentication. (login to cloud ours of clouds.yaml)"},
		"wrong credential":   {application("gone"), nil, "401 Unauthorized: "},
		"deleted credential": {application("app-id"), answerWith(404, nil, `{"error": {"code": 404, "title": "Not Found", "message": "Could not find Application Credential: app-id."}}`), "404 Not Found: Could not find Application Credential: app-id."},
		"expired token":      {[]string{"auth: {auth_url: '" + k.URL + "', token: over-" + secret + "}"}, nil, "401 Unauthorized: "},
		"wrong path":         {withPassword(k.URL+"/identity", password), nil, "404 Not Found: there is no /identity/v3/auth/tokens"},
		"wrong port":         {withPassword("http://"+free, password), nil, "dial tcp " + free + ": connect: connection refused"},
		"no such host":       {withPassword("http://nosuch.invalid:5000", password), nil, "lookup nosuch.invalid: "},
		"wrong scheme":       {withPassword("https://"+address, password), nil, address + ": http: server gave HTTP response to HTTPS client"},
		"500 in HTML":        {good, answerWith(500, html, "<html>"+secret), "500: Internal Server Error"},
		"overloaded":         {good, answerWith(503, header("Retry-After", "7"), ""), "503: Service Unavailable"},
		"rate limit":         {good, answerWith(429, header("Retry-After", "7"), ""), "429: Too Many Requests"},
		"HTML":               {good, answerWith(200, html, "<html>"), "200: OK" + noKeystone},
		"a redirect":         {good, answerWith(302, header("Location", k.front.URL), ""), "302: Found" + noKeystone},
		"no JSON":            {good, answerWith(201, nil, "<html>"), unusable + "it is not the JSON of an OpenStack service"},
		"null":               {good, answerWith(201, header("X-Subject-Token", secret), "null"), unusable},
		"other JSON":         {good, answerWith(201, header("X-Subject-Token", secret), `{"token": []}`), unusable},
		"no token":           {good, answerWith(201, nil, `{"token": {"catalog": []}}`), unusable + "it has no token"},
		"cut off":            {good, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, address + " closed the connection without an answer"},
		"an echo":            {good, answerWith(400, nil, `{"error": {"title": "Bad Request", "message": "`+password+` is not of type 'object' (req-652e9646-3e55-4d17-8cee-f3c3c5cdc1ed)"}}`), "400 Bad Request: *** is not of type 'object'"},
	} {
		t.Run(name, func(t *testing.T) {
			useFiles(t).write("clouds.yaml", clouds(test.lines...))
			k.fail(test.fault)
			watch := &clock{}
			client := connectCloud(t, openstack.WithClock(watch.Now))
			texts := map[string]bool{}
			for op, request := range requests {
				err := request(t.Context(), client)
				wantError(t, op, err, neutron.ErrUnavailable, "login: unavailable: "+test.want)
				noSecrets(t, err)
				var failure *neutron.Error
				_ = errors.As(err, &failure)
				if at := failure.Keystone; !strings.HasPrefix(at, "http") || !strings.HasSuffix(at, "/v3") {
					t.Errorf("%s: the address of Keystone is %q", op, at)
				}
				texts[fmt.Sprint(err)] = true
				watch.pass(time.Minute)
			}
			if len(texts) != 1 || len(k.neutron.Requests()) != 0 {
				t.Errorf("the texts are %v, the requests to Neutron %v", texts, k.neutron.Requests())
			}
		})
	}
}

// TestTokenWithoutProject: a token for a domain, or for the whole system, sends no
// request to Neutron, which would list the networks of all projects.
func TestTokenWithoutProject(t *testing.T) {
	for name, project := range map[string]any{"none": nil, "without an ID": object{"name": "ours"}} {
		t.Run(name, func(t *testing.T) {
			k, client := newCloud(t)
			k.set(func() { k.project = project })
			const want = "its token has no project, so lists would have the networks of all projects; set project_name"
			wantError(t, "a list", list(t, client), neutron.ErrUnavailable, "login: unavailable: the answer of ", " is unusable: "+want)
			if identity, err := client.Cloud(t.Context()); err == nil {
				t.Errorf("Cloud() = %q, want an error", identity)
			}
			if asked := k.requests(); len(asked) != 0 {
				t.Errorf("%d requests to Neutron were sent", len(asked))
			}
		})
	}
}

// TestLoginRetry: a failed login is not repeated for each request, but after a
// while.
func TestLoginRetry(t *testing.T) {
	for name, test := range map[string]struct {
		fault http.HandlerFunc
		wait  time.Duration // RetryAfter of the error
		quiet time.Duration
	}{
		"unavailable":         {answerWith(500, nil, ""), 0, 2 * time.Second},
		"Retry-After":         {answerWith(503, header("Retry-After", "30"), ""), 30 * time.Second, 30 * time.Second},
		"Retry-After a day":   {answerWith(503, header("Retry-After", "86400"), ""), time.Hour, 2 * time.Minute},
		"a rejected password": {answerWith(401, nil, ""), 0, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			watch := &clock{}
			k, client := newCloud(t, openstack.WithClock(watch.Now))
			k.wantLogins(t, 0)
			k.fail(test.fault)
			for range 10 {
				var failure *neutron.Error
				if err := list(t, client); !errors.As(err, &failure) || failure.RetryAfter != test.wait {
					t.Fatalf("error is %+v, want one with RetryAfter %v", failure, test.wait)
				}
			}
			k.wantLogins(t, 1)
			k.fail(nil)
			watch.pass(test.quiet - 1)
			wantError(t, "too early", list(t, client), neutron.ErrUnavailable)
			k.wantLogins(t, 0)
			watch.pass(1)
			wantList(t, client)
			k.wantLogins(t, 1)
		})
	}
}

// TestLoginBackoff: 20 Networks with a wrong password cause a few logins, and a changed
// file is tried at once.
func TestLoginBackoff(t *testing.T) {
	k, f, watch := startKeystone(t, embedded.Options{}), useFiles(t), &clock{}
	f.write("clouds.yaml", clouds(withPassword(k.URL, "wrong-"+secret)...))
	client := connectCloud(t, openstack.WithClock(watch.Now))
	during := func(duration time.Duration) (logins int) {
		for end := watch.passed + duration; watch.passed < end; watch.pass(100 * time.Millisecond) {
			if list(t, client) == nil {
				t.Fatal("a list succeeds")
			}
		}
		k.set(func() { logins, k.logins = k.logins, 0 })
		return logins
	}
	if first, later := during(30*time.Second), during(30*time.Minute); first != 4 || later < 15 || later > 18 {
		t.Errorf("there were %d logins in 30 s and %d in the next 30 min, want 4 and 15 to 18", first, later)
	}
	f.write("clouds.yaml", clouds(withPassword(k.URL, "also-wrong-"+secret)...))
	if n := during(time.Second); n != 1 {
		t.Errorf("%d logins follow a change of the file, want 1", n)
	}
	f.write("clouds.yaml", clouds(withPassword(k.URL, password)...))
	wantList(t, client)
	k.wantLogins(t, 1)

	k.set(func() { k.password = "" })
	k.revoke()
	if n := during(5 * time.Second); n != 2 {
		t.Errorf("%d logins follow in 5 s after one that succeeded, want 2", n)
	}
}

// TestSharedLogin: callers that meet an expired token share one login, and each
// request is applied once.
func TestSharedLogin(t *testing.T) {
	k, client := newCloud(t)
	const many = 50
	for range 3 {
		k.revoke()
		k.neutron.ResetRequests()
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				created, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: fmt.Sprint("n", i), Description: "d"})
				if err != nil || created.Name != fmt.Sprint("n", i) || created.Description != "d" {
					t.Errorf("CreateNetwork = %+v, %v", created, err)
				}
			})
		}
		all.Wait()
		k.wantLogins(t, 1)
		if got := len(k.neutron.Requests()); got != many {
			t.Errorf("%d networks were created, want %d", got, many)
		}
	}
}

// TestRepeatedRequest: a request whose token is rejected is repeated unchanged.
func TestRepeatedRequest(t *testing.T) {
	k, client := newCloud(t)
	network, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	k.revoke()
	k.requests()
	if _, err = client.UpdateNetwork(t.Context(), network.ID, neutron.NetworkUpdate{Name: "y", Revision: network.Revision}); err != nil {
		t.Fatal(err)
	}
	twice := k.requests()
	if len(twice) != 2 || twice[0].body != twice[1].body || twice[0].body == "" {
		t.Fatalf("the requests are %+v, want two that are equal", twice)
	}
	for _, r := range twice {
		if host := strings.TrimPrefix(k.front.URL, "http://"); r.Host != host || r.Header.Get("If-Match") != fmt.Sprint("revision_number=", network.Revision) ||
			!strings.HasPrefix(r.UserAgent(), "samplecrd-controller/") {
			t.Errorf("Host is %q, the headers are %v", r.Host, r.Header)
		}
	}
}

// TestNotRepeated: only 401 proves that a request was not applied.
func TestNotRepeated(t *testing.T) {
	k, client := newCloud(t)
	wantList(t, client)
	k.wantLogins(t, 1)
	for name, fault := range map[string]embedded.Fault{
		"forbidden": {Status: 403}, "broken": {Status: 500}, "unavailable": {Status: 503}, "lost": {DropAnswer: true}, "a redirect": {Status: 307, Header: header("Location", k.front.URL)},
	} {
		remove := k.neutron.Inject(fault)
		k.requests()
		_, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x"})
		wantError(t, name, err, neutron.ErrUnavailable, "create network: unavailable: ")
		if got := k.requests(); len(got) != 1 {
			t.Errorf("%s: %d requests, want 1", name, len(got))
		}
		remove()
	}
	k.wantLogins(t, 0)
}

// TestSharedFailure: callers that wait for one login share its failure.
func TestSharedFailure(t *testing.T) {
	k, client := newCloud(t)
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	k.fail(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { wantError(t, "a list", list(t, client), neutron.ErrUnavailable, "login: unavailable: 503") })
		if i == 0 {
			<-arrived
		}
	}
	close(release)
	all.Wait()
	k.wantLogins(t, 1)
}

// TestWithoutLogin: the error of a client without a login names the cure.
func TestWithoutLogin(t *testing.T) {
	k, _ := newCloud(t)
	for op, request := range requests {
		wantError(t, op, request(t.Context(), connect(t, k.front.URL)), neutron.ErrUnavailable,
			op+": unavailable: 401: Unauthorized (Neutron requires a login; name a cloud of clouds.yaml with -cloud)")
	}
}

// TestEcho: a server that repeats the token and password puts neither into an
// error.
func TestEcho(t *testing.T) {
	k, client := newCloud(t)
	wantList(t, client)
	k.neutron.Inject(embedded.Fault{Status: 400, Body: `{"NeutronError": {"type": "X", "message": "token-` + secret + `-1 and ` + password + ` are bad", "detail": ""}}`})
	wantError(t, "a list", list(t, client), neutron.ErrRefused, ": 400 X: *** and *** are bad")
}

// TestEncodedEcho: nor does a server that repeats them in another form.
func TestEncodedEcho(t *testing.T) {
	const odd = `p"ä&<%/+ \` + secret // its encodings differ from it
	k := startKeystone(t, embedded.Options{})
	k.password = odd
	useFiles(t).write("clouds.yaml", clouds(withPassword(k.URL, strings.ReplaceAll(odd, "'", "''"))...))
	client := connectCloud(t)
	wantList(t, client)
	inJSON, _ := json.Marshal(odd)
	for name, form := range map[string]string{
		"as it is":                odd,
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
			k.neutron.Inject(embedded.Fault{Status: 400, Body: string(body), Times: 1})
			err := list(t, client)
			wantError(t, "a list", err, neutron.ErrRefused, ": 400 X: begin ", "***", " end")
			_, text, _ := strings.Cut(err.Error(), "begin ")
			if rest := strings.ReplaceAll(strings.TrimSuffix(text, " end"), "***", ""); len(rest) > 12 {
				t.Errorf("the message has more than the secret's frame: %q", rest)
			}
		})
	}
}

// TestHostileText: a message of a server is one line without control characters,
// and has a bounded length.
func TestHostileText(t *testing.T) {
	watch := &clock{}
	k, client := newCloud(t, openstack.WithClock(watch.Now))
	const hostile = "one\r\ntwo \x1b[31mred\x1b[0m \u202ereversed\u0007\u0000"
	for name, fail := range map[string]func(message string){
		"Neutron": func(message string) {
			body, _ := json.Marshal(object{"NeutronError": object{"type": message, "message": message}})
			k.neutron.Inject(embedded.Fault{Status: 400, Body: string(body), Times: 1})
		},
		"Keystone": func(message string) {
			k.revoke()
			k.fail(func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusForbidden, message, message) })
		},
	} {
		for _, message := range []string{hostile, strings.Repeat(hostile, 1000)} {
			t.Run(name, func(t *testing.T) {
				wantList(t, client)
				fail(message)
				err := list(t, client)
				if err == nil || !strings.Contains(err.Error(), "one two [31mred[0m reversed") || len(err.Error()) > 4*maxMessage {
					t.Errorf("error is %.2000q", err)
				}
				for _, r := range err.Error() {
					if !unicode.IsPrint(r) {
						t.Errorf("the error has the character %U: %q", r, err)
						break
					}
				}
			})
			k.fail(nil)
			watch.pass(time.Minute)
		}
	}
}

// maxMessage is the length of a message of a server, in characters.
const maxMessage = 500

// TestExpiredWhileKeystoneIsUnavailable: the client recovers with Keystone.
func TestExpiredWhileKeystoneIsUnavailable(t *testing.T) {
	watch := &clock{}
	k, client := newCloud(t, openstack.WithClock(watch.Now))
	wantList(t, client)
	k.revoke()
	k.fail(answerWith(503, nil, ""))
	for range 3 {
		wantError(t, "expired", list(t, client), neutron.ErrUnavailable, "login: unavailable: 503")
		watch.pass(time.Minute)
	}
	k.fail(nil)
	wantList(t, client)
}

// TestLoginTimeout: a login counts towards the time limit of its request.
func TestLoginTimeout(t *testing.T) {
	watch := &clock{}
	k, client := newCloud(t, openstack.WithTimeout(50*time.Millisecond), openstack.WithClock(watch.Now))
	k.fail(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for range 3 { // the first one waits
		wantError(t, "while Keystone hangs", list(t, client), neutron.ErrUnavailable,
			"login: unavailable: timed out: no answer from "+strings.TrimPrefix(k.URL, "http://")+" within 50ms")
	}
	k.wantLogins(t, 1)
	k.fail(nil)
	watch.pass(time.Minute)
	defer k.neutron.Inject(embedded.Fault{Delay: time.Hour})()
	wantError(t, "while Neutron hangs", list(t, client), neutron.ErrUnavailable,
		"list networks: unavailable: timed out: no answer from "+strings.TrimPrefix(k.front.URL, "http://")+" within 50ms")
}

// TestCallerGivesUp: a caller that gives up does not fail the login for others.
func TestCallerGivesUp(t *testing.T) {
	k, client := newCloud(t, openstack.WithTimeout(time.Hour))
	arrived, release := make(chan struct{}), make(chan struct{})
	k.fail(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		k.set(func() {
			k.tokens["late"] = 0
			k.grant(w, http.StatusCreated, "late", true)
		})
	})
	first, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := client.Networks(first, neutron.NetworkFilter{})
		failed <- err
	}()
	<-arrived
	var others sync.WaitGroup
	for range 5 {
		others.Go(func() { wantList(t, client) })
	}
	cancel()
	err := <-failed
	wantError(t, "the first", err, neutron.ErrUnavailable, "list networks: unavailable: context canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("errors.Is(%v, context.Canceled) is false", err)
	}
	impatient, stop := context.WithCancel(t.Context())
	stop()
	_, err = client.Networks(impatient, neutron.NetworkFilter{})
	wantError(t, "one that waits", err, neutron.ErrUnavailable, "list networks: unavailable: context canceled")
	k.wantLogins(t, 1)
	close(release)
	others.Wait()
}

// TestCloudText: the client describes its cloud, without secrets.
func TestCloudText(t *testing.T) {
	k := startKeystone(t, embedded.Options{})
	useFiles(t).write("clouds.yaml", clouds(withPassword(k.URL, password, "verify: false")...))
	client := connectCloud(t)
	want := "cloud ours at " + k.URL + "/v3, interface public, region RegionOne, certificates NOT verified, "
	if got := fmt.Sprint(client); got != want+"not logged in" {
		t.Errorf("the client is %q, want %q", got, want+"not logged in")
	}
	wantList(t, client)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, client); got != want+"Neutron at "+k.front.URL {
			t.Errorf("with %s, the client is %q", verb, got)
		}
	}
	if got := fmt.Sprintf("%#v", connect(t, "http://127.0.0.1:9696/v2.0")); got != "http://127.0.0.1:9696" {
		t.Errorf("a client without a login is %q", got)
	}
}
