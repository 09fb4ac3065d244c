package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

type object = map[string]any

// cloud is an OpenStack that pods reach.
type cloud struct {
	keystone string // its URL, as pods see it
	neutron  string

	user, password, project string
	secrets                 func() []string // that must appear nowhere
}

// cloudsYAML returns the file for the Secret.
func (c *cloud) cloudsYAML() string {
	return fmt.Sprintf(`clouds:
  openstack:
    region_name: RegionOne
    auth:
      auth_url: %s
      username: %s
      password: %s
      project_name: %s
      user_domain_id: default
      project_domain_id: default
`, c.keystone, c.user, c.password, c.project)
}

// content is the content of Neutron: objects by collection and ID.
type content map[string]map[string]any

// content returns all objects in Neutron as its API returns them, with revision
// numbers and times.
func (c *cloud) content(ctx context.Context) (content, error) {
	token, err := c.logIn(ctx)
	if err != nil {
		return nil, fmt.Errorf("logging in: %w", err)
	}
	all := content{}
	for _, collection := range []string{"networks", "subnets", "ports", "subnetpools"} {
		var answer map[string][]map[string]any
		if _, err := call(ctx, http.MethodGet, c.neutron+"/v2.0/"+collection, token, nil, &answer); err != nil {
			return nil, fmt.Errorf("listing %s: %w", collection, err)
		}
		all[collection] = map[string]any{}
		for _, o := range answer[collection] {
			all[collection][fmt.Sprint(o["id"])] = o
		}
	}
	return all, nil
}

// update changes an object in Neutron, with the rights of the controller.
func (c *cloud) update(ctx context.Context, kind, id string, changes object) error {
	token, err := c.logIn(ctx)
	if err == nil {
		_, err = call(ctx, http.MethodPut, c.neutron+"/v2.0/"+kind+"s/"+id, token, object{kind: changes}, nil)
	}
	return err
}

func (c *cloud) mustContent(t *testing.T) content {
	t.Helper()
	all, err := c.content(t.Context())
	if err != nil {
		t.Fatalf("reading Neutron: %v", err)
	}
	return all
}

// wantUntouched fails if an object in Neutron differs from what it was before. New
// objects do not matter.
func (c *cloud) wantUntouched(t *testing.T, before content) {
	t.Helper()
	now := c.mustContent(t)
	if len(before["networks"]) == 0 {
		t.Error("Neutron had no network before")
	}
	for collection, objects := range before {
		for id, was := range objects {
			if diff := cmp.Diff(was, now[collection][id]); diff != "" {
				t.Errorf("%s of Neutron, %s (-before +now):\n%s", collection, id, diff)
			}
		}
	}
}

// named returns the network of that name, or nil.
func (c content) named(name string) object {
	for _, network := range c["networks"] {
		if o := network.(object); o["name"] == name {
			return o
		}
	}
	return nil
}

func (c *cloud) logIn(ctx context.Context) (token string, err error) {
	domain := object{"id": "default"}
	body := object{"auth": object{
		"identity": object{"methods": []string{"password"}, "password": object{"user": object{"name": c.user, "domain": domain, "password": c.password}}},
		"scope":    object{"project": object{"name": c.project, "domain": domain}},
	}}
	header, err := call(ctx, http.MethodPost, c.keystone+"/auth/tokens", "", body, nil)
	return header.Get("X-Subject-Token"), err
}

// call sends a request to OpenStack.
func call(ctx context.Context, method, url, token string, body, answer any) (http.Header, error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode/100 != 2:
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, response.Status, got)
	case answer != nil:
		err = json.Unmarshal(got, answer)
	}
	return response.Header, err
}

// keystone implements the part of Keystone that a login with a password needs, in
// front of an embedded Neutron. Both run in this process, so they outlive pods.
type keystone struct {
	user, password, project, neutron string

	tokens tokens
}

// startEmbedded starts both at an address that pods can reach.
func startEmbedded(t *testing.T, address string) *cloud {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatalf("listening at an address that pods can reach: %v", err)
	}
	url := "http://" + listener.Addr().String()
	k := &keystone{user: "controller", password: "planted-" + rand.Text(), project: "ours", neutron: url + "/networking"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/auth/tokens", k.logIn)
	mux.Handle("/networking/", http.StripPrefix("/networking", k.withToken(embedded.New(embedded.Options{}))))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return &cloud{keystone: url + "/v3", neutron: k.neutron, user: k.user, password: k.password, project: k.project, secrets: k.secrets}
}

func (k *keystone) logIn(w http.ResponseWriter, r *http.Request) {
	var login struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
			Scope struct{ Project struct{ Name string } }
		}
	}
	err := json.NewDecoder(r.Body).Decode(&login)
	user := login.Auth.Identity.Password.User
	if err != nil || user.Name != k.user || user.Password != k.password || login.Auth.Scope.Project.Name != k.project {
		refuse(w)
		return
	}
	token := "planted-" + rand.Text()
	k.tokens.add(token)
	w.Header().Set("X-Subject-Token", token)
	answer(w, http.StatusCreated, object{"token": object{
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"),
		"methods":    []string{"password"},
		"project":    object{"id": "fake_project_id", "name": k.project},
		"catalog": []object{{"type": "network", "name": "neutron", "endpoints": []object{
			{"id": "x", "interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": k.neutron},
		}}},
	}})
}

// withToken rejects requests without a token of this keystone.
func (k *keystone) withToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(k.tokens.all(), r.Header.Get("X-Auth-Token")) {
			refuse(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (k *keystone) secrets() []string { return append(k.tokens.all(), k.password) }

// tokens are all tokens that were issued.
type tokens struct {
	mu     sync.Mutex
	tokens []string
}

func (s *tokens) add(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" {
		s.tokens = append(s.tokens, token)
	}
}

func (s *tokens) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tokens)
}

func refuse(w http.ResponseWriter) {
	answer(w, http.StatusUnauthorized, object{"error": object{"code": http.StatusUnauthorized, "title": "Unauthorized", "message": "The request you have made requires authentication."}})
}

func answer(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
