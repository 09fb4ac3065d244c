package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/test/keystone"
)

// planted begins each secret. It must appear nowhere.
const planted = "planted-"

// cloud is a project of an OpenStack that pods reach. It runs in this process, so it outlives
// pods.
type cloud struct{ *keystone.Project }

func startCloud(t *testing.T, address string) *cloud {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	openStack := keystone.StartOn(listener)
	t.Cleanup(openStack.Close)
	openStack.Change(func(s *keystone.Settings) { s.Token = planted + "token" })
	project := openStack.AddProject("ours")
	project.SetPassword(planted + rand.Text())
	return &cloud{project}
}

// content returns all networks and subnets in Neutron by ID, with revision numbers and
// times.
func (c *cloud) content(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, collection := range []string{"networks", "subnets"} {
		response := httptest.NewRecorder()
		c.Neutron.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/v2.0/"+collection, nil))
		var list map[string][]map[string]any
		if err := json.Unmarshal(response.Body.Bytes(), &list); err != nil {
			t.Fatalf("listing %s: %v", collection, err)
		}
		for _, object := range list[collection] {
			all[fmt.Sprint(object["id"])] = object
		}
	}
	return all
}

// wantUntouched fails if an object in Neutron differs from what it was before. New
// objects do not matter.
func (c *cloud) wantUntouched(t *testing.T, before map[string]any) {
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
