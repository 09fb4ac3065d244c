package neutrontest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var networkTests = []test{
	{"a network is created with its name and description", func(s *suite) {
		created := s.createNetwork()
		want := neutron.Network{ID: created.ID, Name: "neutrontest", Description: s.marker, NetworkSettings: created.NetworkSettings, SubnetIDs: []string{}, Tags: created.Tags, CreatedAt: created.CreatedAt, Revision: 1}
		if diff := cmp.Diff(want, created); diff != "" || len(created.Tags) > 0 {
			s.Errorf("CreateNetwork (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(created, s.network(created.ID)); diff != "" {
			s.Errorf("the network as it was created and as it is listed (-created +listed):\n%s", diff)
		}
	}},
	{"networks and subnets have a creation time", func(s *suite) {
		first := s.createNetwork()
		subnet := s.createSubnet(first, "10.0.0.0/24")
		second := s.createNetwork()
		if first.CreatedAt.IsZero() || subnet.CreatedAt.Before(first.CreatedAt) || second.CreatedAt.Before(subnet.CreatedAt) || second.CreatedAt.Sub(first.CreatedAt) > time.Hour {
			s.Errorf("created at %v, %v and %v", first.CreatedAt, subnet.CreatedAt, second.CreatedAt)
		}
		if got := s.subnets(first.ID)[0].CreatedAt; !got.Equal(subnet.CreatedAt) {
			s.Errorf("the subnet was created at %v, and is listed with %v", subnet.CreatedAt, got)
		}
	}},
	{"a list of everything that is read page by page has complete objects", func(s *suite) {
		pages, ok := s.Client.(neutron.PageReader)
		if !ok {
			s.Skip("this client does not list page by page")
		}
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		networks, subnets := s.listPages(pages, map[neutron.Digest]bool{})
		networks = slices.DeleteFunc(networks, func(n neutron.Network) bool { return n.ID != network.ID })
		subnets = slices.DeleteFunc(subnets, func(n neutron.Subnet) bool { return n.ID != subnet.ID })
		if diff := cmp.Diff([]neutron.Network{s.network(network.ID)}, networks[:min(1, len(networks))]); diff != "" {
			s.Errorf("the network alone and in the list (-alone +listed):\n%s", diff)
		}
		if diff := cmp.Diff(s.subnets(network.ID), subnets[:min(1, len(subnets))], compareAddresses); diff != "" {
			s.Errorf("the subnet alone and in the list (-alone +listed):\n%s", diff)
		}
	}},
	{"a list that is read page by page omits what has not changed", func(s *suite) {
		pages, ok := s.Client.(neutron.PageReader)
		if !ok {
			s.Skip("this client does not list page by page")
		}
		changed, unchanged := s.createNetwork(), s.createNetwork()
		onChanged, onUnchanged := s.createSubnet(changed, "10.0.0.0/24"), s.createSubnet(unchanged, "10.0.1.0/24")
		known := map[neutron.Digest]bool{}
		s.listPages(pages, known)
		_, err := s.Client.UpdateNetwork(s.Context(), changed.ID, neutron.NetworkUpdate{Name: "another", Revision: s.network(changed.ID).Revision})
		s.wantNil("updating the network", err)
		_, err = s.Client.UpdateSubnet(s.Context(), onChanged.ID, neutron.SubnetUpdate{Name: "another", Revision: onChanged.Revision})
		s.wantNil("updating the subnet", err)
		networks, subnets := s.listPages(pages, known)
		for _, n := range networks {
			if n.ID == unchanged.ID {
				s.Errorf("an unchanged network is in the list again: %+v", n)
			}
		}
		for _, n := range subnets {
			if n.ID == onUnchanged.ID {
				s.Errorf("an unchanged subnet is in the list again: %+v", n)
			}
		}
		if !slices.ContainsFunc(networks, func(n neutron.Network) bool { return n.ID == changed.ID && n.Name == "another" }) ||
			!slices.ContainsFunc(subnets, func(n neutron.Subnet) bool { return n.ID == onChanged.ID && n.Name == "another" }) {
			s.Errorf("the list lacks what has changed: %+v, %+v", networks, subnets)
		}
	}},
	{"a network gets another name and description", func(s *suite) {
		network := s.createNetwork()
		update := neutron.NetworkUpdate{Name: "another", Description: s.marker + " retained", Revision: network.Revision}
		updated, err := s.Client.UpdateNetwork(s.Context(), network.ID, update)
		s.wantNil("updating", err)
		if updated.ID != network.ID || updated.Name != update.Name || updated.Description != update.Description || updated.Revision <= network.Revision {
			s.Errorf("UpdateNetwork() = %+v", updated)
		}
		if diff := cmp.Diff(updated, s.network(network.ID)); diff != "" {
			s.Errorf("the network as it was updated and as it is listed (-updated +listed):\n%s", diff)
		}
		_, err = s.Client.UpdateNetwork(s.Context(), network.ID, update)
		s.want("updating at another revision", err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		_, err = s.Client.UpdateNetwork(s.Context(), missing, update)
		s.want("updating a missing network", err, neutron.ErrNotFound, http.StatusNotFound, "NetworkNotFound")
	}},
	{"names need not be unique", func(s *suite) {
		if a, b := s.createNetwork(), s.createNetwork(); a.ID == b.ID || a.Name != b.Name {
			s.Errorf("two networks of one name: %v and %v", a, b)
		}
	}},
	{"networks are found by their whole name", func(s *suite) {
		name := "neutrontest/" + s.marker[len(s.marker)-12:]
		ours, ours2 := s.createNamed(name), s.createNamed(name)
		for _, other := range []string{name + "x", name[:len(name)-1], "x" + name} {
			s.createNamed(other)
		}
		found, err := s.Client.Networks(s.Context(), neutron.NetworkFilter{Name: name})
		byID := func(a, b neutron.Network) int { return strings.Compare(a.ID, b.ID) }
		want := []neutron.Network{ours, ours2}
		slices.SortFunc(want, byID)
		slices.SortFunc(found, byID)
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			s.Errorf("Networks: %v, (-want +got):\n%s", err, diff)
		}
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
	{"a list of all networks has it too", func(s *suite) {
		created := s.createNetwork()
		found, err := s.Client.Networks(s.Context(), neutron.NetworkFilter{})
		if err != nil || !slices.ContainsFunc(found, func(n neutron.Network) bool { return n.ID == created.ID }) {
			s.Errorf("the list of all networks lacks %s (error %v)", created.ID, err)
		}
	}},
	{"no match is an empty list", func(s *suite) {
		created := s.createNetwork()
		for _, filter := range []neutron.NetworkFilter{{ID: missing}, {ID: "x"}, {Name: created.Name + "x"}, {ID: created.ID, Name: "another"}} {
			if found, err := s.Client.Networks(s.Context(), filter); err != nil || len(found) != 0 {
				s.Errorf("Networks(%+v) = %v, %v; want none", filter, found, err)
			}
		}
		if found, err := s.Client.Subnets(s.Context(), neutron.SubnetFilter{NetworkID: missing}); err != nil || len(found) != 0 {
			s.Errorf("Subnets of a missing network = %v, %v; want none", found, err)
		}
	}},
	{"a network is deleted", func(s *suite) {
		network := s.createNetwork()
		s.wantNil("deleting", s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision))
		err := s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
		s.want("deleting it again", err, neutron.ErrNotFound, http.StatusNotFound, "NetworkNotFound")
	}},
	{"a network is deleted with its subnets", func(s *suite) {
		network := s.createNetwork()
		s.createSubnet(network, "10.0.0.0/24")
		s.createSubnet(network, "fd00::/64")
		network = s.network(network.ID)
		s.wantNil("deleting", s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision))
		if left := s.subnets(network.ID); len(left) != 0 {
			s.Errorf("left after the network was deleted: %v", left)
		}
	}},
	{"a network is not deleted at another revision", func(s *suite) {
		network := s.createNetwork()
		s.mustSend(http.MethodPut, "/v2.0/networks/"+network.ID, `{"network": {"name": "changed"}}`, http.StatusOK, nil)
		err := s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
		s.want("deleting", err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		if changed := s.network(network.ID); changed.Revision <= network.Revision || changed.Name != "changed" {
			s.Errorf("after the change: %+v, before: %+v", changed, network)
		}
	}},
	{"a network is not deleted after a subnet was created on it", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		err := s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
		s.want("deleting", err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		if got := s.network(network.ID).SubnetIDs; len(got) != 1 || got[0] != subnet.ID {
			s.Errorf("the network has the subnets %v, want %s", got, subnet.ID)
		}
	}},
	{"each request for a subnet is a revision of its network", func(s *suite) {
		network := s.createNetwork()
		want := func(after string, more int) {
			s.Helper()
			if got := s.network(network.ID).Revision; got != network.Revision+more {
				s.Errorf("after %s, the network has the revision %d, want %d", after, got, network.Revision+more)
			}
		}
		subnet := s.createSubnet(network, "10.0.0.0/24")
		want("a create", 1)
		subnet, err := s.Client.UpdateSubnet(s.Context(), subnet.ID, neutron.SubnetUpdate{Name: "changed", Revision: subnet.Revision})
		s.wantNil("updating", err)
		want("an update", 2)
		s.wantNil("deleting", s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision))
		want("a deletion", 3)
	}},
	{"a revision protects from changes by others", testStaleRevisions},
	{"a revision protects each setting", testStaleSettings},
	{"a network is not deleted while it has a port", func(s *suite) {
		network := s.createNetwork()
		s.createSubnet(network, "10.0.0.0/24")
		port := s.createPort(network)
		network = s.network(network.ID)
		err := s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
		s.want("deleting", err, neutron.ErrInUse, http.StatusConflict, "NetworkInUse")
		s.wantPorts(err, port)
		if len(s.subnets(network.ID)) != 1 {
			s.Error("the subnet was deleted although the network was not")
		}
		s.remove("ports", port)
		s.wantNil("deleting after the port was deleted", s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision))
	}},
	{"a port changes no revision", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		before := s.network(network.ID)
		s.createPort(network)
		if after := s.network(network.ID); after.Revision != before.Revision {
			s.Errorf("the network's revision went from %d to %d", before.Revision, after.Revision)
		}
		if after := s.subnets(network.ID)[0]; after.Revision != subnet.Revision {
			s.Errorf("the subnet's revision went from %d to %d", subnet.Revision, after.Revision)
		}
	}},
	{"texts have at most 255 characters", func(s *suite) {
		for _, network := range []neutron.NewNetwork{
			{Name: strings.Repeat("ä", 256), Description: s.marker},
			{Name: "neutrontest", Description: s.marker + strings.Repeat("x", 256-len(s.marker))},
		} {
			_, err := s.Client.CreateNetwork(s.Context(), network)
			s.want("creating", err, neutron.ErrRefused, http.StatusBadRequest, "HTTPBadRequest")
		}
	}},
	{"a client is safe for concurrent use", func(s *suite) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				network, err := s.Client.CreateNetwork(s.Context(), s.newNetwork())
				if err == nil {
					err = s.Client.DeleteNetwork(s.Context(), network.ID, network.Revision)
				}
				if err != nil {
					s.Errorf("creating and deleting: %v", err)
				}
			})
		}
		all.Wait()
	}},
	{"a quota rejects a create", testQuota},
}

// ignoreOrder compares the IDs of subnets and the tags: Neutron returns them in no
// order.
var ignoreOrder = cmp.Transformer("sorted", func(all []string) []string { return slices.Sorted(slices.Values(all)) })

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
		{"another name of the network", http.MethodPut, "/v2.0/networks/" + network.ID, `{"network": {"name": "changed"}}`, http.StatusOK, true},
		{"another name of the subnet", http.MethodPut, "/v2.0/subnets/" + subnet.ID, `{"subnet": {"name": "changed"}}`, http.StatusOK, false},
	} {
		staleNetwork, staleSubnet := s.network(network.ID), s.subnet(network.ID, subnet.ID)
		s.mustSend(change.method, change.path, change.body, change.status, nil)
		current, currentSubnet := s.network(network.ID), s.subnet(network.ID, subnet.ID)
		if (currentSubnet.Revision == staleSubnet.Revision) != change.keepsSubnet || current.Revision == staleNetwork.Revision {
			s.Fatalf("after %s, the network went from revision %d to %d, the subnet from %d to %d", change.name,
				staleNetwork.Revision, current.Revision, staleSubnet.Revision, currentSubnet.Revision)
		}
		_, err := s.Client.UpdateNetwork(s.Context(), network.ID, neutron.NetworkUpdate{Description: s.marker + " stale", Revision: staleNetwork.Revision})
		s.want("updating the network after "+change.name, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		err = s.Client.DeleteNetwork(s.Context(), network.ID, staleNetwork.Revision)
		s.want("deleting the network after "+change.name, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		if !change.keepsSubnet {
			_, err = s.Client.UpdateSubnet(s.Context(), subnet.ID, neutron.SubnetUpdate{Description: s.marker + " stale", Revision: staleSubnet.Revision})
			s.want("updating the subnet after "+change.name, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
			err = s.Client.DeleteSubnet(s.Context(), subnet.ID, staleSubnet.Revision)
			s.want("deleting the subnet after "+change.name, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
		}
		if diff := cmp.Diff(current, s.network(network.ID), ignoreOrder) + cmp.Diff(currentSubnet, s.subnet(network.ID, subnet.ID), compareAddresses); diff != "" {
			s.Errorf("rejected requests changed something (-before +after):\n%s", diff)
		}
	}
	current, err := s.Client.UpdateSubnet(s.Context(), subnet.ID, neutron.SubnetUpdate{Description: s.marker, Revision: s.subnet(network.ID, subnet.ID).Revision})
	s.wantNil("updating the subnet at its revision", err)
	s.wantNil("deleting the subnet at its revision", s.Client.DeleteSubnet(s.Context(), subnet.ID, current.Revision))
	s.wantNil("deleting the network at its revision", s.Client.DeleteNetwork(s.Context(), network.ID, s.network(network.ID).Revision))
}

func testQuota(s *suite) {
	if !s.SetQuotas {
		s.Skip("the quotas of this cloud must not be changed")
	}
	network := s.createNetwork()
	var answer struct {
		Network struct {
			ProjectID string `json:"project_id"`
		}
	}
	s.mustSend(http.MethodGet, "/v2.0/networks/"+network.ID, "", http.StatusOK, &answer)
	path := "/v2.0/quotas/" + answer.Network.ProjectID
	s.Cleanup(func() { s.remove("quotas", answer.Network.ProjectID) })
	// Neutron 26 rejects a quota below what exists.
	s.mustSend(http.MethodPut, path, `{"quota": {"network": 1, "subnet": 0}}`, http.StatusOK, nil)

	_, err := s.Client.CreateNetwork(s.Context(), s.newNetwork())
	s.want("creating a network", err, neutron.ErrRefused, http.StatusConflict, "OverQuota")
	_, err = s.Client.CreateSubnet(s.Context(), s.subnetOn(network, "10.0.0.0/24"))
	s.want("creating a subnet", err, neutron.ErrRefused, http.StatusConflict, "OverQuota")
}

// listPages lists all networks and subnets that are not known, which are known then.
func (s *suite) listPages(pages neutron.PageReader, known map[neutron.Digest]bool) (networks []neutron.Network, subnets []neutron.Subnet) {
	isKnown := func(digest neutron.Digest) bool { return known[digest] }
	s.wantNil("listing networks", pages.EachNetwork(s.Context(), isKnown, func(n neutron.Network, digest neutron.Digest) {
		networks, known[digest] = append(networks, n), true
	}))
	s.wantNil("listing subnets", pages.EachSubnet(s.Context(), isKnown, func(n neutron.Subnet, digest neutron.Digest) {
		subnets, known[digest] = append(subnets, n), true
	}))
	return networks, subnets
}
