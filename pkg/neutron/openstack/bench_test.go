package openstack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// BenchmarkRefresh measures what a refresh of the cache of Neutron's state costs when
// nothing has changed: 1,000 networks with a subnet each.
func BenchmarkRefresh(b *testing.B) {
	const count = 1000
	var networks, subnets []string
	for i := range count {
		marker := neutron.Owner{Cluster: "8d1f7a4e-5d0f-4b5c-9f0e-2f8d0c6a1b3c", Namespace: "tenant", Name: fmt.Sprintf("network-%d", i)}.Marker()
		networks = append(networks, fmt.Sprintf(`{"admin_state_up":true,"created_at":"2026-11-22T00:58:21Z","description":%[2]q,"dns_domain":"","id":"0000777b-a1cf-46b7-8ad8-%012[1]d",
			"mtu":1450,"name":"tenant/network-%[1]d","port_security_enabled":true,"revision_number":2,"subnets":["d320cf98-bacd-4935-85a5-%012[1]d"],
			"tags":[]}`, i, marker))
		subnets = append(subnets, fmt.Sprintf(`{"allocation_pools":[{"end":"10.0.0.254","start":"10.0.0.2"}],"cidr":"10.0.0.0/24","created_at":"2026-11-22T00:58:21Z","description":%[2]q,
			"dns_nameservers":[],"enable_dhcp":true,"gateway_ip":"10.0.0.1","host_routes":[],"id":"d320cf98-bacd-4935-85a5-%012[1]d","ipv6_address_mode":null,"ipv6_ra_mode":null,
			"name":"tenant/network-%[1]d","network_id":"0000777b-a1cf-46b7-8ad8-%012[1]d","revision_number":0,"subnetpool_id":null,"tags":[]}`, i, marker))
	}
	pages := map[string]string{
		"networks": `{"networks":[` + strings.Join(networks, ",") + `],"networks_links":[]}`,
		"subnets":  `{"subnets":[` + strings.Join(subnets, ",") + `],"subnets_links":[]}`,
	}
	client := hostile(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(pages[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]))
	})
	cache := neutron.NewCache(client, time.Now)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cache.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
