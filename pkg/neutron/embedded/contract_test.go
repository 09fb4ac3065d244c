package embedded_test

import (
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/neutrontest"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestContract: the embedded Neutron fulfils the contract of a Neutron, whatever
// extensions it has.
func TestContract(t *testing.T) {
	for name, options := range map[string]embedded.Options{
		"by default":                    {},
		"in pages, with all extensions": {MaxPage: 2, With: []string{neutron.ExtensionDNS}},
		"with a read-only MTU":          {Without: []string{neutron.ExtensionMTU}},
		"with the fewest extensions": {Without: []string{"net-mtu", neutron.ExtensionPortSecurity,
			neutron.ExtensionTags, neutron.ExtensionSubnetPools, neutron.ExtensionRouter}},
	} {
		t.Run(name, func(t *testing.T) {
			neutrontest.TestClient(t, func(t *testing.T) neutrontest.Cloud {
				server := start(t, options)
				client, err := openstack.New(server.URL(), openstack.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return neutrontest.Cloud{Client: client, Endpoint: server.URL(), SetQuotas: true}
			})
		})
	}
}
