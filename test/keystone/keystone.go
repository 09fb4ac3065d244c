// Package keystone is an OpenStack in memory with several projects: a Keystone, and an
// embedded Neutron for each project, at one address. It is for tests and measurements.
package keystone

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// Cloud is an OpenStack with one region, RegionOne. Its Keystone is at /v3, and Neutron is at
// /networking.
type Cloud struct {
	*httptest.Server
	// Stuck makes all requests wait until their clients give up.
	Stuck atomic.Bool
	// Requests counts all requests.
	Requests atomic.Int64
	// Logins counts the requests to Keystone.
	Logins atomic.Int64

	mu sync.Mutex
	Settings
	projects map[string]*Project // by name
	tokens   map[string]*token
	issued   int // tokens
}

// Settings are how a Cloud behaves. Change changes them.
type Settings struct {
	// Fault may respond to a request to Keystone. If it returns false, Keystone responds.
	Fault func(http.ResponseWriter, *http.Request) bool
	// Catalog has the services in each token. Defaults to Neutron.
	Catalog []any
	// Uses is how many requests a new token is valid for. Defaults to all.
	Uses int
	// Token begins each token.
	Token string
}

// token is an access to a project.
type token struct {
	project *Project
	left    int // requests, or zero or less if that is unlimited
}

// Project is a project with one user, who has its name, and an application credential of that
// name. Both have the same secret.
type Project struct {
	Name    string
	Neutron *embedded.Server
	cloud   *Cloud
	secret  string
}

// ID returns the ID of the project.
func (p *Project) ID() string { return p.Name + "-id" }

// Identity returns the identity of the cloud for this project.
func (p *Project) Identity() string { return "RegionOne/" + p.ID() }

// SetPassword changes the password of the user. Tokens stay valid.
func (p *Project) SetPassword(password string) {
	p.cloud.Change(func(*Settings) { p.secret = password })
}

// CloudsYAML returns a clouds.yaml for the project.
func (p *Project) CloudsYAML() string {
	p.cloud.mu.Lock()
	defer p.cloud.mu.Unlock()
	return fmt.Sprintf("clouds: {openstack: {region_name: RegionOne, auth: {auth_url: '%s/v3', username: '%s', "+
		"user_domain_name: Default, password: '%s', project_name: '%[2]s', project_domain_name: Default}}}",
		p.cloud.URL, p.Name, p.secret)
}

// Start starts a Cloud on a free port of the loopback interface.
func Start() *Cloud { return StartOn(nil) }

// StartOn starts a Cloud on a listener.
func StartOn(listener net.Listener) *Cloud {
	c := &Cloud{projects: map[string]*Project{}, tokens: map[string]*token{}}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	if listener != nil {
		_ = c.Listener.Close()
		c.Listener = listener
	}
	c.Start()
	return c
}

// AddProject adds a project.
func (c *Cloud) AddProject(name string) *Project {
	return c.AddProjectWith(name, embedded.Options{})
}

// AddProjectWith adds a project whose Neutron has other options.
func (c *Cloud) AddProjectWith(name string, options embedded.Options) *Project {
	p := &Project{Name: name, cloud: c, secret: "password-of-" + name}
	options.Project = p.ID()
	p.Neutron = embedded.New(options)
	c.Change(func(*Settings) { c.projects[name] = p })
	return p
}

// Change changes the settings.
func (c *Cloud) Change(change func(*Settings)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.Settings)
}

// Revoke makes all tokens invalid.
func (c *Cloud) Revoke() { c.Change(func(*Settings) { clear(c.tokens) }) }

func (c *Cloud) serve(w http.ResponseWriter, r *http.Request) {
	c.Requests.Add(1)
	path, isNeutron := strings.CutPrefix(r.URL.Path, "/networking")
	switch {
	case c.Stuck.Load():
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client gives up
		<-r.Context().Done()
	case !isNeutron:
		c.serveKeystone(w, r)
	default:
		project := c.use(r.Header.Get("X-Auth-Token"))
		if project == nil {
			Refuse(w, http.StatusUnauthorized, unauthorized)
			return
		}
		r.URL.Path = path
		project.Neutron.ServeHTTP(w, r)
	}
}

// use uses a token for a request, and returns its project, or nil if it is not valid.
func (c *Cloud) use(text string) *Project {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tokens[text]
	if t == nil {
		return nil
	}
	if t.left--; t.left == 0 {
		delete(c.tokens, text)
	}
	return t.project
}

func (c *Cloud) serveKeystone(w http.ResponseWriter, r *http.Request) {
	c.Logins.Add(1)
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	fault := c.Fault
	c.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text, status := r.Header.Get("X-Subject-Token"), http.StatusOK
	switch {
	case r.URL.Path != "/v3/auth/tokens":
		Refuse(w, http.StatusNotFound, "there is no "+r.URL.Path)
		return
	case r.Method == http.MethodPost:
		text, status = fmt.Sprintf("%s-%d", cmp.Or(c.Token, "token"), c.issued+1), http.StatusCreated
		if project := c.login(body); project != nil {
			c.issued++
			c.tokens[text] = &token{project, c.Uses}
		}
	}
	if t := c.tokens[text]; t != nil {
		c.grant(w, status, text, t.project)
		return
	}
	Refuse(w, http.StatusUnauthorized, unauthorized)
}

// identities are the forms of a login to the project NAME, as JSON.
var identities = []string{
	`{"methods":["password"],"password":{"user":{"domain":{"name":"Default"},"name":"NAME","password":SECRET}}}`,
	`{"methods":["password"],"password":{"user":{"domain":{"id":"default"},"name":"NAME","password":SECRET}}}`,
	`{"methods":["password"],"password":{"user":{"id":"NAME-user","password":SECRET}}}`,
	`{"application_credential":{"id":"NAME-app","secret":SECRET},"methods":["application_credential"]}`,
	`{"application_credential":{"name":"NAME","secret":SECRET,"user":{"domain":{"name":"Default"},"name":"NAME"}},` +
		`"methods":["application_credential"]}`,
	`{"application_credential":{"name":"NAME","secret":SECRET,"user":{"id":"NAME-user"}},` +
		`"methods":["application_credential"]}`,
}

// scopes are the forms of the scope of a login to the project NAME, as JSON.
var scopes = []string{
	`null`, `{"project":{"id":"NAME-id"}}`, `{"project":{"domain":{"name":"Default"},"name":"NAME"}}`,
	`{"project":{"domain":{"id":"default"},"name":"NAME"}}`,
}

// login returns the project of a login, or nil if it is not valid. An application credential
// cannot choose a project.
func (c *Cloud) login(body []byte) *Project {
	var request struct{ Auth struct{ Identity, Scope any } }
	_ = json.Unmarshal(body, &request)
	identity, scope := inJSON(request.Auth.Identity), inJSON(request.Auth.Scope)
	if strings.Contains(identity, "application_credential") && scope != "null" {
		return nil
	}
	for name, project := range c.projects {
		is := func(text string) func(string) bool {
			form := strings.NewReplacer("NAME", name, "SECRET", inJSON(project.secret))
			return func(known string) bool { return form.Replace(known) == text }
		}
		if slices.ContainsFunc(identities, is(identity)) && slices.ContainsFunc(scopes, is(scope)) {
			return project
		}
	}
	for text, t := range c.tokens {
		if identity == `{"methods":["token"],"token":{"id":"`+text+`"}}` {
			return t.project
		}
	}
	return nil
}

func inJSON(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// Service returns the network service of a catalog.
func Service(endpoints ...any) any {
	return map[string]any{"type": "network", "name": "neutron", "endpoints": endpoints}
}

// Endpoint returns an endpoint of a service.
func Endpoint(availability, region, url string) any {
	return map[string]string{"interface": availability, "region": region, "region_id": region, "url": url}
}

func (c *Cloud) grant(w http.ResponseWriter, status int, token string, project *Project) {
	catalog := c.Catalog
	if catalog == nil {
		catalog = []any{Service(Endpoint("public", "RegionOne", c.URL+"/networking"))}
	}
	w.Header().Set("X-Subject-Token", token)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
		"project": map[string]string{"id": project.ID(), "name": project.Name}, "catalog": catalog,
	}})
}

const unauthorized = "The request you have made requires authentication."

// Refuse responds with an error as Keystone does.
func Refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, inJSON(map[string]any{"error": map[string]any{
		"code": status, "title": http.StatusText(status), "message": message,
	}}))
}
