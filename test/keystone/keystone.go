// Package keystone is an OpenStack in memory with several projects: a Keystone, and an
// embedded Neutron for each project, at one address. It is for tests and measurements.
package keystone

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// Cloud is an OpenStack with one region, RegionOne.
type Cloud struct {
	*httptest.Server
	// Stuck makes all requests wait until their clients give up.
	Stuck atomic.Bool
	// Requests counts all requests.
	Requests atomic.Int64
	// Logins counts the requests for tokens.
	Logins atomic.Int64

	mu       sync.Mutex
	projects map[string]*Project // by name
	tokens   map[string]*Project
}

// Project is a project with one user, who has its name.
type Project struct {
	Name    string
	Neutron *embedded.Server
	cloud   *Cloud

	mu       sync.Mutex
	password string
}

// ID returns the ID of the project.
func (p *Project) ID() string { return p.Name + "-id" }

// Identity returns the identity of the cloud for this project.
func (p *Project) Identity() string { return "RegionOne/" + p.ID() }

// SetPassword changes the password of the user. Tokens stay valid.
func (p *Project) SetPassword(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.password = password
}

// CloudsYAML returns a clouds.yaml for the project.
func (p *Project) CloudsYAML() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("clouds: {openstack: {region_name: RegionOne, auth: {auth_url: '%s/v3', username: '%s', "+
		"user_domain_name: Default, password: '%s', project_name: '%[2]s', project_domain_name: Default}}}",
		p.cloud.URL, p.Name, p.password)
}

// Start starts a Cloud on a free port of the loopback interface.
func Start() *Cloud { return StartOn(nil) }

// StartOn starts a Cloud on a listener.
func StartOn(listener net.Listener) *Cloud {
	c := &Cloud{projects: map[string]*Project{}, tokens: map[string]*Project{}}
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
	p := &Project{Name: name, Neutron: embedded.New(embedded.Options{}), cloud: c, password: "password-of-" + name}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.projects[name] = p
	return p
}

// Revoke makes all tokens invalid.
func (c *Cloud) Revoke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = map[string]*Project{}
}

func (c *Cloud) serve(w http.ResponseWriter, r *http.Request) {
	c.Requests.Add(1)
	if c.Stuck.Load() {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client gives up
		<-r.Context().Done()
		return
	}
	if r.URL.Path == "/v3/auth/tokens" && r.Method == http.MethodPost {
		c.login(w, r)
		return
	}
	c.mu.Lock()
	p := c.tokens[r.Header.Get("X-Auth-Token")]
	c.mu.Unlock()
	if p == nil {
		refuse(w)
		return
	}
	if query := r.URL.Query(); query.Get("project_id") == p.ID() {
		query.Del("project_id") // the embedded Neutron has only this project, by another ID
		r.URL.RawQuery = query.Encode()
	}
	p.Neutron.ServeHTTP(w, r)
}

func (c *Cloud) login(w http.ResponseWriter, r *http.Request) {
	number := c.Logins.Add(1)
	var request struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	user := request.Auth.Identity.Password.User
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.projects[user.Name]
	if p == nil || !p.isPassword(user.Password) {
		refuse(w)
		return
	}
	token := fmt.Sprintf("%s-token-%d", strings.TrimSpace(user.Password), number) // as secret as that
	c.tokens[token] = p
	w.Header().Set("X-Subject-Token", token)
	w.WriteHeader(http.StatusCreated)
	endpoint := map[string]string{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": c.URL}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
		"project": map[string]string{"id": p.ID(), "name": p.Name},
		"catalog": []any{map[string]any{"type": "network", "endpoints": []any{endpoint}}},
	}})
}

func (p *Project) isPassword(password string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.password == strings.TrimSpace(password)
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w,
		`{"error":{"code":401,"title":"Unauthorized","message":"The request requires authentication."}}`)
}
