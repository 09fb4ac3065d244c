package plan_test

import (
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

var (
	withRouter   = desiredFor(first + "router: {name: edge}")
	withRouterID = desiredFor(first + "router: {id: router-1}")
	otherGateway = with(withRouter, func(d *plan.Desired) { d.Gateway = addr("192.168.0.9") })
	otherCIDR    = with(withRouter, func(d *plan.Desired) { d.CIDR, d.Gateway = prefix("192.168.0.0/24"), addr("192.168.0.1") })
	noRouter     = with(withRouter, func(d *plan.Desired) { d.Absent = true })
	onlyRelease  = with(adopting(noRouter), func(d *plan.Desired) { d.Leave = plan.LeaveNetwork })

	reportRouter = with(withRouter, func(d *plan.Desired) { d.ReportDrift = true })

	edge       = neutron.Router{ID: "router-1", Name: "edge"}
	attached   = neutron.RouterInterface{RouterID: "router-1", NetworkID: "net-1", SubnetID: "sub-1", Address: addr("192.168.0.1"), PortID: "port-1"}
	toOther    = with(attached, func(i *neutron.RouterInterface) { i.RouterID, i.PortID = "router-2", "port-2" })
	besides    = with(toOther, func(i *neutron.RouterInterface) { i.Address = addr("192.168.0.2") })
	toAttach   = with(attached, func(i *neutron.RouterInterface) { i.PortID = "" })
	findRouter = plan.FindRouter{Filter: neutron.RouterFilter{Name: "edge"}}
	findRoutes = plan.FindRouterInterfaces{NetworkID: "net-1"}
	findPorts  = plan.FindPorts{NetworkID: "net-1"}
	machine    = neutron.Port{ID: "port-9", DeviceOwner: "compute:nova", SubnetIDs: []string{"sub-1"}}
	elsewhere  = neutron.Port{ID: "port-9", DeviceOwner: "compute:nova", SubnetIDs: []string{"sub-2"}}
	noAddress  = neutron.Port{ID: "port-8", DeviceOwner: "compute:nova"}
	edgeOnly   = []neutron.Router{edge}
	notRouted  = []neutron.RouterInterface{}
	noPorts    = []neutron.Port{}
	recordEdge = plan.RecordRouter{ID: "router-1", Name: "edge"}
	recordCore = plan.RecordRouter{ID: "router-2", Name: "core"}
)

// routed returns the state after our network and its router interfaces were found.
func routed(interfaces ...neutron.RouterInterface) plan.Actual {
	return foundSubnets(subnet).After(plan.FindExtensions{}, allExtensions).After(findRoutes, interfaces)
}

// routedBy returns the state in which the status records router-1 as edge.
func routedBy(interfaces ...neutron.RouterInterface) plan.Actual {
	return routed(interfaces...).After(recordEdge, nil)
}

// detach returns the step that detaches our subnet from router-1.
func detach(purpose string) plan.Step { return plan.DetachRouter{Interface: attached, For: purpose} }

var routerRows = map[string]row{
	"router, interfaces not looked for":                  {withRouter, foundSubnets(subnet), findRoutes},
	"router, and the subnet was created just now":        {withRouter, foundByMarker(recorded, empty).After(plan.FindExtensions{}, allExtensions).After(newSubnet, subnet), findRouter},
	"router, extensions not looked for":                  {withRouter, foundSubnets(subnet).After(findRoutes, notRouted), plan.FindExtensions{}},
	"router not looked for":                              {withRouter, routed(), findRouter},
	"router not looked for, by ID":                       {withRouterID, routed(), plan.FindRouter{Filter: neutron.RouterFilter{ID: "router-1"}}},
	"router that is not recorded":                        {withRouter, routed().After(findRouter, edgeOnly), plan.RecordRouter{ID: "router-1", Name: "edge"}},
	"router that is recorded":                            {withRouter, routedBy().After(findRouter, edgeOnly), plan.AttachRouter{Interface: toAttach}},
	"router that is recorded, but not looked for":        {withRouter, routedBy(), findRouter},
	"router, attached":                                   {withRouter, routedBy(attached), plan.Nothing{}},
	"router by ID, attached, extensions not looked for":  {withRouterID, foundSubnets(subnet).After(findRoutes, []neutron.RouterInterface{attached}), plan.Nothing{}},
	"router, attached just now":                          {withRouter, routedBy().After(findRouter, edgeOnly).After(plan.AttachRouter{}, attached), plan.Nothing{}},
	"router, attached by a user":                         {withRouterID, routed(attached), plan.Nothing{}},
	"router by name, attached by a user":                 {withRouter, routed(attached), findRouter},
	"router, attached by a user, and looked for by name": {withRouter, routed(attached).After(findRouter, edgeOnly), plan.Nothing{}},
	"router, and another one at another address":         {withRouter, routedBy(besides).After(findRouter, edgeOnly), plan.AttachRouter{Interface: toAttach}},
	"router, and another one has the gateway": {withRouter, routed(toOther).After(findRouter, edgeOnly),
		"blocked: NotOurs: subnet sub-1 is attached to router router-2, but not by this Network: it is not detached to make room for router router-1. Detach it (openstack router remove subnet router-2 sub-1), or set spec.router.id to router-2."},
	"router, drift is reported, interfaces not looked for": {reportRouter, foundSubnets(subnet), findRoutes},
	"router, drift is reported, router not looked for":     {reportRouter, routedBy(), findRouter},
	"router, drift is reported":                            {reportRouter, routedBy().After(findRouter, edgeOnly), "blocked: Drifted: Neutron no longer matches the spec. The next step to correct it would be: attach subnet to router router-1 with the address 192.168.0.1. To correct it, set spec.driftPolicy to Correct. To keep the change, change the spec."},
	"no such router":                                       {withRouter, routed().After(findRouter, []neutron.Router{}), `blocked: NotFound: router "edge", which spec.router names, does not exist in the controller's project. Create it (openstack router create), or set spec.router to an existing one.`},
	"no such router, and the status records another one":   {withRouter, routed(toOther).After(recordCore, nil).After(findRouter, []neutron.Router{}), `blocked: NotFound: router "edge", which spec.router names, does not exist in the controller's project. Create it (openstack router create), or set spec.router to an existing one.`},
	"several routers of the name":                          {withRouter, routed().After(findRouter, []neutron.Router{edge, {ID: "router-0", Name: "edge"}}), `blocked: Ambiguous: Neutron has 2 routers with the name "edge" (router-0, router-1). Set spec.router.id to one of these IDs, and remove spec.router.name.`},
	"router, and this Neutron has none":                    {withRouter, routed().After(plan.FindExtensions{}, []string{neutron.ExtensionMTU}), `blocked: ExtensionMissing: this cloud lacks a Neutron extension: spec.router requires "router". Everything else is as desired. Omit the field, or ask the operator of the cloud for the extension.`},
	"router, and the adopted subnet has no gateway": {
		adopting(with(withRouter, func(d *plan.Desired) { d.Gateway = none })),
		foundToAdopt(fresh, with(subnet, func(s *sub) { s.Description, s.Gateway = "mine", none })).After(plan.FindExtensions{}, allExtensions).After(findRoutes, notRouted).After(findRouter, edgeOnly),
		"blocked: NotOurs: spec.router requires a gateway, but the adopted subnet sub-1 has none: set spec.gateway to an address of 192.168.0.0/16, or remove spec.router.",
	},

	"another router":                         {withRouter, routed(toOther).After(recordCore, nil).After(findRouter, edgeOnly), plan.DetachRouter{Interface: toOther}},
	"another router, detached":               {withRouter, routed().After(recordCore, nil).After(findRouter, edgeOnly), plan.RecordRouter{ID: "router-1", Name: "edge", Replaces: "router-2"}},
	"another router, attached by a user":     {withRouterID, routed(attached).After(recordCore, nil), plan.RecordRouter{Replaces: "router-2"}},
	"no router any more":                     {present, routedBy(attached), detach("")},
	"no router any more, not looked for":     {present, foundSubnets(subnet).After(plan.RecordRouter{ID: "router-1", Name: ""}, nil), findRoutes},
	"no router any more, detached":           {present, routedBy(), plan.RecordRouter{Replaces: "router-1"}},
	"no router, and a user attached one":     {present, routed(attached), plan.Nothing{}},
	"another gateway":                        {otherGateway, routedBy(attached), detach("change its gateway")},
	"another gateway, attached by a user":    {otherGateway, routed(attached), changeGateway},
	"another gateway, not looked for":        {otherGateway, foundSubnets(subnet).After(recordEdge, nil), findRoutes},
	"another gateway, detached":              {otherGateway, routedBy(), changeGateway},
	"no gateway in Neutron, and still there": {withRouter, foundSubnets(with(subnet, func(s *sub) { s.Gateway = none })).After(findRoutes, []neutron.RouterInterface{attached}).After(recordEdge, nil), updateSubnet(plan.Change{What: "gateway", From: "none", To: "192.168.0.1"}, neutron.SubnetSettings{Gateway: new(addr("192.168.0.1"))})},

	"another range, ports not looked for":                    {otherCIDR, routedBy(attached), findPorts},
	"another range":                                          {otherCIDR, routedBy(attached).After(findPorts, []neutron.Port{elsewhere}), detach("replace subnet 192.168.0.0/16 by 192.168.0.0/24")},
	"another range, and a port without an address":           {otherCIDR, routedBy(attached).After(findPorts, []neutron.Port{noAddress}), detach("replace subnet 192.168.0.0/16 by 192.168.0.0/24")},
	"another range, detached":                                {otherCIDR, routedBy(), with(deleteSubnet, func(s *plan.DeleteSubnet) { s.For = "192.168.0.0/24" })},
	"another range, and a second router uses another subnet": {otherCIDR, routedBy(attached, with(besides, func(i *neutron.RouterInterface) { i.SubnetID = "sub-2" })).After(findPorts, noPorts), detach("replace subnet 192.168.0.0/16 by 192.168.0.0/24")},
	"another range, and a second router uses the subnet":     {otherCIDR, routedBy(attached, besides).After(findPorts, noPorts), "blocked: InUse: cannot replace subnet 192.168.0.0/16 by 192.168.0.0/24: ports use subnet sub-1 (subnet sub-1 to router router-2). Subnet sub-1 stays attached to router router-1 until they are deleted."},
	"another range, and a port uses the subnet":              {otherCIDR, routedBy(attached).After(findPorts, []neutron.Port{machine}), "blocked: InUse: cannot replace subnet 192.168.0.0/16 by 192.168.0.0/24: ports use subnet sub-1 (port-9 (compute:nova)). Subnet sub-1 stays attached to router router-1 until they are deleted."},

	"absent, router, subnets not looked for":        {noRouter, foundByMarker(recorded, empty), findSubnets},
	"absent, router, interfaces not looked for":     {noRouter, foundSubnets(subnet), findRoutes},
	"absent, router, ports not looked for":          {noRouter, routedBy(attached), findPorts},
	"absent, router":                                {noRouter, routedBy(attached).After(findPorts, noPorts), detach("delete the network")},
	"absent, router, detached":                      {noRouter, routedBy(attached).After(detach(""), nil), deleteNetwork},
	"absent, router that only the status names":     {absent, routedBy(attached).After(findPorts, noPorts), detach("delete the network")},
	"absent, router, and a port uses the subnet":    {noRouter, routedBy(attached).After(findPorts, []neutron.Port{machine}), "blocked: InUse: cannot delete the network: ports use network net-1 (port-9 (compute:nova)). Subnet sub-1 stays attached to router router-1 until they are deleted."},
	"absent, router, and a port without an address": {noRouter, routedBy(attached).After(findPorts, []neutron.Port{noAddress}), "blocked: InUse: cannot delete the network: ports use network net-1 (port-8 (compute:nova)). Subnet sub-1 stays attached to router router-1 until they are deleted."},
	"absent, router, and a second router uses another subnet": {noRouter, routedBy(attached, with(besides, func(i *neutron.RouterInterface) { i.SubnetID = "sub-2" })).After(findPorts, noPorts),
		"blocked: InUse: cannot delete the network: ports use network net-1 (subnet sub-2 to router router-2). Subnet sub-1 stays attached to router router-1 until they are deleted."},
	"absent, router, and a second router uses the subnet":                    {noRouter, routedBy(attached, besides).After(findPorts, noPorts), "blocked: InUse: cannot delete the network: ports use network net-1 (subnet sub-1 to router router-2). Subnet sub-1 stays attached to router router-1 until they are deleted."},
	"absent, router, attached by a user":                                     {noRouter, routed(attached), "blocked: InUse: network net-1 cannot be deleted: it is attached to routers, but not by this Network (subnet sub-1 to router router-1). Detach them first (openstack router remove subnet), or set spec.deletionPolicy to Retain."},
	"absent, everything stays":                                               {with(noRouter, func(d *plan.Desired) { d.Leave = plan.LeaveAll }), routedBy(attached), retainNetwork},
	"leave the network, router on our subnet":                                {onlyRelease, foundToAdopt(recorded, subnet).After(recordEdge, nil).After(findRoutes, []neutron.RouterInterface{attached}).After(findPorts, noPorts), detach("delete the subnet")},
	"leave the network, router on our subnet, and a port without an address": {onlyRelease, foundToAdopt(recorded, subnet).After(recordEdge, nil).After(findRoutes, []neutron.RouterInterface{attached}).After(findPorts, []neutron.Port{noAddress}), detach("delete the subnet")},
	"leave the network, router on the adopted subnet":                        {onlyRelease, foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = "mine" })).After(recordEdge, nil).After(findRoutes, []neutron.RouterInterface{attached}), detach("")},
	"leave the network, router on the subnet that was adopted":               {with(onlyRelease, func(d *plan.Desired) { d.CIDR = prefix("10.0.0.0/24") }), foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = "mine" })).After(recordEdge, nil).After(findRoutes, []neutron.RouterInterface{attached}), detach("")},
	"adopting, another range, and the adopted subnet is on the router":       {adopting(with(withRouter, func(d *plan.Desired) { d.CIDR = prefix("10.0.0.0/24") })), foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = "mine" })).After(recordEdge, nil).After(findRoutes, []neutron.RouterInterface{attached}), detach("use 10.0.0.0/24")},
	"adopting, another range, interfaces not looked for":                     {adopting(with(withRouter, func(d *plan.Desired) { d.CIDR = prefix("10.0.0.0/24") })), foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = "mine" })).After(recordEdge, nil), findRoutes},
	"leave the network, router on a subnet of others":                        {onlyRelease, foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = otherCluster })).After(recordEdge, nil).After(findRoutes, []neutron.RouterInterface{attached}), plan.RemoveFinalizer{}},
}

var changeGateway = updateSubnet(plan.Change{What: "gateway", From: "192.168.0.1", To: "192.168.0.9"},
	neutron.SubnetSettings{Gateway: new(addr("192.168.0.9")), Pools: plan.Pools(prefix("192.168.0.0/16"), addr("192.168.0.9"))})
