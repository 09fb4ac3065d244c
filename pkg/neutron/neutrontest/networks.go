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
	network := s.createNetwork()
	subnet := s.createSubnet(network, "10.0.0.0/24")
	known := map[neutron.Digest]bool{}
	isKnown := func(digest neutron.Digest) bool { return known[digest] }
	want := func(when string, wantNetworks []neutron.Network, wantSubnets []neutron.Subnet) {
		s.Helper()
		var networks []neutron.Network
		var subnets []neutron.Subnet
		s.wantNil("listing networks", pages.EachNetwork(s.Context(), isKnown, func(n neutron.Network, digest neutron.Digest) {
			if known[digest] = true; n.ID == network.ID {
				networks = append(networks, n)
			}
		}))
		s.wantNil("listing subnets", pages.EachSubnet(s.Context(), isKnown, func(n neutron.Subnet, digest neutron.Digest) {
			if known[digest] = true; n.ID == subnet.ID {
				subnets = append(subnets, n)
			}
		}))
		s.wantEqual("networks "+when, wantNetworks, networks)
		s.wantEqual("subnets "+when, wantSubnets, subnets)
	}
	want("in the first list", []neutron.Network{s.network(network.ID)}, []neutron.Subnet{subnet})
	want("without a change", nil, nil)
	changed, err := s.Client.UpdateSubnet(s.Context(), subnet.ID, neutron.SubnetUpdate{Name: "another"})
	s.wantNil("updating", err)
	want("after a change", []neutron.Network{s.network(network.ID)}, []neutron.Subnet{changed})
}

// testStaleRevisions checks each write that carries a revision, after a change by another
// client. A write that is rejected changes nothing, and succeeds at the revision that the
// object has.
func testStaleRevisions(s *suite) {
	if !s.can(neutron.ExtensionIfMatch) {
		s.Fatalf("this Neutron lacks %s: it ignores revisions", neutron.ExtensionIfMatch)
	}
	id := s.createNetwork().ID
	subnet := s.createSubnet(neutron.Network{ID: id}, "10.0.0.0/24")
	ctx, description := s.Context(), s.marker+" written"
	writes := []struct {
		name string
		send func(networkRevision, subnetRevision int) error
	}{
		{"updating the network", func(revision, _ int) error {
			_, err := s.Client.UpdateNetwork(ctx, id, neutron.NetworkUpdate{Description: description, Revision: revision})
			return err
		}},
		{"updating the subnet", func(_, revision int) error {
			_, err := s.Client.UpdateSubnet(ctx, subnet.ID, neutron.SubnetUpdate{Description: description, Revision: revision})
			return err
		}},
		{"deleting the subnet", func(_, revision int) error { return s.Client.DeleteSubnet(ctx, subnet.ID, revision) }},
		{"deleting the network", func(revision, _ int) error { return s.Client.DeleteNetwork(ctx, id, revision) }},
	}
	stale := s.network(id)
	s.mustSend(http.MethodPut, "/v2.0/subnets/"+subnet.ID, `{"subnet": {"name": "changed"}}`, http.StatusOK, nil)
	current, currentSubnets := s.network(id), s.subnets(id)
	for _, write := range writes {
		s.wantStale(write.name, write.send(stale.Revision, subnet.Revision))
	}
	s.wantEqual("the network after rejected requests", current, s.network(id))
	s.wantEqual("the subnets after rejected requests", currentSubnets, s.subnets(id))
	for _, write := range writes {
		subnetRevision := 0
		for _, subnet := range s.subnets(id) {
			subnetRevision = subnet.Revision
		}
		s.wantNil(write.name+" at its revision", write.send(s.network(id).Revision, subnetRevision))
	}
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
