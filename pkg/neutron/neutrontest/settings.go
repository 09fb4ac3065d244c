package neutrontest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// can reports whether the Neutron under test has an extension.
func (s *suite) can(extension string) bool {
	s.Helper()
	extensions, err := s.Client.Extensions(s.Context())
	s.wantNil("listing the extensions", err)
	if len(extensions) == 0 {
		s.Error("Extensions() is empty")
	}
	return slices.Contains(extensions, extension)
}

// wantNetwork checks the settings of a network, in the answer to a request and in a
// list.
func (s *suite) wantNetwork(doing string, got neutron.Network, err error, want neutron.NetworkSettings) {
	s.Helper()
	s.wantNil(doing, err)
	if diff := cmp.Diff(want, got.NetworkSettings); diff != "" {
		s.Errorf("%s: settings (-want +got):\n%s", doing, diff)
	}
	if diff := cmp.Diff(got, s.network(got.ID)); diff != "" {
		s.Errorf("%s: as it was answered and as it is listed (-answered +listed):\n%s", doing, diff)
	}
}

// testSetting creates networks with and without a setting, changes it, and changes
// it back. Without the extension, it checks that the setting is rejected.
func testSetting(extension string, set func(settings *neutron.NetworkSettings), unset neutron.NetworkSettings) func(*suite) {
	return func(s *suite) {
		plain := s.createNetwork()
		if !s.can(extension) && extension != "" {
			readable := extension == neutron.ExtensionMTU && s.can("net-mtu") // but not writable
			if request := with(neutron.NetworkSettings{}, set); plain.NetworkSettings != without(plain.NetworkSettings, request) && !readable {
				s.Errorf("without %s, a network has %+v", extension, plain.NetworkSettings)
			}
			_, err := s.Client.CreateNetwork(s.Context(), neutron.NewNetwork{Description: s.marker, NetworkSettings: with(neutron.NetworkSettings{}, set)})
			s.want("creating", err, neutron.ErrRefused, http.StatusBadRequest, "HTTPBadRequest")
			return
		}
		created, err := s.Client.CreateNetwork(s.Context(), neutron.NewNetwork{Name: "neutrontest", Description: s.marker, NetworkSettings: with(neutron.NetworkSettings{}, set)})
		s.wantNil("creating", err)
		s.Cleanup(func() { s.remove("networks", created.ID) })
		s.wantNetwork("creating", created, err, with(plain.NetworkSettings, set))

		updated, err := s.Client.UpdateNetwork(s.Context(), plain.ID, neutron.NetworkUpdate{Revision: plain.Revision, NetworkSettings: with(neutron.NetworkSettings{}, set)})
		s.wantNetwork("updating", updated, err, with(plain.NetworkSettings, set))
		if updated.Name != plain.Name || updated.Description != plain.Description {
			s.Errorf("an update of a setting changed the name to %q, the description to %q", updated.Name, updated.Description)
		}
		back, err := s.Client.UpdateNetwork(s.Context(), plain.ID, neutron.NetworkUpdate{Revision: updated.Revision, NetworkSettings: unset})
		s.wantNetwork("changing it back", back, err, plain.NetworkSettings)
		back, err = s.Client.UpdateNetwork(s.Context(), created.ID, neutron.NetworkUpdate{Revision: created.Revision, NetworkSettings: unset})
		s.wantNetwork("removing the setting of the create", back, err, plain.NetworkSettings)
	}
}

func with(settings neutron.NetworkSettings, set func(*neutron.NetworkSettings)) neutron.NetworkSettings {
	set(&settings)
	return settings
}

// without returns settings without those that are set in others.
func without(settings, others neutron.NetworkSettings) neutron.NetworkSettings {
	if others.MTU != nil {
		settings.MTU = nil
	}
	if others.PortSecurity != nil {
		settings.PortSecurity = nil
	}
	if others.DNSDomain != nil {
		settings.DNSDomain = nil
	}
	return settings
}

// settingTests check what a Network can set besides range and gateway.
var settingTests = []test{
	{"an MTU is set, and reset with 0", testSetting(neutron.ExtensionMTU,
		func(settings *neutron.NetworkSettings) { settings.MTU = new(1300) },
		neutron.NetworkSettings{MTU: new(0)})},
	{"a network is set down and up", testSetting("",
		func(settings *neutron.NetworkSettings) { settings.AdminStateUp = new(false) },
		neutron.NetworkSettings{AdminStateUp: new(true)})},
	{"port security is disabled and enabled", testSetting(neutron.ExtensionPortSecurity,
		func(settings *neutron.NetworkSettings) { settings.PortSecurity = new(false) },
		neutron.NetworkSettings{PortSecurity: new(true)})},
	{"a DNS domain is set and removed", testSetting(neutron.ExtensionDNS,
		func(settings *neutron.NetworkSettings) { settings.DNSDomain = new("net.example.org.") },
		neutron.NetworkSettings{DNSDomain: new("")})},
	{"an MTU that is too large is rejected", func(s *suite) {
		if !s.can(neutron.ExtensionMTU) {
			return
		}
		network := s.createNetwork()
		_, err := s.Client.UpdateNetwork(s.Context(), network.ID, neutron.NetworkUpdate{Revision: network.Revision, NetworkSettings: neutron.NetworkSettings{MTU: new(65000)}})
		s.want("updating", err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
	}},
	{"tags are added and removed one by one", testTags},
	{"a subnet is created with all settings", testNewSubnet},
	{"a subnet gets other settings, and the defaults again", testSubnetSettings},
	{"IPv6 modes are read-only", testModes},
	{"a range of one or two addresses needs no gateway and DHCP", testSmallRanges},
	{"a subnet pool allocates ranges", testSubnetPool},
	{"subnet pools are found", testFindSubnetPools},
}

func testTags(s *suite) {
	network := s.createNetwork()
	if !s.can(neutron.ExtensionTags) {
		if err := s.Client.AddNetworkTag(s.Context(), network.ID, "a"); err == nil {
			s.Error("a tag was added without the extension")
		}
		return
	}
	tags := []string{"team=blue", "a b", "a%b+c", "x.y:z@1_2-3", ".hidden"}
	for _, tag := range tags {
		s.wantNil("adding "+tag, s.Client.AddNetworkTag(s.Context(), network.ID, tag))
	}
	s.wantNil("adding one again", s.Client.AddNetworkTag(s.Context(), network.ID, tags[0]))
	tagged := s.network(network.ID)
	if slices.Sort(tagged.Tags); !slices.Equal(tagged.Tags, slices.Sorted(slices.Values(tags))) || tagged.Revision <= network.Revision {
		s.Errorf("after tags were added: %+v, before: revision %d", tagged, network.Revision)
	}
	for _, tag := range tags[1:] {
		s.wantNil("removing "+tag, s.Client.RemoveNetworkTag(s.Context(), network.ID, tag))
	}
	s.wantNil("removing one again", s.Client.RemoveNetworkTag(s.Context(), network.ID, tags[1]))
	if got := s.network(network.ID).Tags; !slices.Equal(got, tags[:1]) {
		s.Errorf("after all but one were removed, the tags are %q", got)
	}
	if err := s.Client.AddNetworkTag(s.Context(), missing, "a"); err == nil {
		s.Error("a tag was added to a missing network")
	}
	if err := s.Client.RemoveNetworkTag(s.Context(), missing, "a"); err == nil {
		s.Error("a tag was removed from a missing network")
	}
	for _, tag := range []string{"", ".", "..", "a/b", "ä", "a\nb", "a.json", "a.xml"} {
		if err := s.Client.AddNetworkTag(s.Context(), network.ID, tag); err == nil {
			s.Errorf("the tag %q was added", tag)
		}
	}
}

// allSettings returns settings of a subnet, none with its default.
func allSettings() neutron.SubnetSettings {
	return neutron.SubnetSettings{
		Gateway:     new(netip.MustParseAddr("10.0.0.9")),
		Pools:       pools("10.0.0.10", "10.0.0.19", "10.0.0.20", "10.0.0.29"),
		DHCP:        new(false),
		Nameservers: &[]netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("8.8.8.8")},
		HostRoutes: &[]neutron.HostRoute{
			{Destination: netip.MustParsePrefix("10.9.0.0/16"), NextHop: netip.MustParseAddr("10.0.0.5")},
			{Destination: netip.MustParsePrefix("0.0.0.0/0"), NextHop: netip.MustParseAddr("10.99.0.1")},
		},
	}
}

// wantSubnet checks a subnet, in the answer to a request and in a list.
func (s *suite) wantSubnet(doing string, got neutron.Subnet, err error, want neutron.Subnet) {
	s.Helper()
	s.wantNil(doing, err)
	want.Revision = got.Revision
	inAnyOrder := cmp.Transformer("sorted", func(routes []neutron.HostRoute) []neutron.HostRoute {
		return slices.SortedFunc(slices.Values(routes), func(a, b neutron.HostRoute) int { return a.Destination.Compare(b.Destination) })
	})
	if diff := cmp.Diff(want, got, compareAddresses, inAnyOrder); diff != "" {
		s.Errorf("%s (-want +got):\n%s", doing, diff)
	}
	listed := s.subnets(got.NetworkID)
	if diff := cmp.Diff([]neutron.Subnet{got}, listed, compareAddresses, inAnyOrder); diff != "" {
		s.Errorf("%s: as it was answered and as it is listed (-answered +listed):\n%s", doing, diff)
	}
}

func testNewSubnet(s *suite) {
	request := s.subnetOn(s.createNetwork(), "10.0.0.0/24")
	request.SubnetSettings = allSettings()
	created, err := s.Client.CreateSubnet(s.Context(), request)
	s.wantSubnet("creating", created, err, neutron.Subnet{
		ID: created.ID, NetworkID: request.NetworkID, Name: request.Name, Description: request.Description, CIDR: request.CIDR, CreatedAt: created.CreatedAt,
		Gateway: *request.Gateway, Pools: request.Pools, Nameservers: *request.Nameservers, HostRoutes: *request.HostRoutes,
	})

	request = s.subnetOn(s.createNetwork(), "10.0.0.0/24")
	request.Gateway = new(netip.Addr)
	created, err = s.Client.CreateSubnet(s.Context(), request)
	if err != nil || created.Gateway.IsValid() {
		s.Errorf("CreateSubnet without a gateway = %+v, %v", created, err)
	}
	if diff := cmp.Diff(pools("10.0.0.1", "10.0.0.254"), created.Pools, compareAddresses); diff != "" {
		s.Errorf("pools of a subnet without a gateway (-want +got):\n%s", diff)
	}
}

func testSubnetSettings(s *suite) {
	plain := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
	all := allSettings()
	want := plain
	want.Gateway, want.Pools, want.DHCP, want.Nameservers, want.HostRoutes = *all.Gateway, all.Pools, *all.DHCP, *all.Nameservers, *all.HostRoutes
	updated, err := s.Client.UpdateSubnet(s.Context(), plain.ID, neutron.SubnetUpdate{SubnetSettings: all, Revision: plain.Revision})
	s.wantSubnet("updating", updated, err, want)

	slices.Reverse(*all.Nameservers)
	want.Nameservers = *all.Nameservers
	updated, err = s.Client.UpdateSubnet(s.Context(), plain.ID, neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{Nameservers: all.Nameservers}, Revision: updated.Revision})
	s.wantSubnet("exchanging name servers", updated, err, want)

	updated, err = s.Client.UpdateSubnet(s.Context(), plain.ID, neutron.SubnetUpdate{Revision: updated.Revision, SubnetSettings: neutron.SubnetSettings{
		Gateway: &plain.Gateway, Pools: plain.Pools, DHCP: new(true), Nameservers: &[]netip.Addr{}, HostRoutes: &[]neutron.HostRoute{},
	}})
	s.wantSubnet("resetting all", updated, err, plain)
}

func testModes(s *suite) {
	for _, mode := range []string{"slaac", "dhcpv6-stateful", "dhcpv6-stateless"} {
		request := s.subnetOn(s.createNetwork(), "fd00::/64")
		request.AddressMode, request.RAMode = mode, mode
		request.Gateway = new(netip.MustParseAddr("fd00::1"))
		created, err := s.Client.CreateSubnet(s.Context(), request)
		if err != nil || created.AddressMode != mode || created.RAMode != mode {
			s.Errorf("CreateSubnet with %s = %+v, %v", mode, created, err)
		}
		s.wantRejected(http.MethodPut, "/v2.0/subnets/"+created.ID, `{"subnet": {"ipv6_ra_mode": "slaac"}}`, http.StatusBadRequest, "HTTPBadRequest")
		_, err = s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{DHCP: new(false)}, Revision: created.Revision})
		s.want("disabling DHCP", err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
	}
	request := s.subnetOn(s.createNetwork(), "fd00::/64")
	request.AddressMode, request.RAMode = "slaac", "dhcpv6-stateful"
	_, err := s.Client.CreateSubnet(s.Context(), request)
	s.want("creating with two modes", err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
	request = s.subnetOn(s.createNetwork(), "fd00::/80")
	request.RAMode = "slaac"
	_, err = s.Client.CreateSubnet(s.Context(), request)
	s.want("creating with SLAAC in a /80", err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
	request.RAMode, request.DHCP = "dhcpv6-stateful", new(false)
	_, err = s.Client.CreateSubnet(s.Context(), request)
	s.want("creating with a mode and without DHCP", err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
}

func testSmallRanges(s *suite) {
	for cidr, want := range map[string][]neutron.Pool{
		"10.0.0.0/31": pools("10.0.0.0", "10.0.0.1"),
		"10.0.0.0/32": pools("10.0.0.0", "10.0.0.0"),
		"fd00::/127":  pools("fd00::1", "fd00::1"),
		"fd00::/128":  pools("fd00::", "fd00::"),
	} {
		request := s.subnetOn(s.createNetwork(), cidr)
		request.Gateway, request.DHCP = new(netip.Addr), new(false)
		created, err := s.Client.CreateSubnet(s.Context(), request)
		if diff := cmp.Diff(want, created.Pools, compareAddresses); err != nil || created.Gateway.IsValid() || created.DHCP || diff != "" {
			s.Errorf("%s: %+v, %v, pools (-want +got):\n%s", cidr, created, err, diff)
		}
	}
}

// createSubnetPool creates a subnet pool, and deletes it after the test, later than
// all networks that the test creates after it.
func (s *suite) createSubnetPool(prefixes string, defaultLength int) (name, id string) {
	s.Helper()
	name = "neutrontest-" + rand.Text()
	var body struct{ Subnetpool struct{ ID string } }
	s.mustSend(http.MethodPost, "/v2.0/subnetpools", fmt.Sprintf(`{"subnetpool": {"name": "%s", "prefixes": [%s], "default_prefixlen": %d}}`, name, prefixes, defaultLength), http.StatusCreated, &body)
	s.Cleanup(func() { s.remove("subnetpools", body.Subnetpool.ID) })
	return name, body.Subnetpool.ID
}

func testSubnetPool(s *suite) {
	if !s.can(neutron.ExtensionSubnetPools) {
		return // testFindSubnetPools checks the error
	}
	_, four := s.createSubnetPool(`"10.77.0.0/23"`, 24)
	_, six := s.createSubnetPool(`"fd77::/48"`, 64)
	request := s.subnetOn(s.createNetwork(), "10.0.0.0/8")
	request.CIDR, request.FromPool = netip.Prefix{}, &neutron.FromPool{SubnetPoolID: four, IPVersion: 4}
	created, err := s.Client.CreateSubnet(s.Context(), request)
	s.wantSubnet("creating", created, err, neutron.Subnet{
		ID: created.ID, NetworkID: request.NetworkID, Name: request.Name, Description: request.Description, CreatedAt: created.CreatedAt,
		CIDR: netip.MustParsePrefix("10.77.0.0/24"), SubnetPoolID: four, Gateway: netip.MustParseAddr("10.77.0.1"), Pools: pools("10.77.0.2", "10.77.0.254"), DHCP: true,
	})
	_, err = s.Client.CreateSubnet(s.Context(), s.subnetOn(neutron.Network{ID: request.NetworkID}, "10.9.0.0/24"))
	s.want("creating a subnet with a CIDR beside it", err, neutron.ErrRefused, http.StatusBadRequest, "NetworkSubnetPoolAffinityError")

	other := s.createNetwork()
	s.createSubnet(other, "10.9.0.0/24")
	request.NetworkID = other.ID
	_, err = s.Client.CreateSubnet(s.Context(), request)
	s.want("creating beside a subnet with a CIDR", err, neutron.ErrRefused, http.StatusBadRequest, "NetworkSubnetPoolAffinityError")

	request.NetworkID, request.FromPool, request.Gateway = s.createNetwork().ID, &neutron.FromPool{SubnetPoolID: four, IPVersion: 4, PrefixLength: 26}, new(netip.Addr)
	request.DHCP, request.Nameservers, request.HostRoutes = allSettings().DHCP, allSettings().Nameservers, allSettings().HostRoutes
	created, err = s.Client.CreateSubnet(s.Context(), request)
	gateway, free := netip.MustParseAddr("10.77.1.1"), pools("10.77.1.2", "10.77.1.62")
	if !created.Gateway.IsValid() { // Neutron 26 does what is requested, Neutron 21 does not
		gateway, free = netip.Addr{}, pools("10.77.1.1", "10.77.1.62")
	}
	s.wantSubnet("creating a /26 without a gateway", created, err, neutron.Subnet{
		ID: created.ID, NetworkID: request.NetworkID, Name: request.Name, Description: request.Description, CreatedAt: created.CreatedAt,
		CIDR: netip.MustParsePrefix("10.77.1.0/26"), SubnetPoolID: four, Pools: free,
		Gateway: gateway, Nameservers: *request.Nameservers, HostRoutes: *request.HostRoutes,
	})
	request.DHCP, request.Nameservers, request.HostRoutes = nil, nil, nil
	request.NetworkID, request.FromPool = s.createNetwork().ID, &neutron.FromPool{SubnetPoolID: four, IPVersion: 4, PrefixLength: 24}
	_, err = s.Client.CreateSubnet(s.Context(), request)
	s.want("creating from an exhausted pool", err, neutron.ErrRefused, http.StatusInternalServerError, "SubnetAllocationError")
	s.mustSend(http.MethodPut, "/v2.0/subnetpools/"+four, `{"subnetpool": {"max_prefixlen": 28}}`, http.StatusOK, nil)
	for length, typ := range map[int]string{7: "MinPrefixSubnetAllocationError", 29: "MaxPrefixSubnetAllocationError"} {
		request.FromPool.PrefixLength = length
		_, err = s.Client.CreateSubnet(s.Context(), request)
		s.want(fmt.Sprintf("creating a /%d", length), err, neutron.ErrRefused, http.StatusBadRequest, typ)
	}
	request.FromPool.IPVersion = 6
	_, err = s.Client.CreateSubnet(s.Context(), request)
	s.want("creating with another IP version", err, neutron.ErrRefused, http.StatusBadRequest, "BadRequest")
	request.FromPool = &neutron.FromPool{SubnetPoolID: missing, IPVersion: 4}
	_, err = s.Client.CreateSubnet(s.Context(), request)
	s.want("creating from a missing pool", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetPoolNotFound")

	request.FromPool, request.Gateway = &neutron.FromPool{SubnetPoolID: six, IPVersion: 6}, nil
	created, err = s.Client.CreateSubnet(s.Context(), request)
	if err != nil || created.CIDR != netip.MustParsePrefix("fd77::/64") || created.Gateway != netip.MustParseAddr("fd77::1") {
		s.Errorf("CreateSubnet of IPv6 = %+v, %v", created, err)
	}
	updated, err := s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{Revision: created.Revision, SubnetSettings: neutron.SubnetSettings{
		Gateway: new(netip.Addr), Pools: pools("fd77::1", "fd77::ffff:ffff:ffff:ffff"),
	}})
	if err != nil || updated.Gateway.IsValid() || updated.SubnetPoolID != six {
		s.Errorf("UpdateSubnet of a subnet from a subnet pool = %+v, %v", updated, err)
	}
}

func testFindSubnetPools(s *suite) {
	if !s.can(neutron.ExtensionSubnetPools) {
		_, err := s.Client.SubnetPools(s.Context(), neutron.SubnetPoolFilter{Name: "x"})
		s.want("listing without the extension", err, neutron.ErrUnavailable, http.StatusNotFound, "HTTPNotFound")
		return
	}
	name, four := s.createSubnetPool(`"10.77.0.0/16"`, 24)
	_, six := s.createSubnetPool(`"fd77::/48"`, 64)
	for filter, want := range map[neutron.SubnetPoolFilter][]neutron.SubnetPool{
		{Name: name}:               {{ID: four, Name: name, IPVersion: 4, MinPrefixLength: 8, MaxPrefixLength: 32}},
		{ID: four}:                 {{ID: four, Name: name, IPVersion: 4, MinPrefixLength: 8, MaxPrefixLength: 32}},
		{ID: four, Name: name}:     {{ID: four, Name: name, IPVersion: 4, MinPrefixLength: 8, MaxPrefixLength: 32}},
		{ID: six, Name: name}:      nil,
		{Name: name[:len(name)-1]}: nil,
		{ID: missing}:              nil,
	} {
		found, err := s.Client.SubnetPools(s.Context(), filter)
		if err != nil || !slices.Equal(found, want) {
			s.Errorf("SubnetPools(%+v) = %v, %v; want %v", filter, found, err, want)
		}
	}
	if found, err := s.Client.SubnetPools(s.Context(), neutron.SubnetPoolFilter{ID: six}); err != nil || len(found) != 1 || found[0].IPVersion != 6 {
		s.Errorf("SubnetPools(%s) = %v, %v", six, found, err)
	}
}

// testStaleSettings checks that each setting, sent alone, is rejected at a stale
// revision. Neutron checks the revision only when it writes to its database.
func testStaleSettings(s *suite) {
	network := s.createNetwork()
	subnet := s.createSubnet(network, "10.0.0.0/24")
	const stale = 99
	updates := map[string]neutron.NetworkUpdate{
		"name":           {Name: "changed"},
		"admin_state_up": {NetworkSettings: neutron.NetworkSettings{AdminStateUp: new(false)}},
	}
	if s.can(neutron.ExtensionMTU) {
		updates["mtu"] = neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{MTU: new(1300)}}
	}
	if s.can(neutron.ExtensionPortSecurity) {
		updates["port_security_enabled"] = neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{PortSecurity: new(false)}}
	}
	if s.can(neutron.ExtensionDNS) {
		updates["dns_domain"] = neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{DNSDomain: new("example.org.")}}
	}
	for name, update := range updates {
		update.Revision = stale
		_, err := s.Client.UpdateNetwork(s.Context(), network.ID, update)
		s.want("updating "+name, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
	}
	all := allSettings()
	for name, settings := range map[string]neutron.SubnetSettings{
		"gateway_ip":                      {Gateway: new(netip.Addr{})},
		"allocation_pools":                {Pools: all.Pools},
		"gateway_ip and allocation_pools": {Gateway: all.Gateway, Pools: all.Pools},
		"enable_dhcp":                     {DHCP: all.DHCP},
		"dns_nameservers":                 {Nameservers: all.Nameservers},
		"host_routes":                     {HostRoutes: all.HostRoutes},
	} {
		_, err := s.Client.UpdateSubnet(s.Context(), subnet.ID, neutron.SubnetUpdate{SubnetSettings: settings, Revision: stale})
		s.want("updating "+name, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
	}
	if diff := cmp.Diff(subnet, s.subnet(network.ID, subnet.ID), compareAddresses); diff != "" {
		s.Errorf("rejected requests changed the subnet (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(network.NetworkSettings, s.network(network.ID).NetworkSettings); diff != "" {
		s.Errorf("rejected requests changed the network (-before +after):\n%s", diff)
	}
}
