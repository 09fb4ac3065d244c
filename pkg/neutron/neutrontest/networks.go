package neutrontest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var networkTests = []test{
	{"a network is created with its name and description", func(s *suite) {
		created := s.createNetwork()
		s.wantEqual("CreateNetwork", neutron.Network{
			ID: created.ID, Name: "neutrontest", Description: s.marker, NetworkSettings: created.NetworkSettings,
			CreatedAt: created.CreatedAt, Revision: 1,
		}, created)
		s.wantEqual("the network as it is listed", created, s.network(created.ID))
	}},
	{"networks and subnets have a creation time", func(s *suite) {
		first := s.createNetwork()
		subnet := s.createSubnet(first, "10.0.0.0/24")
		second := s.createNetwork()
		if first.CreatedAt.IsZero() || subnet.CreatedAt.Before(first.CreatedAt) ||
			second.CreatedAt.Before(subnet.CreatedAt) || second.CreatedAt.Sub(first.CreatedAt) > time.Hour {
			s.Errorf("created at %v, %v and %v", first.CreatedAt, subnet.CreatedAt, second.CreatedAt)
		}
	}},
	{"a list that is read page by page omits what has not changed", testPages},
	{"a network gets another name and description", func(s *suite) {
		network := s.createNetwork()
		update := neutron.NetworkUpdate{Name: "another", Description: s.marker + " retained", Revision: network.Revision}
		updated, err := s.Client.UpdateNetwork(s.Context(), network.ID, update)
		s.wantNil("updating", err)
		if updated.ID != network.ID || updated.Name != update.Name || updated.Description != update.Description ||
			updated.Revision <= network.Revision {
			s.Errorf("UpdateNetwork() = %+v", updated)
		}
		s.wantEqual("the network as it is listed", updated, s.network(network.ID))
		_, err = s.Client.UpdateNetwork(s.Context(), missing, update)
		s.want("updating a missing network", err, neutron.ErrNotFound, http.StatusNotFound, "NetworkNotFound")
	}},
	{"networks are found by their whole name, which need not be unique", func(s *suite) {
		name := "neutrontest/" + s.marker[len(s.marker)-12:]
		first, second := s.createNamed(name), s.createNamed(name)
		for _, other := range []string{name + "x", name[:len(name)-1], "x" + name} {
			s.createNamed(other)
		}
		for filter, want := range map[neutron.NetworkFilter][]neutron.Network{
			{Name: name}:                    {first, second},
			{ID: first.ID, Name: name}:      {first},
			{ID: first.ID, Name: "another"}: nil,
			{Name: name + "xx"}:             nil,
			{ID: missing}:                   nil,
			{ID: "x"}:                       nil,
		} {
			found, err := s.Client.Networks(s.Context(), filter)
			s.wantNil("listing", err)
			s.wantEqual("networks", want, found)
		}
		all, err := s.Client.Networks(s.Context(), neutron.NetworkFilter{})
		if err != nil || !slices.ContainsFunc(all, func(n neutron.Network) bool { return n.ID == first.ID }) {
			s.Errorf("the list of all networks lacks %s (error %v)", first.ID, err)
		}
		s.wantEqual("subnets of a missing network", []neutron.Subnet(nil), s.subnets(missing))
	}},
	{"an owner marker with any characters is kept", func(s *suite) {
		owner := neutron.Owner{Cluster: "c", Namespace: "a-b", Name: strings.ToLower(s.marker[len(s.marker)-8:])}
		for _, marker := range []string{
			owner.Marker(), owner.NetworkMarker("request1", true),
			s.marker + " ä&=?#%2F+/:,;'\"\\ 😀",
			s.marker + strings.Repeat("x", 255-len(s.marker)),
		} {
			s.marker = marker
			created := s.createNetwork()
			if found := s.network(created.ID); found.Description != marker {
				s.Errorf("a network with the description %q is listed with %q", marker, found.Description)
			}
		}
	}},
	{"a network is deleted with its subnets", func(s *suite) {
		network := s.createNetwork()
		s.createSubnet(network, "10.0.0.0/24")
		s.createSubnet(network, "fd00::/64")
		network = s.network(network.ID)
		s.wantNil("deleting", s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision))
		s.wantEqual("subnets that are left", []neutron.Subnet(nil), s.subnets(network.ID))
		err := s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
		s.want("deleting it again", err, neutron.ErrNotFound, http.StatusNotFound, "NetworkNotFound")
	}},
	{"a revision protects from changes by others", testStaleRevisions},
	{"a revision protects each setting", testStaleSettings},
	{"nothing is deleted while a port uses it, which changes no revision", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		network = s.network(network.ID)
		port := s.createPort(network)
		err := s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision)
		s.want("deleting the subnet", err, neutron.ErrInUse, http.StatusConflict, "SubnetInUse")
		s.wantPorts(err, port)
		err = s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
		s.want("deleting the network", err, neutron.ErrInUse, http.StatusConflict, "NetworkInUse")
		s.wantPorts(err, port)
		s.wantEqual("the network", network, s.network(network.ID))
		s.wantEqual("the subnet", subnet, s.subnet(network.ID, subnet.ID))
		s.remove("ports", port)
		s.wantNil("deleting the subnet without the port", s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision))
		s.wantNil("deleting the network", s.Client.DeleteNetwork(s.Context(), network.ID, s.network(network.ID).Revision))
	}},
	{"texts have at most 255 characters", func(s *suite) {
		for _, network := range []neutron.NewNetwork{
			{Name: strings.Repeat("ä", 256), Description: s.marker},
			{Name: "neutrontest", Description: s.marker + strings.Repeat("x", 256-len(s.marker))},
		} {
			_, err := s.Client.CreateNetwork(s.Context(), network)
			s.wantRejected("creating", err, "HTTPBadRequest")
		}
	}},
	{"a quota rejects a create", testQuota},
	{"the quotas of the project count its networks", testQuotaOfProject},
}

// testPages checks that a list that is read page by page has complete objects, and later
// only those that have changed.
func testPages(s *suite) {
	pages, ok := s.Client.(neutron.PageReader)
	if !ok {
		s.Skip("this client does not list page by page")
	}
	networks := []neutron.Network{s.createNetwork(), s.createNetwork()}
	subnets := []neutron.Subnet{s.createSubnet(networks[0], "10.0.0.0/24"), s.createSubnet(networks[1], "10.0.1.0/24")}
	networks[0], networks[1] = s.network(networks[0].ID), s.network(networks[1].ID)
	known := map[neutron.Digest]bool{}
	isKnown := func(digest neutron.Digest) bool { return known[digest] }
	want := func(doing string, wantNetworks []neutron.Network, wantSubnets []neutron.Subnet) {
		s.Helper()
		var gotNetworks []neutron.Network
		var gotSubnets []neutron.Subnet
		s.wantNil("listing networks", pages.EachNetwork(s.Context(), isKnown, func(n neutron.Network, digest neutron.Digest) {
			known[digest] = true
			if n.ID == networks[0].ID || n.ID == networks[1].ID {
				gotNetworks = append(gotNetworks, n)
			}
		}))
		s.wantNil("listing subnets", pages.EachSubnet(s.Context(), isKnown, func(n neutron.Subnet, digest neutron.Digest) {
			known[digest] = true
			if n.ID == subnets[0].ID || n.ID == subnets[1].ID {
				gotSubnets = append(gotSubnets, n)
			}
		}))
		slices.SortFunc(wantSubnets, func(a, b neutron.Subnet) int { return strings.Compare(a.ID, b.ID) })
		slices.SortFunc(gotSubnets, func(a, b neutron.Subnet) int { return strings.Compare(a.ID, b.ID) })
		s.wantEqual("networks "+doing, wantNetworks, gotNetworks)
		s.wantEqual("subnets "+doing, wantSubnets, gotSubnets)
	}
	want("in the first list", networks, slices.Clone(subnets))
	changed, err := s.Client.UpdateSubnet(s.Context(), subnets[0].ID,
		neutron.SubnetUpdate{Name: "another", Revision: subnets[0].Revision})
	s.wantNil("updating", err)
	want("after a change", []neutron.Network{s.network(networks[0].ID)}, []neutron.Subnet{changed})
	want("without a change", nil, nil)
}

// testStaleRevisions checks each write that carries a revision, after each change by
// another client. A write that is rejected changes nothing, and succeeds at the
// revision that the object has. Tags carry no revision, but change that of the network.
func testStaleRevisions(s *suite) {
	if !s.can(neutron.ExtensionIfMatch) {
		s.Fatalf("this Neutron lacks %s: it ignores revisions", neutron.ExtensionIfMatch)
	}
	network := s.createNetwork()
	subnet := s.createSubnet(network, "10.0.0.0/24")
	subnetBody := `{"subnet": {"network_id": "` + network.ID + `", "ip_version": 4, "cidr": "10.0.1.0/24"}}`
	for _, change := range []struct {
		name, method, path, body string
		status                   int
		keepsSubnet              bool // the change leaves the revision of the first subnet
	}{
		{"another subnet", http.MethodPost, "/v2.0/subnets", subnetBody, http.StatusCreated, true},
		{"another name of the network", http.MethodPut, "/v2.0/networks/" + network.ID, `{"network": {"name": "changed"}}`,
			http.StatusOK, true},
		{"another name of the subnet", http.MethodPut, "/v2.0/subnets/" + subnet.ID, `{"subnet": {"name": "changed"}}`,
			http.StatusOK, false},
	} {
		staleNetwork, staleSubnet := s.network(network.ID), s.subnet(network.ID, subnet.ID)
		s.mustSend(change.method, change.path, change.body, change.status, nil)
		current, currentSubnet := s.network(network.ID), s.subnet(network.ID, subnet.ID)
		if (currentSubnet.Revision == staleSubnet.Revision) != change.keepsSubnet ||
			current.Revision == staleNetwork.Revision {
			s.Fatalf("after %s, the network went from revision %d to %d, the subnet from %d to %d", change.name,
				staleNetwork.Revision, current.Revision, staleSubnet.Revision, currentSubnet.Revision)
		}
		_, err := s.Client.UpdateNetwork(s.Context(), network.ID,
			neutron.NetworkUpdate{Description: s.marker + " stale", Revision: staleNetwork.Revision})
		s.wantStale("updating the network after "+change.name, err)
		err = s.Client.DeleteNetwork(s.Context(), network.ID, staleNetwork.Revision)
		s.wantStale("deleting the network after "+change.name, err)
		if !change.keepsSubnet {
			_, err = s.Client.UpdateSubnet(s.Context(), subnet.ID,
				neutron.SubnetUpdate{Description: s.marker + " stale", Revision: staleSubnet.Revision})
			s.wantStale("updating the subnet after "+change.name, err)
			err = s.Client.DeleteSubnet(s.Context(), subnet.ID, staleSubnet.Revision)
			s.wantStale("deleting the subnet after "+change.name, err)
		}
		s.wantEqual("the network after rejected requests", current, s.network(network.ID))
		s.wantEqual("the subnet after rejected requests", currentSubnet, s.subnet(network.ID, subnet.ID))
	}
	current, err := s.Client.UpdateSubnet(s.Context(), subnet.ID,
		neutron.SubnetUpdate{Description: s.marker, Revision: s.subnet(network.ID, subnet.ID).Revision})
	s.wantNil("updating the subnet at its revision", err)
	s.wantNil("deleting the subnet at its revision", s.Client.DeleteSubnet(s.Context(), subnet.ID, current.Revision))
	s.wantNil("deleting the network at its revision",
		s.Client.DeleteNetwork(s.Context(), network.ID, s.network(network.ID).Revision))
}

func testQuotaOfProject(s *suite) {
	read := func() map[string]neutron.Quota {
		quotas, err := s.Client.(neutron.QuotaReader).Quotas(s.Context())
		s.wantNil("reading the quotas", err)
		return quotas
	}
	before := read()
	if len(before) == 0 {
		s.Skip("without a login, the project is unknown")
	}
	s.createNetwork()
	after := read()["network"]
	if was := before["network"]; after.Used != was.Used+1 || after.Limit != was.Limit || was.Limit == 0 {
		s.Errorf("the quota of networks was %+v, and with another network it is %+v", was, after)
	}
}

func testQuota(s *suite) {
	if !s.SetQuotas {
		s.Skip("the quotas of this cloud must not be changed")
	}
	network := s.createNetwork()
	var response struct {
		Network struct {
			ProjectID string `json:"project_id"`
		}
	}
	s.mustSend(http.MethodGet, "/v2.0/networks/"+network.ID, "", http.StatusOK, &response)
	path := "/v2.0/quotas/" + response.Network.ProjectID
	s.Cleanup(func() { s.remove("quotas", response.Network.ProjectID) })
	// Neutron 26 rejects a quota below what exists.
	s.mustSend(http.MethodPut, path, `{"quota": {"network": 1, "subnet": 0}}`, http.StatusOK, nil)

	_, err := s.Client.CreateNetwork(s.Context(), neutron.NewNetwork{Name: "neutrontest", Description: s.marker})
	s.want("creating a network", err, neutron.ErrRefused, http.StatusConflict, "OverQuota")
	_, err = s.Client.CreateSubnet(s.Context(), s.subnetOn(network, "10.0.0.0/24"))
	s.want("creating a subnet", err, neutron.ErrRefused, http.StatusConflict, "OverQuota")
}
