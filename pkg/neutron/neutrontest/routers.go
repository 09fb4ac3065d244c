package neutrontest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// routerTests check how subnets are attached to routers. Without the extension, only
// the first one checks something.
var routerTests = []test{
	{"routers are found", testFindRouters},
	{"a subnet is attached to a router and detached", routed(testAttach)},
	{"a subnet is attached to one router at its gateway address", routed(testSecondRouter)},
	{"a subnet that is attached is in use", routed(testAttachedInUse)},
	{"another gateway requires that the router is detached", routed(testGatewayOfRouter)},
	{"what does not exist is not attached", routed(testMissingRouter)},
	{"a subnet without a gateway is not attached", routed(testRouterWithoutGateway)},
	{"subnets that overlap are not attached to one router", routed(testOverlapOnRouter)},
	{"IPv6 subnets share a port of the router", routed(testIPv6OnRouter)},
}

// routed makes a test one that requires routers.
func routed(run func(*suite)) func(*suite) {
	return func(s *suite) {
		if s.can(neutron.ExtensionRouter) {
			run(s)
		}
	}
}

// createRouter creates a router, and deletes it after the test.
func (s *suite) createRouter(name string) (id string) {
	s.Helper()
	var body struct{ Router struct{ ID string } }
	s.mustSend(http.MethodPost, "/v2.0/routers", `{"router": {"name": "`+name+`"}}`, http.StatusCreated, &body)
	s.Cleanup(func() { s.remove("routers", body.Router.ID) })
	return body.Router.ID
}

// attach attaches a subnet, and detaches it after the test.
func (s *suite) attach(routerID string, subnet neutron.Subnet) neutron.RouterInterface {
	s.Helper()
	request := interfaceOf(routerID, subnet)
	added, err := s.Client.AddRouterInterface(s.Context(), request)
	s.wantNil("attaching "+subnet.CIDR.String(), err)
	s.Cleanup(func() {
		s.send(context.WithoutCancel(s.Context()), http.MethodPut, "/v2.0/routers/"+routerID+"/remove_router_interface",
			`{"subnet_id": "`+subnet.ID+`"}`)
	})
	if request.PortID = added.PortID; added != request || added.PortID == "" {
		s.Errorf("attaching returns %+v, want %+v with a port", added, request)
	}
	return added
}

// interfaceOf returns the request that attaches a subnet.
func interfaceOf(routerID string, subnet neutron.Subnet) neutron.RouterInterface {
	return neutron.RouterInterface{RouterID: routerID, NetworkID: subnet.NetworkID, SubnetID: subnet.ID,
		Address: subnet.Gateway}
}

// wantInterfaces checks the router interfaces of a network, also in a list of all.
func (s *suite) wantInterfaces(doing, networkID string, want ...neutron.RouterInterface) {
	s.Helper()
	found, err := s.Client.RouterInterfaces(s.Context(), networkID)
	s.wantNil(doing, err)
	s.wantEqual(doing+": router interfaces of the network", want, found)
	all, err := s.Client.RouterInterfaces(s.Context(), "")
	s.wantNil(doing, err)
	all = slices.DeleteFunc(all, func(i neutron.RouterInterface) bool { return i.NetworkID != networkID })
	s.wantEqual(doing+": router interfaces in the list of all", want, all)
}

func testFindRouters(s *suite) {
	if !s.can(neutron.ExtensionRouter) {
		_, err := s.Client.Routers(s.Context(), neutron.RouterFilter{Name: "x"})
		s.want("listing without the extension", err, neutron.ErrUnavailable, http.StatusNotFound, "HTTPNotFound")
		s.wantInterfaces("listing without the extension", s.createNetwork().ID)
		return
	}
	name, other := "neutrontest "+rand.Text(), "neutrontest "+rand.Text()
	first, second, third := s.createRouter(name), s.createRouter(name), s.createRouter(other)
	for filter, want := range map[neutron.RouterFilter][]neutron.Router{
		{Name: name}:               {{ID: first, Name: name}, {ID: second, Name: name}},
		{Name: other}:              {{ID: third, Name: other}},
		{ID: first}:                {{ID: first, Name: name}},
		{ID: third, Name: name}:    nil,
		{Name: name[:len(name)-1]}: nil,
		{ID: missing}:              nil,
	} {
		found, err := s.Client.Routers(s.Context(), filter)
		s.wantNil("listing", err)
		s.wantEqual("routers", want, found)
	}
	all, err := s.Client.Routers(s.Context(), neutron.RouterFilter{})
	if err != nil || !slices.Contains(all, neutron.Router{ID: third, Name: other}) {
		s.Errorf("the list of all routers is %v, %v", all, err)
	}
	s.mustFail(http.MethodGet, "/v2.0/routers?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
	s.mustFail(http.MethodGet, "/v2.0/routers/"+missing, "", http.StatusNotFound, "RouterNotFound")
}

func testAttach(s *suite) {
	network, router := s.createNetwork(), s.createRouter("neutrontest")
	subnet, other := s.createSubnet(network, "10.0.0.0/24"), s.createSubnet(network, "10.0.1.0/24")
	port := s.createPort(network)
	before := s.network(network.ID)
	s.wantInterfaces("before", network.ID)
	added, second := s.attach(router, subnet), s.attach(router, other)
	s.wantInterfaces("attached", network.ID, added, second)
	if ports, err := s.Client.Ports(s.Context(), network.ID); err != nil || len(ports) != 1 || ports[0].ID != port ||
		!slices.Equal(ports[0].SubnetIDs, []string{subnet.ID}) && !slices.Equal(ports[0].SubnetIDs, []string{other.ID}) {
		s.Errorf("Ports() = %v, %v; want %s on one subnet, and not those of the router", ports, err, port)
	}
	if after := s.network(network.ID); after.Revision != before.Revision {
		s.Errorf("attaching changed the revision of the network from %d to %d", before.Revision, after.Revision)
	}
	if got := s.subnets(network.ID); got[0].Revision != 0 || got[1].Revision != 0 {
		s.Errorf("attaching changed the revision of a subnet: %+v", got)
	}
	_, err := s.Client.AddRouterInterface(s.Context(), interfaceOf(router, subnet))
	s.want("attaching again", err, neutron.ErrConflict, http.StatusBadRequest, "BadRequest")
	s.wantNil("detaching", s.Client.RemoveRouterInterface(s.Context(), added))
	s.wantInterfaces("detached", network.ID, second)
	s.want("detaching again", s.Client.RemoveRouterInterface(s.Context(), added), neutron.ErrNotFound,
		http.StatusNotFound, "RouterInterfaceNotFoundForSubnet")
}

func testSecondRouter(s *suite) {
	network, router, other := s.createNetwork(), s.createRouter("neutrontest"), s.createRouter("neutrontest")
	subnet := s.createSubnet(network, "10.0.0.0/24")
	added := s.attach(router, subnet)
	_, err := s.Client.AddRouterInterface(s.Context(), interfaceOf(other, subnet))
	s.want("attaching to another router", err, neutron.ErrInUse, http.StatusConflict, "IpAddressAlreadyAllocated")
	err = s.Client.RemoveRouterInterface(s.Context(), interfaceOf(other, subnet))
	s.want("detaching from another router", err, neutron.ErrNotFound, http.StatusNotFound,
		"RouterInterfaceNotFoundForSubnet")
	s.wantInterfaces("afterwards", network.ID, added)
}

func testAttachedInUse(s *suite) {
	network, router := s.createNetwork(), s.createRouter("neutrontest")
	subnet := s.createSubnet(network, "10.0.0.0/24")
	added := s.attach(router, subnet)
	err := s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision)
	s.want("deleting the subnet", err, neutron.ErrInUse, http.StatusConflict, "SubnetInUse")
	err = s.Client.DeleteNetwork(s.Context(), network.ID, s.network(network.ID).Revision)
	s.want("deleting the network", err, neutron.ErrInUse, http.StatusConflict, "NetworkInUse")
	if err == nil || !strings.Contains(err.Error(), added.PortID) {
		s.Errorf("deleting the network: %v, want the port %s in the error", err, added.PortID)
	}
	s.mustFail(http.MethodDelete, "/v2.0/routers/"+router, "", http.StatusConflict, "RouterInUse")
	s.mustFail(http.MethodDelete, "/v2.0/ports/"+added.PortID, "", http.StatusConflict, "ServicePortInUse")
	s.wantNil("detaching", s.Client.RemoveRouterInterface(s.Context(), added))
	s.wantNil("deleting the network", s.Client.DeleteNetwork(s.Context(), network.ID, s.network(network.ID).Revision))
}

func testGatewayOfRouter(s *suite) {
	network, router := s.createNetwork(), s.createRouter("neutrontest")
	subnet := s.createSubnet(network, "10.0.0.0/24")
	added := s.attach(router, subnet)
	settings := gatewayAndPools("10.0.0.9", "10.0.0.10", "10.0.0.20")
	_, err := s.tryUpdate(subnet, settings)
	s.want("changing the gateway", err, neutron.ErrInUse, http.StatusConflict, "GatewayIpInUse")

	// Neutron 21 accepts no gateway, Neutron 26 does not. Both accept the gateway again.
	for _, gateway := range []netip.Addr{{}, subnet.Gateway} {
		changed, err := s.tryUpdate(subnet, neutron.SubnetSettings{Gateway: &gateway})
		if errors.Is(err, neutron.ErrInUse) && !gateway.IsValid() {
			continue
		}
		s.wantNil("changing the gateway to "+gateway.String(), err)
		subnet.Revision = changed.Revision
	}
	s.wantInterfaces("afterwards", network.ID, added)
	s.wantNil("detaching", s.Client.RemoveRouterInterface(s.Context(), added))
	changed, err := s.tryUpdate(subnet, settings)
	s.wantNil("changing the gateway after detaching", err)
	s.wantInterfaces("attached again", network.ID, s.attach(router, changed))
}

func testMissingRouter(s *suite) {
	network, router := s.createNetwork(), s.createRouter("neutrontest")
	subnet := s.createSubnet(network, "10.0.0.0/24")
	noSubnet := interfaceOf(router, neutron.Subnet{ID: missing, NetworkID: network.ID})
	_, err := s.Client.AddRouterInterface(s.Context(), interfaceOf(missing, subnet))
	s.want("attaching to a missing router", err, neutron.ErrNotFound, http.StatusNotFound, "RouterNotFound")
	_, err = s.Client.AddRouterInterface(s.Context(), noSubnet)
	s.want("attaching a missing subnet", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetNotFound")
	err = s.Client.RemoveRouterInterface(s.Context(), interfaceOf(missing, subnet))
	s.want("detaching from a missing router", err, neutron.ErrNotFound, http.StatusNotFound, "RouterNotFound")
	err = s.Client.RemoveRouterInterface(s.Context(), noSubnet)
	s.want("detaching a missing subnet", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetNotFound")
}

func testRouterWithoutGateway(s *suite) {
	subnet, err := s.tryCreate("10.0.0.0/24", noGateway)
	s.wantNil("creating", err)
	_, err = s.Client.AddRouterInterface(s.Context(), interfaceOf(s.createRouter("neutrontest"), subnet))
	s.wantRejected("attaching", err, "BadRequest")
}

func testOverlapOnRouter(s *suite) {
	router := s.createRouter("neutrontest")
	s.attach(router, s.createSubnet(s.createNetwork(), "10.0.0.0/24"))
	_, err := s.Client.AddRouterInterface(s.Context(),
		interfaceOf(router, s.createSubnet(s.createNetwork(), "10.0.0.0/16")))
	s.wantRejected("attaching a range that overlaps", err, "BadRequest")
}

func testIPv6OnRouter(s *suite) {
	network, router := s.createNetwork(), s.createRouter("neutrontest")
	four := s.attach(router, s.createSubnet(network, "10.0.0.0/24"))
	var six []neutron.RouterInterface
	for _, cidr := range []string{"fd00::/64", "fd01::/64"} {
		request := s.subnetOn(network, cidr)
		request.Gateway = new(request.CIDR.Addr().Next())
		subnet, err := s.Client.CreateSubnet(s.Context(), request)
		s.wantNil("creating", err)
		six = append(six, s.attach(router, subnet))
	}
	if six[0].PortID != six[1].PortID || six[0].PortID == four.PortID {
		s.Errorf("the ports are %s for IPv4, %s and %s for IPv6; want one for both IPv6 subnets", four.PortID, six[0].PortID,
			six[1].PortID)
	}
	s.wantInterfaces("attached", network.ID, four, six[0], six[1])
	s.wantNil("detaching", s.Client.RemoveRouterInterface(s.Context(), six[0]))
	s.wantInterfaces("detached", network.ID, four, six[1])
}
