package openstack_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/neutrontest"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestRealNeutron runs the contract on a real Neutron.
func TestRealNeutron(t *testing.T) {
	endpoint := os.Getenv("NEUTRON_ENDPOINT")
	if endpoint == "" {
		t.Skip("NEUTRON_ENDPOINT is not set: to test against a real Neutron, set it to the URL of one without authentication")
	}
	client := connect(t, endpoint)
	neutrontest.TestClient(t, func(*testing.T) neutrontest.Cloud {
		return neutrontest.Cloud{Client: client, Endpoint: endpoint, SetQuotas: os.Getenv("NEUTRON_SET_QUOTAS") != ""}
	})
}

// TestRealCloud runs the contract with a login to a real Keystone: with a password,
// with an application credential, and with tokens that expire within seconds.
func TestRealCloud(t *testing.T) {
	for _, name := range []string{"ours", "ours-app", "short"} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(strings.Fields(os.Getenv("OPENSTACK_CLOUDS")), name) {
				t.Skip("OPENSTACK_CLOUDS does not have it: `make test-openstack` starts an OpenStack and sets it")
			}
			client, err := openstack.NewFromCloud(name, openstack.Options{})
			must(t, err)
			endpoint := withToken(t, "ours") // the same project, and a token that does not expire between two lines
			neutrontest.TestClient(t, func(*testing.T) neutrontest.Cloud {
				return neutrontest.Cloud{Client: client, Endpoint: endpoint}
			})
		})
	}
}

// withToken returns the address of a proxy that adds a token to requests to a
// cloud's Neutron. It is not the token of the client under test.
func withToken(t *testing.T, name string) string {
	t.Helper()
	var sent *http.Request // to Neutron, the last one
	other, err := openstack.NewFromCloud(name, openstack.Options{Transport: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r
			return next.RoundTrip(r)
		})
	}})
	must(t, err)
	must(t, requests["list networks"](t.Context(), other))
	path, _, _ := strings.Cut(sent.URL.Path, "/v2.0")
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: sent.URL.Scheme, Host: sent.URL.Host, Path: path})
		r.Out.Header.Set("X-Auth-Token", sent.Header.Get("X-Auth-Token"))
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}
