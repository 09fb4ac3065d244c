package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// none is the address of no gateway.
var none netip.Addr

// world is a Neutron, as far as it matters to a plan, and the object's finalizer.
type world struct {
	finalizer  bool
	networks   []neutron.Network
	subnets    []neutron.Subnet
	pools      []neutron.SubnetPool
	extensions []string
	routers    []neutron.Router
	interfaces []neutron.RouterInterface
	ports      map[string][]neutron.Port // by network; those that are not of routers, some without an address
	hidden     string                    // the ID of a network of another project
	created    int
}

func (w *world) clone() world {
	clone := *w
	clone.networks, clone.subnets, clone.interfaces = slices.Clone(w.networks), slices.Clone(w.subnets), slices.Clone(w.interfaces)
	return clone
}

func (w *world) network(id string) *neutron.Network {
	if i := slices.IndexFunc(w.networks, func(n neutron.Network) bool { return n.ID == id }); i >= 0 {
		return &w.networks[i]
	}
	return nil
}

func (w *world) subnet(id string) *neutron.Subnet {
	if i := slices.IndexFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == id }); i >= 0 {
		return &w.subnets[i]
	}
	return nil
}

func (w *world) subnetsOf(network string) []neutron.Subnet {
	return slices.DeleteFunc(slices.Clone(w.subnets), func(s neutron.Subnet) bool { return s.NetworkID != network })
}

func (w *world) findNetworks(filter neutron.NetworkFilter) []neutron.Network {
	var found []neutron.Network
	for _, n := range w.networks {
		if n.ID != w.hidden && (filter.ID == "" || n.ID == filter.ID) && (filter.Name == "" || n.Name == filter.Name || isMarked(n)) {
			n.SubnetIDs = nil
			for _, s := range w.subnetsOf(n.ID) {
				n.SubnetIDs = append(n.SubnetIDs, s.ID)
			}
			found = append(found, n)
		}
	}
	return found
}

// isMarked reports whether a network has a marker of the object. The cache of Neutron's
// state finds it under any name.
func isMarked(n neutron.Network) bool {
	return owner.HasMarker(n.Description) || owner.HasRetainedMarker(n.Description)
}

// marked returns the networks with a marker of the object.
func (w *world) marked() []neutron.Network {
	return slices.DeleteFunc(w.findNetworks(neutron.NetworkFilter{}), func(n neutron.Network) bool { return !isMarked(n) })
}

func (w *world) findPools(filter neutron.SubnetPoolFilter) []neutron.SubnetPool {
	return slices.DeleteFunc(slices.Clone(w.pools), func(p neutron.SubnetPool) bool {
		return filter.ID != "" && p.ID != filter.ID || filter.Name != "" && p.Name != filter.Name
	})
}

// isOurs reports whether a network belongs to the object: it has one of its
// markers; or the status names it, a user removed the marker, and our subnet is
// on it.
func (w *world) isOurs(n neutron.Network, status plan.Record) bool {
	isOurs := func(s neutron.Subnet) bool { return s.NetworkID == n.ID && s.Description == marker }
	return isMarked(n) || n.ID == status.NetworkID && !neutron.IsMarker(n.Description) && slices.ContainsFunc(w.subnets, isOurs)
}

func (w *world) isAdopted(n neutron.Network, desired plan.Desired) bool {
	return desired.Adopted == n.ID && n.ID != w.hidden && !neutron.IsMarker(n.Description)
}

// isDuplicate reports whether a network is exactly what we create, with nothing of
// others on it, and names another request than the others of ours. A process of ours may
// have restored its looks.
func (w *world) isDuplicate(n neutron.Network, desired plan.Desired, status plan.Record, restored bool) bool {
	request := neutron.RequestOf(n.Description)
	isForeignTag := func(tag string) bool {
		return !slices.Contains(desired.Tags, tag) && !slices.Contains(status.Tags, tag)
	}
	isForeign := func(s neutron.Subnet) bool { return s.NetworkID == n.ID && s.Description != marker }
	isCopy := func(m neutron.Network) bool { return m.ID != n.ID && neutron.RequestOf(m.Description) == request }
	isOther := func(m neutron.Network) bool { return m.ID != n.ID && w.isOurs(m, status) }
	return (n.Name == owner.String() && request != "" || restored && w.isOurs(n, status)) && owner.HasMarker(n.Description) &&
		!slices.ContainsFunc(w.networks, isCopy) && slices.ContainsFunc(w.networks, isOther) &&
		!slices.ContainsFunc(n.Tags, isForeignTag) && !slices.ContainsFunc(w.subnets, isForeign)
}

// hasOther reports whether another subnet of ours is on the same network.
func (w *world) hasOther(s neutron.Subnet) bool {
	return slices.ContainsFunc(w.subnets, func(r neutron.Subnet) bool {
		return r.ID != s.ID && r.NetworkID == s.NetworkID && r.Description == marker
	})
}

// hasRangeOf reports whether a subnet has all that cannot be changed later. The
// subnet pool may be known by its name only.
func hasRangeOf(s neutron.Subnet, desired plan.Desired) bool {
	if s.AddressMode != desired.AddressMode || s.RAMode != desired.RAMode {
		return false
	}
	if pool := desired.SubnetPool; pool != nil {
		return s.SubnetPoolID != "" && s.SubnetPoolID == pool.ID && (pool.PrefixLength == 0 || s.CIDR.Bits() == pool.PrefixLength)
	}
	return s.CIDR == desired.CIDR
}

// mayBlock reports whether a world can be a reason to block a plan.
func (w *world) mayBlock(reason plan.Reason, desired plan.Desired, status plan.Record) bool {
	router, pool := *cmp.Or(desired.Router, &plan.Router{ID: "none"}), *cmp.Or(desired.SubnetPool, &plan.SubnetPool{ID: "none"})
	routers := w.findRouters(neutron.RouterFilter{ID: router.ID, Name: router.Name})
	pools := w.findPools(neutron.SubnetPoolFilter{ID: pool.ID, Name: pool.Name})
	isForeign := func(s neutron.Subnet) bool { return s.Description != marker }
	isOurs := func(id string) bool {
		n := w.network(id)
		return n != nil && (w.isOurs(*n, status) || w.isAdopted(*n, desired))
	}
	switch string(reason) {
	case string(plan.ReasonAmbiguous):
		isOneOfTwo := func(s neutron.Subnet) bool { return s.Description == marker && w.hasOther(s) }
		return desired.Adopted == "" && (len(w.marked()) > 1 || len(w.marked()) == 1 && !w.finalizer) ||
			slices.ContainsFunc(w.subnets, isOneOfTwo) || len(routers) > 1 || len(pools) > 1
	case string(plan.ReasonInvalidSpec):
		hasNoGateway := func(s neutron.Subnet) bool { return s.NetworkID == desired.Adopted && !s.Gateway.IsValid() }
		return desired.Router != nil && slices.ContainsFunc(w.subnets, hasNoGateway)
	case string(plan.ReasonNotOurs):
		isTaken := func(i neutron.RouterInterface) bool { return i.Address == w.subnet(i.SubnetID).Gateway }
		isInTheWay := func(s neutron.Subnet) bool {
			overlaps := desired.CIDR.IsValid() && s.CIDR.Overlaps(desired.CIDR)
			return isForeign(s) && isOurs(s.NetworkID) && (overlaps || s.ID == status.SubnetID)
		}
		adopted, recorded := w.network(desired.Adopted), w.network(status.NetworkID)
		return desired.Router != nil && slices.ContainsFunc(w.interfaces, isTaken) || slices.ContainsFunc(w.subnets, isInTheWay) ||
			adopted != nil && neutron.IsMarker(adopted.Description) ||
			adopted == nil && recorded != nil && !w.isOurs(*recorded, status)
	case string(plan.ReasonNotFound):
		n := w.network(desired.Adopted)
		return desired.Adopted != "" && (n == nil || n.ID == w.hidden) ||
			desired.Router != nil && len(routers) == 0 || desired.SubnetPool != nil && len(pools) == 0
	case string(plan.ReasonExtensionMissing):
		for extension, isUsed := range map[string]bool{
			neutron.ExtensionMTU: desired.Settings.MTU != nil, neutron.ExtensionPortSecurity: desired.Settings.PortSecurity != nil,
			neutron.ExtensionDNS: desired.Settings.DNSDomain != nil, neutron.ExtensionTags: desired.Tags != nil,
			neutron.ExtensionSubnetPools: desired.SubnetPool != nil, neutron.ExtensionRouter: desired.Router != nil,
		} {
			if isUsed && !slices.Contains(w.extensions, extension) {
				return true
			}
		}
	case string(plan.ReasonSubnetPoolMismatch):
		return slices.ContainsFunc(pools, func(p neutron.SubnetPool) bool {
			isOther := func(address netip.Addr) bool { return address.Is4() != (p.IPVersion == 4) }
			isOtherRoute := func(r neutron.HostRoute) bool { return isOther(r.NextHop) }
			length := pool.PrefixLength
			return p.IPVersion == 4 && desired.AddressMode+desired.RAMode != "" ||
				slices.ContainsFunc(desired.Nameservers, isOther) || slices.ContainsFunc(desired.HostRoutes, isOtherRoute) ||
				length != 0 && (length < p.MinPrefixLength || length > p.MaxPrefixLength)
		})
	case string(plan.ReasonInUse):
		isForeignOnOurs := func(s neutron.Subnet) bool { return isForeign(s) && isOurs(s.NetworkID) }
		return desired.Absent && slices.ContainsFunc(w.subnets, isForeignOnOurs) || slices.ContainsFunc(w.subnets, w.isUsed) ||
			slices.ContainsFunc(slices.Collect(maps.Keys(w.ports)), isOurs)
	}
	return false
}

// find returns the result of a step that reads.
func (w *world) find(step plan.Step) any {
	switch step := step.(type) {
	case plan.FindNetwork:
		return w.findNetworks(step.Filter)
	case plan.FindSubnets:
		return w.subnetsOf(step.Filter.NetworkID)
	case plan.FindSubnetPool:
		return w.findPools(step.Filter)
	case plan.FindRouter:
		return w.findRouters(step.Filter)
	case plan.FindRouterInterfaces:
		return w.interfacesOn(step.NetworkID, "")
	case plan.FindPorts:
		return w.ports[step.NetworkID]
	}
	return w.extensions
}

func (w *world) findRouters(filter neutron.RouterFilter) []neutron.Router {
	return slices.DeleteFunc(slices.Clone(w.routers), func(r neutron.Router) bool {
		return filter.ID != "" && r.ID != filter.ID || filter.Name != "" && r.Name != filter.Name
	})
}

// interfacesOn returns the router interfaces on a network, or on one of its subnets.
func (w *world) interfacesOn(networkID, subnetID string) []neutron.RouterInterface {
	return slices.DeleteFunc(slices.Clone(w.interfaces), func(i neutron.RouterInterface) bool {
		return i.NetworkID != networkID || subnetID != "" && i.SubnetID != subnetID
	})
}

// isUsed reports whether a port or a router uses a subnet.
func (w *world) isUsed(s neutron.Subnet) bool {
	return w.hasPort(s.NetworkID, s.ID) || len(w.interfacesOn(s.NetworkID, s.ID)) > 0
}

// hasPort reports whether a port that is not of a router uses a subnet.
func (w *world) hasPort(networkID, subnetID string) bool {
	return slices.ContainsFunc(w.ports[networkID], func(p neutron.Port) bool { return slices.Contains(p.SubnetIDs, subnetID) })
}

// rejects reports whether Neutron rejects a step because a port or a router uses
// something.
func (w *world) rejects(step plan.Step) bool {
	hasGateway := func(i neutron.RouterInterface) bool { return i.Address == w.subnet(i.SubnetID).Gateway }
	switch step := step.(type) {
	case plan.DeleteNetwork:
		return len(w.ports[step.ID]) > 0 || len(w.interfacesOn(step.ID, "")) > 0
	case plan.DeleteSubnet:
		return w.isUsed(*w.subnet(step.ID))
	case plan.UpdateSubnet:
		s := w.subnet(step.ID)
		changes := step.Update.Gateway != nil && step.Update.Gateway.IsValid() && *step.Update.Gateway != s.Gateway
		return changes && slices.ContainsFunc(w.interfacesOn(s.NetworkID, s.ID), hasGateway)
	case plan.DetachRouter:
		return step.Interface.RouterID == "router-routes"
	}
	return false
}

// attach attaches a subnet to a router. A plan must send no request that Neutron rejects.
func (w *world) attach(t *testing.T, requested neutron.RouterInterface) neutron.RouterInterface {
	t.Helper()
	s := w.subnet(requested.SubnetID)
	for _, other := range w.interfacesOn(s.NetworkID, s.ID) {
		if other.RouterID == requested.RouterID || other.Address == s.Gateway {
			t.Fatalf("%+v is attached to router %s already", s, other.RouterID)
		}
	}
	if len(w.findRouters(neutron.RouterFilter{ID: requested.RouterID})) == 0 || !s.Gateway.IsValid() || s.Gateway != requested.Address {
		t.Fatalf("%+v cannot be attached to %+v", s, requested)
	}
	requested.PortID = w.newID("port")
	w.interfaces = append(w.interfaces, requested)
	return requested
}

// detach detaches a subnet from a router.
func (w *world) detach(t *testing.T, removed neutron.RouterInterface) {
	t.Helper()
	before := len(w.interfaces)
	w.interfaces = slices.DeleteFunc(w.interfaces, func(i neutron.RouterInterface) bool {
		return i.RouterID == removed.RouterID && i.SubnetID == removed.SubnetID
	})
	if len(w.interfaces) != before-1 {
		t.Fatalf("404: %+v is not attached", removed)
	}
}

// apply applies one request, and returns its result. Like Neutron, it rejects one with an
// outdated revision.
func (w *world) apply(t *testing.T, step plan.Step) any {
	t.Helper()
	if w.isOutdated(step) {
		t.Fatalf("404 or 412: %s", step)
	}
	switch step := step.(type) {
	case plan.AddFinalizer:
		w.finalizer = true
	case plan.RemoveFinalizer:
		w.finalizer = false
	case plan.CreateNetwork:
		created := w.newNetwork(step.Network)
		w.networks = append(w.networks, created)
		return created
	case plan.UpdateNetwork:
		return w.updateNetwork(step.ID, step.Update)
	case plan.RetainNetwork:
		return w.updateNetwork(step.ID, step.Update)
	case plan.DeleteNetwork:
		w.networks = slices.DeleteFunc(w.networks, func(n neutron.Network) bool { return n.ID == step.ID })
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.NetworkID == step.ID })
	case plan.AddTag:
		w.setTag(step.ID, step.Tag, true)
	case plan.RemoveTag:
		w.setTag(step.ID, step.Tag, false)
	case plan.CreateSubnet:
		return w.addSubnet(t, w.newSubnet(step.Subnet))
	case plan.UpdateSubnet:
		s := w.subnet(step.ID)
		s.Name = cmp.Or(step.Update.Name, s.Name)
		s.Description = cmp.Or(step.Update.Description, s.Description)
		setSubnet(s, step.Update.SubnetSettings)
		s.Revision++
		w.network(s.NetworkID).Revision++
		return *s
	case plan.DeleteSubnet:
		w.network(w.subnet(step.ID).NetworkID).Revision++
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == step.ID })
	case plan.AttachRouter:
		return w.attach(t, step.Interface)
	case plan.DetachRouter:
		w.detach(t, step.Interface)
	}
	return nil
}

// isOutdated reports whether Neutron rejects a step because the object is gone or has
// another revision.
func (w *world) isOutdated(step plan.Step) bool {
	network := func(id string, revision int) bool { n := w.network(id); return n == nil || n.Revision != revision }
	subnet := func(id string, revision int) bool { s := w.subnet(id); return s == nil || s.Revision != revision }
	switch step := step.(type) {
	case plan.UpdateNetwork:
		return network(step.ID, step.Update.Revision)
	case plan.RetainNetwork:
		return network(step.ID, step.Update.Revision)
	case plan.DeleteNetwork:
		return network(step.ID, step.Revision)
	case plan.UpdateSubnet:
		return subnet(step.ID, step.Update.Revision)
	case plan.DeleteSubnet:
		return subnet(step.ID, step.Revision)
	}
	return false
}

func (w *world) addSubnet(t *testing.T, created neutron.Subnet) neutron.Subnet {
	t.Helper()
	for _, other := range w.subnetsOf(created.NetworkID) {
		if other.CIDR.Overlaps(created.CIDR) || other.Description == marker && other.SubnetPoolID != created.SubnetPoolID {
			t.Fatalf("400: %+v cannot be beside %+v", created, other)
		}
	}
	w.subnets = append(w.subnets, created)
	w.network(created.NetworkID).Revision++
	return created
}

func (w *world) updateNetwork(id string, update neutron.NetworkUpdate) neutron.Network {
	n := w.network(id)
	n.Name = cmp.Or(update.Name, n.Name)
	n.Description = cmp.Or(update.Description, n.Description)
	setNetwork(n, update.NetworkSettings)
	n.Revision++
	return w.findNetworks(neutron.NetworkFilter{ID: id})[0]
}

func (w *world) setTag(networkID, tag string, added bool) {
	n := w.network(networkID)
	n.Tags = slices.DeleteFunc(slices.Clone(n.Tags), func(s string) bool { return s == tag })
	if added {
		n.Tags = append(n.Tags, tag)
	}
	n.Revision++
}

// newNetwork creates a network as Neutron does.
func (w *world) newNetwork(request neutron.NewNetwork) neutron.Network {
	created := neutron.Network{ID: w.newID("net"), Name: request.Name, Description: request.Description, NetworkSettings: w.defaults(), CreatedAt: createdAt.Add(24 * time.Hour)}
	setNetwork(&created, request.NetworkSettings)
	return created
}

// defaults are the settings that Neutron chooses: those of its extensions.
func (w *world) defaults() neutron.NetworkSettings {
	settings := neutron.NetworkSettings{AdminStateUp: new(true)}
	if slices.Contains(w.extensions, neutron.ExtensionMTU) {
		settings.MTU = new(1450)
	}
	if slices.Contains(w.extensions, neutron.ExtensionPortSecurity) {
		settings.PortSecurity = new(true)
	}
	if slices.Contains(w.extensions, neutron.ExtensionDNS) {
		settings.DNSDomain = new("")
	}
	return settings
}

// setNetwork changes settings. Neutron rejects an attribute without its extension.
func setNetwork(n *neutron.Network, to neutron.NetworkSettings) {
	if to.MTU != nil && n.MTU == nil || to.PortSecurity != nil && n.PortSecurity == nil || to.DNSDomain != nil && n.DNSDomain == nil {
		panic("400 Unrecognized attribute(s)")
	}
	n.AdminStateUp = cmp.Or(to.AdminStateUp, n.AdminStateUp)
	n.PortSecurity = cmp.Or(to.PortSecurity, n.PortSecurity)
	n.DNSDomain = cmp.Or(to.DNSDomain, n.DNSDomain)
	if to.MTU != nil {
		n.MTU = new(cmp.Or(*to.MTU, 1450))
	}
}

// newSubnet creates a subnet as Neutron does.
func (w *world) newSubnet(request neutron.NewSubnet) neutron.Subnet {
	created := neutron.Subnet{
		ID: w.newID("sub"), NetworkID: request.NetworkID, Name: request.Name, Description: request.Description,
		CIDR: request.CIDR, DHCP: true, CreatedAt: createdAt.Add(24 * time.Hour), AddressMode: request.AddressMode, RAMode: request.RAMode,
	}
	if pool := request.FromPool; pool != nil {
		created.SubnetPoolID = pool.SubnetPoolID
		created.CIDR = prefix(fmt.Sprintf("10.77.%d.0/%d", w.created, cmp.Or(pool.PrefixLength, 26)))
		if pool.IPVersion == 6 {
			created.CIDR = prefix(fmt.Sprintf("fd77:%x::/%d", w.created, cmp.Or(pool.PrefixLength, 64)))
		}
	}
	if created.Gateway = created.CIDR.Addr(); created.Gateway.Is4() || request.FromPool != nil {
		created.Gateway = created.Gateway.Next()
	}
	created.Gateway = *cmp.Or(request.Gateway, &created.Gateway)
	created.Pools = plan.Pools(created.CIDR, created.Gateway)
	setSubnet(&created, request.SubnetSettings)
	return created
}

func setSubnet(s *neutron.Subnet, to neutron.SubnetSettings) {
	s.Gateway = *cmp.Or(to.Gateway, &s.Gateway)
	s.DHCP = *cmp.Or(to.DHCP, &s.DHCP)
	s.Nameservers = *cmp.Or(to.Nameservers, &s.Nameservers)
	s.HostRoutes = *cmp.Or(to.HostRoutes, &s.HostRoutes)
	if to.Pools != nil {
		s.Pools = to.Pools
	}
	if slices.ContainsFunc(s.Pools, func(p neutron.Pool) bool { return contains(p, s.Gateway) }) {
		panic("409 GatewayConflictWithAllocationPools")
	}
}

func (w *world) newID(kind string) string {
	w.created++
	return fmt.Sprintf("new-%s-%d", kind, w.created)
}

// The choices of a random world.
var (
	extensionSets = [][]string{
		allExtensions, allExtensions, allExtensions, allExtensions, allExtensions, allExtensions, allExtensions, allExtensions,
		{neutron.ExtensionMTU, neutron.ExtensionTags}, {neutron.ExtensionDNS, neutron.ExtensionPortSecurity, neutron.ExtensionSubnetPools}, {},
	}
	routers = []neutron.Router{
		{ID: "router-1", Name: "edge"}, {ID: "router-2", Name: "core"}, {ID: "router-3", Name: "both"}, {ID: "router-4", Name: "both"},
		{ID: "router-routes", Name: "routes"}, // a route requires each of its interfaces
	}
	subnetPools = []neutron.SubnetPool{
		{ID: "pool-1", Name: "one", IPVersion: 4, MinPrefixLength: 16, MaxPrefixLength: 28},
		{ID: "pool-2", Name: "two", IPVersion: 6, MinPrefixLength: 48, MaxPrefixLength: 64},
		{ID: "pool-3", Name: "both", IPVersion: 4}, {ID: "pool-4", Name: "both", IPVersion: 4},
	}
)

// dice makes random choices.
type dice struct{ *rand.Rand }

// oneIn reports true once in n times.
func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, choices ...T) T { return choices[d.IntN(len(choices))] }

// randomWorld returns a world with a few networks and subnets, a status that may
// name them, and a desired state that resembles some of them.
func randomWorld(random *rand.Rand, absent bool) (world, plan.Actual, plan.Desired) {
	d := dice{random}
	w := world{finalizer: !d.oneIn(6), pools: subnetPools, extensions: pick(d, extensionSets...)}
	desired := d.desired(absent)
	status := plan.Actual{Cloud: pick(d, here, here, here, here, here, here, here, here, "")}.After(plan.FindCloud{}, here)
	for i := range pick(d, 0, 1, 1, 1, 2, 2, 3) {
		n := d.network(&w, fmt.Sprintf("net-%d", i))
		w.networks = append(w.networks, n)
		for range d.IntN(3) {
			s := d.subnet(n, fmt.Sprintf("sub-%d", len(w.subnets)), desired)
			overlaps := func(r neutron.Subnet) bool { return r.NetworkID == n.ID && r.CIDR == s.CIDR }
			if !slices.ContainsFunc(w.subnets, overlaps) { // Neutron rejects one that does
				w.subnets = append(w.subnets, s)
			}
		}
		if owner.HasMarker(n.Description) && !d.oneIn(3) || n.ID == desired.Adopted && d.oneIn(2) || d.oneIn(6) {
			status.NetworkID = n.ID
		}
	}
	if d.oneIn(9) {
		status.NetworkID = "gone"
	}
	d.fillStatus(&w, &status)
	d.addRouters(&w, &status, &desired)
	if d.oneIn(4) {
		w.hidden = desired.Adopted
	}
	return w, status, desired
}

// makeOutdated changes a world to an earlier one: other clients have changed objects
// since, deleted some, and created subnets on networks. Each change of an object
// increased its revision. What had our marker then, or has it now, is not new.
func (d dice) makeOutdated(w *world) {
	for i := range w.subnets {
		s := &w.subnets[i]
		if !d.oneIn(3) {
			continue
		}
		s.Revision--
		w.network(s.NetworkID).Revision--
		s.Gateway = pick(d, s.Gateway, s.CIDR.Addr().Next(), none)
		s.DHCP = d.oneIn(2)
		if s.Description != marker {
			s.Description = pick(d, s.Description, marker, "theirs")
		}
	}
	for i := range w.networks {
		n := &w.networks[i]
		isNew := func(s neutron.Subnet) bool { return s.NetworkID == n.ID && s.Description != marker && d.oneIn(3) }
		if before := len(w.subnets); d.oneIn(2) {
			w.subnets = slices.DeleteFunc(w.subnets, isNew)
			n.Revision -= before - len(w.subnets)
		}
		if !d.oneIn(3) {
			continue
		}
		n.Revision--
		n.Name = pick(d, n.Name, owner.String(), "x")
		n.AdminStateUp = new(d.oneIn(2))
		if !isMarked(*n) {
			n.Description = pick(d, n.Description, ours, owner.RetainedMarker(), "theirs")
		}
	}
	if w.finalizer && d.oneIn(4) { // a create request was pending
		w.networks = slices.DeleteFunc(w.networks, isMarked)
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return w.network(s.NetworkID) == nil })
	}
	if d.oneIn(4) {
		deleted := d.network(w, pick(d, "gone", "deleted"))
		w.networks = append(w.networks, deleted)
		w.subnets = append(w.subnets, neutron.Subnet{ID: "deleted-subnet", NetworkID: deleted.ID, Description: marker, CIDR: prefix("10.9.0.0/24")})
	}
}

// addRouters attaches some subnets to routers. The status may record one of them, and
// the spec may name one. The dice before it do not depend on routers.
func (d dice) addRouters(w *world, status *plan.Actual, desired *plan.Desired) {
	if d.oneIn(2) && !desired.NoGateway {
		desired.Router = pick(d, &plan.Router{Name: "edge"}, &plan.Router{ID: "router-1"}, &plan.Router{Name: "core"},
			&plan.Router{Name: pick(d, "both", "missing", "routes")}, &plan.Router{ID: pick(d, "router-2", "router-3", "missing")})
	}
	if !slices.Contains(w.extensions, neutron.ExtensionRouter) {
		return
	}
	w.routers, w.ports = routers, map[string][]neutron.Port{}
	for i, s := range w.subnets {
		if d.oneIn(4) {
			port := neutron.Port{ID: fmt.Sprintf("port-%d", i), SubnetIDs: []string{s.ID}}
			if d.oneIn(3) {
				port.SubnetIDs = nil
			}
			w.ports[s.NetworkID] = append(w.ports[s.NetworkID], port)
		}
		for n := range pick(d, 0, 0, 1, 1, 2) {
			router, address := pick(d, "router-1", "router-1", "router-1", "router-2", "router-3", "router-routes", "foreign"), s.Gateway
			if n > 0 || !address.IsValid() || d.oneIn(6) {
				address = s.CIDR.Addr().Next().Next().Next()
			}
			if slices.ContainsFunc(w.interfacesOn(s.NetworkID, s.ID), func(i neutron.RouterInterface) bool { return i.RouterID == router }) {
				continue
			}
			w.interfaces = append(w.interfaces, neutron.RouterInterface{RouterID: router, NetworkID: s.NetworkID, SubnetID: s.ID, Address: address, PortID: fmt.Sprintf("interface-%d-%d", i, n)})
			if d.oneIn(2) && s.Description == marker {
				status.RouterID, status.RouterName = router, ""
				if found := w.findRouters(neutron.RouterFilter{ID: router}); len(found) > 0 && d.oneIn(2) {
					status.RouterName = found[0].Name
				}
			}
		}
	}
	if d.oneIn(9) {
		status.RouterID, status.RouterName = pick(d, "router-1", "router-2", "gone"), pick(d, "", "edge")
	}
}

func (d dice) network(w *world, id string) neutron.Network {
	n := neutron.Network{
		ID:              id,
		Name:            pick(d, owner.String(), owner.String(), owner.String(), owner.String(), owner.String(), "x"),
		Description:     pick(d, marker, ours, ours, owner.NetworkMarker("r2", false), owner.NetworkMarker("r3", d.oneIn(2)), owner.RetainedMarker(), "", "theirs", marker+"x", otherCluster),
		CreatedAt:       createdAt.Add(time.Duration(d.IntN(7)) * time.Minute),
		NetworkSettings: w.defaults(),
		Tags:            pick(d, nil, nil, nil, []string{"theirs"}, []string{"a"}, []string{"old", "theirs"}),
		Revision:        d.IntN(9),
	}
	if !slices.Contains(w.extensions, neutron.ExtensionTags) {
		n.Tags = nil
	}
	if d.oneIn(8) {
		n.CreatedAt = time.Time{}
	}
	n.AdminStateUp = new(!d.oneIn(4))
	if n.PortSecurity != nil {
		n.PortSecurity = new(!d.oneIn(4))
	}
	if n.DNSDomain != nil {
		n.DNSDomain = new(pick(d, "", "", "", "theirs."))
	}
	return n
}

func (d dice) subnet(n neutron.Network, id string, desired plan.Desired) neutron.Subnet {
	if owner.HasMarker(n.Description) {
		n.Description = marker
	}
	s := neutron.Subnet{
		ID: id, NetworkID: n.ID, Name: n.Name,
		Description: pick(d, n.Description, n.Description, n.Description, marker, "theirs", otherCluster),
		CIDR:        pick(d, desired.CIDR, desired.CIDR, prefix("192.168.0.0/16"), prefix("10.0.0.0/24"), prefix("fd00::/64")),
		CreatedAt:   createdAt.Add(time.Duration(d.IntN(7)) * time.Minute),
		DHCP:        !d.oneIn(4),
		Revision:    d.IntN(9),
	}
	if desired.SubnetPool != nil && d.oneIn(2) || d.oneIn(8) {
		s.SubnetPoolID, s.CIDR = pick(d, "pool-1", "pool-1", "pool-2"), prefix(fmt.Sprintf("10.66.%s.0/%d", id[4:], 24+d.IntN(5)))
	}
	if !s.CIDR.IsValid() {
		s.CIDR = prefix("172.16.0.0/24")
	}
	s.Gateway = pick(d, s.CIDR.Addr().Next(), s.CIDR.Addr().Next(), s.CIDR.Addr().Next().Next(), none)
	s.Pools = plan.Pools(s.CIDR, s.Gateway)
	if d.oneIn(4) {
		s.Nameservers = []netip.Addr{s.CIDR.Addr().Next()}
	}
	if d.oneIn(4) {
		s.HostRoutes = []neutron.HostRoute{{Destination: prefix("10.98.0.0/16"), NextHop: s.CIDR.Addr().Next()}}
	}
	if d.oneIn(3) && s.CIDR.Addr().Is6() {
		s.AddressMode, s.RAMode = "slaac", pick(d, "slaac", "")
	}
	return s
}

// fillStatus adds to a status the fields of the network and subnet that it names.
// Another client may have removed the owner marker of the subnet since.
func (d dice) fillStatus(w *world, status *plan.Actual) {
	n := w.network(status.NetworkID)
	if n == nil {
		return
	}
	if n.MTU != nil && owner.HasMarker(n.Description) {
		status.MTU, status.DefaultMTU = 1450, 1450
		n.MTU = new(pick(d, 1450, 1450, 1400))
	}
	status.Tags = pick(d, nil, []string{"old"}, []string{"a", "old"})
	if subnets := w.subnetsOf(n.ID); len(subnets) > 0 && !d.oneIn(3) {
		s := w.subnet(pick(d, subnets...).ID)
		if s.Description != marker {
			return
		}
		status.SubnetID, status.CIDR, status.Gateway = s.ID, s.CIDR, s.Gateway
		if status.SubnetPoolID = s.SubnetPoolID; s.SubnetPoolID == "pool-1" {
			status.SubnetPoolName = "one"
		}
		if d.oneIn(4) {
			s.Description = ""
		}
	}
}

// desired returns the desired state of a valid spec.
func (d dice) desired(absent bool) plan.Desired {
	spec := d.spec()
	switch {
	case d.oneIn(5):
		spec.NetworkID = pick(d, "net-0", "net-0", "net-0", "net-1")
	default:
		d.addNetworkFields(&spec)
	}
	desired := plan.DesiredFor(owner, spec)
	desired.Absent, desired.Request = absent, "new"
	switch {
	case d.oneIn(4):
		desired.Leave = plan.LeaveAll
	case d.oneIn(2) && desired.Adopted != "":
		desired.Leave = plan.LeaveNetwork
	}
	return desired
}

// spec returns a valid spec with the fields of the subnet.
func (d dice) spec() samplecrdv1.NetworkSpec {
	route := []samplecrdv1.HostRoute{{Destination: "10.99.0.0/16", NextHop: "10.0.0.9"}}
	s := pick(d,
		spec{CIDR: "192.168.1.0/16", Gateway: pick(d, "", "192.168.1.1", samplecrdv1.GatewayNone)},
		spec{CIDR: "10.0.0.0/24", Gateway: pick(d, "", "10.0.0.7", samplecrdv1.GatewayNone), HostRoutes: pick(d, nil, route),
			AllocationPools: pick(d, nil, []samplecrdv1.AllocationPool{{Start: "10.0.0.100", End: "10.0.0.200"}})},
		spec{CIDR: "fd00::/64", Gateway: pick(d, "", "fd00::7", samplecrdv1.GatewayNone),
			IPv6: pick(d, nil, &samplecrdv1.IPv6Options{AddressMode: "slaac"}, &samplecrdv1.IPv6Options{AddressMode: "slaac", RAMode: "slaac"}, &samplecrdv1.IPv6Options{RAMode: "dhcpv6-stateful"})},
		spec{Gateway: pick(d, "", samplecrdv1.GatewayNone), HostRoutes: pick(d, nil, nil, route), SubnetPool: pick(d,
			&samplecrdv1.SubnetPoolReference{Name: "one"},
			&samplecrdv1.SubnetPoolReference{Name: pick(d, "one", "one", "one", "two", "two", "both", "missing"), PrefixLength: int32(d.IntN(2) * 28)},
			&samplecrdv1.SubnetPoolReference{ID: pick(d, "pool-1", "pool-1", "pool-1", "pool-2", "pool-2", "missing"), PrefixLength: int32(d.IntN(2) * 26)})})
	if d.oneIn(3) && !strings.Contains(s.CIDR, ":") {
		s.DNSNameservers = []string{"1.1.1.1", "9.9.9.9"}
	}
	if d.oneIn(3) && s.IPv6 == nil {
		s.EnableDHCP = new(d.oneIn(2))
	}
	return s
}

// addNetworkFields adds the fields that a network of our own can have.
func (d dice) addNetworkFields(spec *spec) {
	if d.oneIn(3) {
		spec.MTU = new(int32(1400))
	}
	if d.oneIn(3) {
		spec.AdminStateUp = new(d.oneIn(2))
	}
	if d.oneIn(3) {
		spec.PortSecurityEnabled = new(false)
	}
	if d.oneIn(3) {
		spec.DNSDomain = "example.org"
	}
	if d.oneIn(3) {
		spec.Tags = []string{"b", "a"}
	}
}
