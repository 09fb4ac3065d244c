package neutrontest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

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

// wantNetwork checks the settings of a network, in the response to a request and in a
// list.
func (s *suite) wantNetwork(doing string, got neutron.Network, err error, want neutron.NetworkSettings) {
	s.Helper()
	s.wantNil(doing, err)
	s.wantEqual(doing+": settings", want, got.NetworkSettings)
	s.wantEqual(doing+": the network as it is listed", got, s.network(got.ID))
}

// testSetting creates networks with and without a setting, changes it, and changes
// it back. Without the extension, it checks that the setting is rejected.
func testSetting(extension string, set, unset neutron.NetworkSettings) func(*suite) {
	return func(s *suite) {
		plain := s.createNetwork()
		request := neutron.NewNetwork{Name: "neutrontest", Description: s.marker, NetworkSettings: set}
		created, err := s.Client.CreateNetwork(s.Context(), request)
		if extension != "" && !s.can(extension) {
			s.wantRejected("creating", err, "HTTPBadRequest")
			return
		}
		s.wantNil("creating", err)
		s.Cleanup(func() { s.remove("networks", created.ID) })
		want := with(plain.NetworkSettings, set)
		s.wantNetwork("creating", created, err, want)

		update := func(network neutron.Network, settings neutron.NetworkSettings) (neutron.Network, error) {
			return s.Client.UpdateNetwork(s.Context(), network.ID,
				neutron.NetworkUpdate{Revision: network.Revision, NetworkSettings: settings})
		}
		updated, err := update(plain, set)
		s.wantNetwork("updating", updated, err, want)
		if updated.Name != plain.Name || updated.Description != plain.Description {
			s.Errorf("an update of a setting changed the name to %q, the description to %q", updated.Name, updated.Description)
		}
		back, err := update(updated, unset)
		s.wantNetwork("changing it back", back, err, plain.NetworkSettings)
		s.createSubnet(created, "10.0.0.0/24")
		back, err = update(s.network(created.ID), unset)
		s.wantNetwork("removing the setting of the create", back, err, plain.NetworkSettings)
	}
}

// with returns settings with those that are set in others.
func with(settings, others neutron.NetworkSettings) neutron.NetworkSettings {
	return neutron.NetworkSettings{
		AdminStateUp: cmp.Or(others.AdminStateUp, settings.AdminStateUp),
		PortSecurity: cmp.Or(others.PortSecurity, settings.PortSecurity),
		MTU:          cmp.Or(others.MTU, settings.MTU),
		DNSDomain:    cmp.Or(others.DNSDomain, settings.DNSDomain),
	}
}

// settingTests check what a Network can set besides range and gateway.
var settingTests = []test{
	{"an MTU is set, and reset with 0", testSetting(neutron.ExtensionMTU,
		neutron.NetworkSettings{MTU: new(1300)}, neutron.NetworkSettings{MTU: new(0)})},
	{"a network is set down and up", testSetting("",
		neutron.NetworkSettings{AdminStateUp: new(false)}, neutron.NetworkSettings{AdminStateUp: new(true)})},
	{"port security is disabled and enabled", testSetting(neutron.ExtensionPortSecurity,
		neutron.NetworkSettings{PortSecurity: new(false)}, neutron.NetworkSettings{PortSecurity: new(true)})},
	{"a DNS domain is set and removed", testSetting(neutron.ExtensionDNS,
		neutron.NetworkSettings{DNSDomain: new("net.example.org.")}, neutron.NetworkSettings{DNSDomain: new("")})},
	{"a network has no setting whose extension is missing", func(s *suite) {
		settings := s.createNetwork().NetworkSettings
		for extension, isSet := range map[string]bool{
			"net-mtu": settings.MTU != nil, neutron.ExtensionPortSecurity: settings.PortSecurity != nil,
			neutron.ExtensionDNS: settings.DNSDomain != nil,
		} {
			if isSet != s.can(extension) {
				s.Errorf("a network has the setting of %s: %v", extension, isSet)
			}
		}
	}},
	{"an MTU that is too large is rejected", func(s *suite) {
		if !s.can(neutron.ExtensionMTU) {
			return
		}
		network := s.createNetwork()
		tooLarge := neutron.NetworkUpdate{Revision: network.Revision,
			NetworkSettings: neutron.NetworkSettings{MTU: new(65000)}}
		_, err := s.Client.UpdateNetwork(s.Context(), network.ID, tooLarge)
		s.wantRejected("updating", err, "InvalidInput")
	}},
	{"tags are added and removed one by one", testTags},
	{"a subnet is created with all settings", testNewSubnet},
	{"a subnet gets other settings, and the defaults again", testSubnetSettings},
	{"IPv6 modes are read-only", testModes},
	{"a range of one or two addresses needs no gateway and DHCP", testSmallRanges},
	{"a subnet pool allocates ranges", testSubnetPool},
	{"a subnet pool allocates ranges of IPv6, and is not deleted meanwhile", testIPv6SubnetPool},
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
	if slices.Sort(tagged.Tags); !slices.Equal(tagged.Tags, slices.Sorted(slices.Values(tags))) ||
		tagged.Revision <= network.Revision {
		s.Errorf("after tags were added: %+v, before: revision %d", tagged, network.Revision)
	}
	for _, tag := range tags[1:] {
		s.wantNil("removing "+tag, s.Client.RemoveNetworkTag(s.Context(), network.ID, tag))
	}
	s.wantNil("removing one again", s.Client.RemoveNetworkTag(s.Context(), network.ID, tags[1]))
	if got := s.network(network.ID).Tags; !slices.Equal(got, tags[:1]) {
		s.Errorf("after all but one were removed, the tags are %q", got)
	}
	if s.Client.AddNetworkTag(s.Context(), missing, "a") == nil ||
		s.Client.RemoveNetworkTag(s.Context(), missing, "a") == nil {
		s.Error("a tag was added to a missing network, or removed")
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
		Gateway: new(netip.MustParseAddr("10.0.0.9")),
		Pools:   pools("10.0.0.10", "10.0.0.19", "10.0.0.20", "10.0.0.29"),
		DHCP:    new(false),
		Nameservers: &[]netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("1.1.1.1"),
			netip.MustParseAddr("8.8.8.8")},
		HostRoutes: &[]neutron.HostRoute{
			{Destination: netip.MustParsePrefix("10.9.0.0/16"), NextHop: netip.MustParseAddr("10.0.0.5")},
			{Destination: netip.MustParsePrefix("0.0.0.0/0"), NextHop: netip.MustParseAddr("10.99.0.1")},
		},
	}
}

// wantSubnet checks a subnet, in the response to a request and in a list.
func (s *suite) wantSubnet(doing string, got neutron.Subnet, err error, want neutron.Subnet) {
	s.Helper()
	s.wantNil(doing, err)
	want.Revision = got.Revision
	s.wantEqual(doing, want, got)
	s.wantEqual(doing+": the subnet as it is listed", []neutron.Subnet{got}, s.subnets(got.NetworkID))
}

func testNewSubnet(s *suite) {
	request := s.subnetOn(s.createNetwork(), "10.0.0.0/24")
	request.SubnetSettings = allSettings()
	created, err := s.Client.CreateSubnet(s.Context(), request)
	s.wantSubnet("creating", created, err, neutron.Subnet{
		ID: created.ID, NetworkID: request.NetworkID, Name: request.Name, Description: request.Description,
		CIDR: request.CIDR, CreatedAt: created.CreatedAt, Gateway: *request.Gateway, Pools: request.Pools,
		Nameservers: *request.Nameservers, HostRoutes: *request.HostRoutes,
	})
	created, err = s.tryCreate("10.0.0.0/24", noGateway)
	s.wantNil("creating without a gateway", err)
	s.wantEqual("gateway", netip.Addr{}, created.Gateway)
	s.wantEqual("pools of a subnet without a gateway", pools("10.0.0.1", "10.0.0.254"), created.Pools)
}

func testSubnetSettings(s *suite) {
	plain := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
	all := allSettings()
	want := plain
	want.Gateway, want.Pools, want.DHCP = *all.Gateway, all.Pools, *all.DHCP
	want.Nameservers, want.HostRoutes = *all.Nameservers, *all.HostRoutes
	updated, err := s.tryUpdate(plain, all)
	s.wantSubnet("updating", updated, err, want)

	slices.Reverse(*all.Nameservers)
	want.Nameservers = *all.Nameservers
	updated, err = s.tryUpdate(updated, neutron.SubnetSettings{Nameservers: all.Nameservers})
	s.wantSubnet("exchanging name servers", updated, err, want)

	updated, err = s.tryUpdate(updated, neutron.SubnetSettings{
		Gateway: &plain.Gateway, Pools: plain.Pools, DHCP: new(true), Nameservers: &[]netip.Addr{},
		HostRoutes: &[]neutron.HostRoute{},
	})
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
		s.mustFail(http.MethodPut, "/v2.0/subnets/"+created.ID, `{"subnet": {"ipv6_ra_mode": "slaac"}}`,
			http.StatusBadRequest, "HTTPBadRequest")
	}
}

func testSmallRanges(s *suite) {
	for cidr, want := range map[string][]neutron.Pool{
		"10.0.0.0/31": pools("10.0.0.0", "10.0.0.1"),
		"10.0.0.0/32": pools("10.0.0.0", "10.0.0.0"),
		"fd00::/127":  pools("fd00::1", "fd00::1"),
		"fd00::/128":  pools("fd00::", "fd00::"),
	} {
		created, err := s.tryCreate(cidr, neutron.SubnetSettings{Gateway: new(netip.Addr), DHCP: new(false)})
		if err != nil || created.Gateway.IsValid() || created.DHCP {
			s.Errorf("%s: %+v, %v", cidr, created, err)
		}
		s.wantEqual("pools of "+cidr, want, created.Pools)
	}
}

// createSubnetPool creates a subnet pool, and deletes it after the test, later than
// all networks that the test creates after it.
func (s *suite) createSubnetPool(prefixes string, defaultLength int) (name, id string) {
	s.Helper()
	name = "neutrontest-" + rand.Text()
	var body struct{ Subnetpool struct{ ID string } }
	s.mustSend(http.MethodPost, "/v2.0/subnetpools",
		fmt.Sprintf(`{"subnetpool": {"name": "%s", "prefixes": [%s], "default_prefixlen": %d}}`, name, prefixes,
			defaultLength), http.StatusCreated, &body)
	s.Cleanup(func() { s.remove("subnetpools", body.Subnetpool.ID) })
	return name, body.Subnetpool.ID
}

// tryFromPool requests a subnet with a range from a subnet pool.
func (s *suite) tryFromPool(
	network neutron.Network, from neutron.FromPool, settings neutron.SubnetSettings,
) (neutron.Subnet, error) {
	s.Helper()
	return s.Client.CreateSubnet(s.Context(), neutron.NewSubnet{NetworkID: network.ID, Name: "neutrontest",
		Description: s.marker, FromPool: &from, SubnetSettings: settings})
}

func testSubnetPool(s *suite) {
	if !s.can(neutron.ExtensionSubnetPools) {
		return // testFindSubnetPools checks the error
	}
	_, four := s.createSubnetPool(`"10.77.0.0/23"`, 24)
	from := neutron.FromPool{SubnetPoolID: four, IPVersion: 4}
	network, other := s.createNetwork(), s.createNetwork()
	created, err := s.tryFromPool(network, from, neutron.SubnetSettings{})
	s.wantSubnet("creating", created, err, neutron.Subnet{
		ID: created.ID, NetworkID: network.ID, Name: "neutrontest", Description: s.marker, CreatedAt: created.CreatedAt,
		CIDR: netip.MustParsePrefix("10.77.0.0/24"), SubnetPoolID: four, Gateway: netip.MustParseAddr("10.77.0.1"),
		Pools: pools("10.77.0.2", "10.77.0.254"), DHCP: true,
	})
	_, err = s.Client.CreateSubnet(s.Context(), s.subnetOn(network, "10.9.0.0/24"))
	s.wantRejected("creating a subnet with a CIDR beside it", err, "NetworkSubnetPoolAffinityError")
	s.createSubnet(other, "10.9.0.0/24")
	_, err = s.tryFromPool(other, from, neutron.SubnetSettings{})
	s.wantRejected("creating beside a subnet with a CIDR", err, "NetworkSubnetPoolAffinityError")

	settings := allSettings()
	settings.Gateway, settings.Pools, from.PrefixLength = new(netip.Addr), nil, 26
	created, err = s.tryFromPool(s.createNetwork(), from, settings)
	s.wantNil("creating a /26 without a gateway", err)
	want := created
	want.CIDR, want.Gateway = netip.MustParsePrefix("10.77.1.0/26"), netip.Addr{}
	want.Pools = pools("10.77.1.1", "10.77.1.62")
	if created.Gateway.IsValid() { // Neutron 26 does what is requested, Neutron 21 does not
		want.Gateway, want.Pools = netip.MustParseAddr("10.77.1.1"), pools("10.77.1.2", "10.77.1.62")
	}
	want.DHCP, want.Nameservers, want.HostRoutes = false, *settings.Nameservers, *settings.HostRoutes
	s.wantSubnet("creating a /26 without a gateway", created, nil, want)

	s.mustSend(http.MethodPut, "/v2.0/subnetpools/"+four, `{"subnetpool": {"max_prefixlen": 28}}`, http.StatusOK, nil)
	network = s.createNetwork()
	for name, test := range map[string]struct {
		from   neutron.FromPool
		class  error
		status int
		typ    string
	}{
		"an exhausted pool": {neutron.FromPool{SubnetPoolID: four, IPVersion: 4, PrefixLength: 24}, neutron.ErrRefused, 500,
			"SubnetAllocationError"},
		"a large range": {neutron.FromPool{SubnetPoolID: four, IPVersion: 4, PrefixLength: 7}, neutron.ErrRefused, 400,
			"MinPrefixSubnetAllocationError"},
		"a small range": {neutron.FromPool{SubnetPoolID: four, IPVersion: 4, PrefixLength: 29}, neutron.ErrRefused, 400,
			"MaxPrefixSubnetAllocationError"},
		"another IP version": {neutron.FromPool{SubnetPoolID: four, IPVersion: 6}, neutron.ErrRefused, 400, "BadRequest"},
		"a missing pool": {neutron.FromPool{SubnetPoolID: missing, IPVersion: 4}, neutron.ErrNotFound, 404,
			"SubnetPoolNotFound"},
	} {
		_, err = s.tryFromPool(network, test.from, neutron.SubnetSettings{})
		s.want("creating from "+name, err, test.class, test.status, test.typ)
	}
}

func testIPv6SubnetPool(s *suite) {
	if !s.can(neutron.ExtensionSubnetPools) {
		return
	}
	_, six := s.createSubnetPool(`"fd77::/48"`, 64)
	from := neutron.FromPool{SubnetPoolID: six, IPVersion: 6}
	created, err := s.tryFromPool(s.createNetwork(), from, neutron.SubnetSettings{})
	if err != nil || created.CIDR != netip.MustParsePrefix("fd77::/64") ||
		created.Gateway != netip.MustParseAddr("fd77::1") {
		s.Errorf("CreateSubnet of IPv6 = %+v, %v", created, err)
	}
	s.mustFail(http.MethodDelete, "/v2.0/subnetpools/"+six, "", http.StatusBadRequest, "SubnetPoolDeleteError")
	updated, err := s.tryUpdate(created,
		neutron.SubnetSettings{Gateway: new(netip.Addr), Pools: pools("fd77::1", "fd77::ffff:ffff:ffff:ffff")})
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
	other, six := s.createSubnetPool(`"fd77::/48"`, 64)
	want := []neutron.SubnetPool{{ID: four, Name: name, IPVersion: 4, MinPrefixLength: 8, MaxPrefixLength: 32}}
	for filter, want := range map[neutron.SubnetPoolFilter][]neutron.SubnetPool{
		{Name: name}:               want,
		{ID: four}:                 want,
		{ID: four, Name: name}:     want,
		{ID: six}:                  {{ID: six, Name: other, IPVersion: 6, MinPrefixLength: 64, MaxPrefixLength: 128}},
		{ID: six, Name: name}:      nil,
		{Name: name[:len(name)-1]}: nil,
		{ID: missing}:              nil,
	} {
		found, err := s.Client.SubnetPools(s.Context(), filter)
		if err != nil || !slices.Equal(found, want) {
			s.Errorf("SubnetPools(%+v) = %v, %v; want %v", filter, found, err, want)
		}
	}
}

// testStaleSettings checks that each setting, sent alone, is rejected at a stale
// revision. Neutron checks the revision only when it writes to its database.
func testStaleSettings(s *suite) {
	network := s.createNetwork()
	subnet := s.createSubnet(network, "10.0.0.0/24")
	const stale = 99
	for _, test := range []struct {
		extension string
		update    neutron.NetworkUpdate
	}{
		{"", neutron.NetworkUpdate{Name: "changed"}},
		{"", neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{AdminStateUp: new(false)}}},
		{neutron.ExtensionMTU, neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{MTU: new(1300)}}},
		{neutron.ExtensionPortSecurity,
			neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{PortSecurity: new(false)}}},
		{neutron.ExtensionDNS,
			neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{DNSDomain: new("example.org.")}}},
	} {
		if test.update.Revision = stale; test.extension == "" || s.can(test.extension) {
			_, err := s.Client.UpdateNetwork(s.Context(), network.ID, test.update)
			s.wantStale(fmt.Sprintf("updating with %+v", test.update), err)
		}
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
		_, err := s.Client.UpdateSubnet(s.Context(), subnet.ID,
			neutron.SubnetUpdate{SubnetSettings: settings, Revision: stale})
		s.wantStale("updating "+name, err)
	}
	s.wantEqual("the subnet after rejected requests", subnet, s.subnet(network.ID, subnet.ID))
	s.wantEqual("the settings after rejected requests", network.NetworkSettings, s.network(network.ID).NetworkSettings)
}
