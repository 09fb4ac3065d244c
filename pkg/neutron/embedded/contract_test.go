package embedded_test

import (
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/neutrontest"
)

// TestExtensions: whatever extensions it has, it answers as a Neutron with these
// does. With those that it has by itself, it is tested with a client as well.
func TestExtensions(t *testing.T) {
	tests := map[string]embedded.Options{"all": {With: []string{"dns-integration"}}}
	for _, alias := range []string{
		"net-mtu", "net-mtu-writable", "port-security", "standard-attr-tag", "subnet_allocation", "default-subnetpools",
	} {
		tests["without "+alias] = embedded.Options{Without: []string{alias}}
	}
	tests["the fewest"] = embedded.Options{Without: []string{"net-mtu", "port-security", "standard-attr-tag", "subnet_allocation"}}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			neutrontest.TestAPI(t, func(t *testing.T) string { return start(t, options).URL() })
		})
	}
}

func TestUnknownExtension(t *testing.T) {
	for _, options := range []embedded.Options{{With: []string{"router"}}, {Without: []string{"quotas"}}} {
		func() {
			defer func() {
				if message, _ := recover().(string); !strings.Contains(message, "cannot be switched") {
					t.Errorf("New(%+v) panics with %q", options, message)
				}
			}()
			embedded.New(options)
		}()
	}
}
