package openstack_test

import (
	"os"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/neutrontest"
)

// TestEmbeddedNeutron: the embedded Neutron is one.
func TestEmbeddedNeutron(t *testing.T) {
	for name, options := range map[string]embedded.Options{
		"all at once": {},
		"in pages":    {MaxPage: 2},
	} {
		t.Run(name, func(t *testing.T) {
			neutrontest.TestClient(t, func(t *testing.T) neutrontest.Cloud {
				server := start(t, options)
				return neutrontest.Cloud{Client: connect(t, server.URL()), Endpoint: server.URL(), SetQuotas: true}
			})
		})
	}
}

// TestRealNeutron runs the same against a real one.
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
