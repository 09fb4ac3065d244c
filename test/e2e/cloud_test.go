package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

type object = map[string]any

// planted begins each secret. It must appear nowhere.
const planted = "planted-"

// cloud is an OpenStack that pods reach: an embedded Neutron, and what a login with a
// password needs of Keystone. Both run in this process, so they outlive pods.
type cloud struct {
	url             string
	neutron         *embedded.Server
	password, token string
}

func startCloud(t *testing.T, address string) *cloud {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{
		url: "http://" + listener.Addr().String(), neutron: embedded.New(embedded.Options{}),
		password: planted + rand.Text(), token: planted + rand.Text(),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/auth/tokens", c.logIn)
	mux.Handle("/networking/", http.StripPrefix("/networking", http.HandlerFunc(c.authorized)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return c
}

// cloudsYAML returns the file for the Secret.
func (c *cloud) cloudsYAML() string {
	return fmt.Sprintf(`clouds:
  openstack:
    region_name: RegionOne
    auth:
      auth_url: %s/v3
      username: controller
      password: %s
      project_name: ours
      user_domain_id: default
      project_domain_id: default
`, c.url, c.password)
}

func (c *cloud) logIn(w http.ResponseWriter, r *http.Request) {
	var login struct {
		Auth struct {
			Identity struct {
				Password struct{ User struct{ Password string } }
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&login); err != nil || login.Auth.Identity.Password.User.Password != c.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("X-Subject-Token", c.token)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(object{"token": object{
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"),
		"methods":    []string{"password"},
		"project":    object{"id": "fake-project-id", "name": "ours"},
		"catalog": []object{{"type": "network", "name": "neutron", "endpoints": []object{
			{"id": "x", "interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": c.url + "/networking"},
		}}},
	}})
}

// authorized passes requests with the token on to Neutron.
func (c *cloud) authorized(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Auth-Token") != c.token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c.neutron.ServeHTTP(w, r)
}

// content returns all networks and subnets in Neutron by ID, with revision numbers and
// times.
func (c *cloud) content(t *testing.T) object {
	t.Helper()
	all := object{}
	for _, collection := range []string{"networks", "subnets"} {
		response := httptest.NewRecorder()
		c.neutron.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/v2.0/"+collection, nil))
		var list map[string][]object
		if err := json.Unmarshal(response.Body.Bytes(), &list); err != nil {
			t.Fatalf("listing %s: %v", collection, err)
		}
		for _, o := range list[collection] {
			all[fmt.Sprint(o["id"])] = o
		}
	}
	return all
}

// wantUntouched fails if an object in Neutron differs from what it was before. New
// objects do not matter.
func (c *cloud) wantUntouched(t *testing.T, before object) {
	t.Helper()
	now := c.content(t)
	if len(before) == 0 {
		t.Error("Neutron had no network before")
	}
	for id, was := range before {
		if diff := cmp.Diff(was, now[id]); diff != "" {
			t.Errorf("in Neutron, %s (-before +now):\n%s", id, diff)
		}
	}
}
