package openstack

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestFenced: a former leader must send no write. The reconciler sees that a request was
// not sent, through all layers of the client.
func TestFenced(t *testing.T) {
	for _, request := range []struct {
		method, path string
		refused      bool
	}{
		{http.MethodGet, "/v2.0/networks", false},
		{http.MethodGet, "/v3", false},
		{http.MethodPost, "/v3/auth/tokens", false},
		{http.MethodPost, "/v2.0/networks", true},
		{http.MethodPut, "/v2.0/networks/5f", true},
		{http.MethodDelete, "/v2.0/subnets/5f", true},
		{http.MethodPut, "/v2.0/routers/5f/add_router_interface", true},
		{http.MethodPut, "/v2.0/networks/5f/tags/blue", true},
		{http.MethodPatch, "/v2.0/other", true},
	} {
		sent := httptest.NewRequest(request.method, request.path, http.NoBody)
		if request.path == "/v3/auth/tokens" {
			sent = sent.WithContext(withOperation(t.Context(), opLogin))
		}
		if err := Fenced(sent); (err != nil) != request.refused {
			t.Errorf("Fenced(%s %s) = %v", request.method, request.path, err)
		}
	}

	for name, refuse := range map[string]refusing{"of a former leader": Fenced, "that has waited for too long": NotSent} {
		client, err := New("http://127.0.0.1:1", Options{Transport: func(http.RoundTripper) http.RoundTripper { return refuse }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "a"})
		var failure *neutron.Error
		if !errors.As(err, &failure) || failure.Type != neutron.NotSent || !errors.Is(err, neutron.ErrUnavailable) || failure.Op != "create network" {
			t.Errorf("a request %s: CreateNetwork() = %v", name, err)
		}
	}
}

// refusing is a transport that sends nothing.
type refusing func(*http.Request) error

func (refuse refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, refuse(request)
}
