package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Actual is the known part of the actual state. The zero value is empty, and each
// response from Neutron adds to it. Unknown is different from absent: a list is nil if
// nobody has looked, and empty if a response had none.
//
// It is a value: each method returns the new state and leaves the receiver unchanged.
type Actual struct {
	// Finalizer reports whether the object in Kubernetes has our finalizer.
	Finalizer bool
	// Cloud is the cloud that the object records, in which its network is.
	Cloud string
	// MarkedSubnets are the IDs of the subnets that had our owner marker at some time.
	MarkedSubnets []string
	// Record is the content of the object's status.
	Record
	// Cached is true if the networks and what is on them come from the cache of
	// Neutron's state: see [isSafeFromCache].
	Cached bool
	// OtherClusters are the clusters that own a network whose object has the namespace and
	// name of this one, unless that is unknown.
	OtherClusters []string
	OthersUnknown bool

	isNew     bool     // our finalizer was added to an object that did not have it
	confirmed bool     // a request with its revision proved that the cached network with our marker is current
	ended     []string // the requests of the networks that the plan has deleted or retained
	left      []string // the IDs of duplicates that stay because they are in use

	connected  string                      // the cloud that requests go to; empty if unknown
	extensions []string                    // of this Neutron
	byName     []neutron.Network           // found by the name that our networks have
	byID       []neutron.Network           // found by ID: one, or none
	pools      []neutron.SubnetPool        // found by the name or ID in the spec
	routers    []neutron.Router            // found by the name or ID in the spec
	subnets    map[string][]neutron.Subnet // by the ID of their network
	ports      map[string][]neutron.Port   // by the ID of their network
	interfaces []neutron.RouterInterface   // of the networks, and new subnets, in interfacesOn

	interfacesOn map[string]bool
}

// Record is what the status of an object records. An unknown value is empty.
type Record struct {
	NetworkID, SubnetID string
	NetworkCloud        string
	CIDR                netip.Prefix
	Gateway             netip.Addr // the zero Addr if there is a CIDR but no gateway
	// SubnetPoolID allocated the range. SubnetPoolName is the name in the spec that led to it.
	SubnetPoolID, SubnetPoolName string
	MTU                          int
	DefaultMTU                   int // the one that Neutron chose for the network
	// Tags are those that the controller added to the network, or was about to add.
	Tags []string
	// RouterID is the router to which the controller attached the subnet, or was about
	// to attach it. RouterName is the name in the spec that led to this ID.
	RouterID, RouterName string
}

// After returns the state after a step has succeeded, with what Neutron returned: the objects
// of a step that reads, or the object that was created or updated; nil for all other steps.
func (a Actual) After(step Step, result any) Actual {
	if IsRead(step) {
		return a.afterRead(step, result)
	}
	switch step := step.(type) {
	case AddFinalizer:
		a.isNew = !a.Finalizer
		a.Finalizer, a.Cloud = true, a.connected
	case RemoveFinalizer:
		a.Finalizer, a.isNew = false, false
	case RecordTags:
		a.Tags = step.Tags
	case RecordRouter:
		a.RouterID, a.RouterName = step.ID, step.Name

	case CreateNetwork: // from now on, all of it is known: there was none before
		a.DefaultMTU, a.Cached = 0, false
		return a.withNetwork(result.(neutron.Network), step.Network.MTU == nil)
	case UpdateNetwork:
		return a.withNetwork(result.(neutron.Network), step.Update.MTU != nil && *step.Update.MTU == 0)
	case RetainNetwork:
		return a.withNetwork(result.(neutron.Network), false)
	case DeleteNetwork:
		return a.afterDeletion(step.ID)
	case AddTag:
		return a.withTags(step.ID, func(tags []string) []string { return append(slices.Clone(tags), step.Tag) })
	case RemoveTag:
		isOther := func(tag string) bool { return tag != step.Tag }
		return a.withTags(step.ID, func(tags []string) []string { return filter(tags, isOther) })

	case CreateSubnet: // no router has it
		return a.withSubnet(result.(neutron.Subnet)).withKnownInterfaces(result.(neutron.Subnet).ID)
	case UpdateSubnet:
		return a.withSubnet(result.(neutron.Subnet))
	case DeleteSubnet:
		return a.withoutSubnet(step.ID)
	case AttachRouter:
		a.interfaces = append(slices.Clone(a.interfaces), result.(neutron.RouterInterface))
	case DetachRouter:
		a.interfaces = filter(a.interfaces, func(i neutron.RouterInterface) bool {
			return i.RouterID != step.Interface.RouterID || i.SubnetID != step.Interface.SubnetID
		})
	default:
		panic(fmt.Sprintf("nothing is known after %T", step))
	}
	return a
}

// found returns what a request found: a list that is not nil.
func found[T any](result any) []T { return append([]T{}, result.([]T)...) }

func (a Actual) afterRead(step Step, result any) Actual {
	switch step := step.(type) {
	case FindCloud:
		a.connected = result.(string)
	case FindExtensions:
		a.extensions = found[string](result)
	case FindOtherClusters:
		a.OtherClusters, a.OthersUnknown = result.([]string), false
	case FindNetwork:
		if a.Cached {
			a = a.WithoutCache()
		}
		if step.Filter.ID != "" {
			a.byID = found[neutron.Network](result)
		} else {
			a.byName = found[neutron.Network](result)
		}
	case FindSubnets:
		a.subnets = withKey(a.subnets, step.Filter.NetworkID, result.([]neutron.Subnet))
	case FindSubnetPool:
		a.pools = found[neutron.SubnetPool](result)
	case FindRouter:
		a.routers = found[neutron.Router](result)
	case FindRouterInterfaces:
		isElsewhere := func(i neutron.RouterInterface) bool { return i.NetworkID != step.NetworkID }
		a.interfaces = append(filter(a.interfaces, isElsewhere), result.([]neutron.RouterInterface)...)
		return a.withKnownInterfaces(step.NetworkID)
	case FindPorts:
		a.ports = withKey(a.ports, step.NetworkID, result.([]neutron.Port))
	default:
		panic(fmt.Sprintf("nothing is known after %T", step))
	}
	return a
}

// WithLeftDuplicate returns the state in which a duplicate stays, because it is in use.
func (a Actual) WithLeftDuplicate(id string) Actual {
	a.left = append(slices.Clone(a.left), id)
	return a
}

// WithoutCache returns the state without what came from the cache of Neutron's state.
func (a Actual) WithoutCache() Actual {
	a.Cached, a.confirmed = false, false
	a.byName, a.byID, a.subnets = nil, nil, nil
	a.routers, a.interfaces, a.interfacesOn, a.ports = nil, nil, nil, nil
	return a
}

// withNetwork returns the state after our network was created or updated. Neutron may have
// chosen its MTU.
func (a Actual) withNetwork(network neutron.Network, hasDefaultMTU bool) Actual {
	if hasDefaultMTU {
		a.DefaultMTU = mtuOf(network)
	}
	a = a.withEndOf(network.ID, neutron.RequestOf(network.Description)).withoutNetwork(network.ID)
	a.byName = append(a.byName, network)
	return a
}

func (a Actual) afterDeletion(networkID string) Actual {
	a = a.withEndOf(networkID, "").withoutNetwork(networkID)
	a.subnets = withKey(a.subnets, networkID, nil)
	if networkID == a.NetworkID {
		a.byID = []neutron.Network{}
	}
	return a
}

// withTags returns the state after the tags of a network were edited.
func (a Actual) withTags(networkID string, edit func(tags []string) []string) Actual {
	for _, networks := range []*[]neutron.Network{&a.byName, &a.byID} {
		*networks = slices.Clone(*networks)
		for i, network := range *networks {
			if network.ID == networkID {
				(*networks)[i].Tags = edit(network.Tags)
			}
		}
	}
	return a
}

// withEndOf returns the state after a network was deleted, or got another owner marker.
// From then on, another network of the request that it had is a copy.
func (a Actual) withEndOf(id, request string) Actual {
	a.confirmed = false
	for _, network := range a.byName {
		if network.ID != id || !neutron.IsMarker(network.Description) {
			continue
		}
		a.confirmed = true
		if before := neutron.RequestOf(network.Description); before != request || before == "" {
			a.ended = append(slices.Clone(a.ended), before)
		}
	}
	return a
}

func (a Actual) withoutNetwork(id string) Actual {
	isOther := func(n neutron.Network) bool { return n.ID != id }
	a.byName, a.byID = filter(a.byName, isOther), filter(a.byID, isOther)
	return a
}

func (a Actual) withSubnet(subnet neutron.Subnet) Actual {
	a = a.withoutSubnet(subnet.ID)
	a.subnets[subnet.NetworkID] = append(slices.Clone(a.subnets[subnet.NetworkID]), subnet)
	return a
}

func (a Actual) withoutSubnet(id string) Actual {
	subnets := map[string][]neutron.Subnet{}
	for network, some := range a.subnets {
		subnets[network] = filter(some, func(s neutron.Subnet) bool { return s.ID != id })
	}
	a.subnets = subnets
	return a
}

func (a Actual) withKnownInterfaces(id string) Actual {
	a.interfacesOn = withKey(a.interfacesOn, id, true)
	return a
}

// withKey returns a copy of a map with another value.
func withKey[V any](values map[string]V, key string, value V) map[string]V {
	changed := map[string]V{}
	maps.Copy(changed, values)
	changed[key] = value
	return changed
}

// HasNetwork reports whether a network with this ID was found.
func (a Actual) HasNetwork(id string) bool {
	return a.network(id).ID != ""
}

// RequestOf returns the request that the owner marker of a network names, or an empty
// string.
func (a Actual) RequestOf(networkID string) string {
	return neutron.RequestOf(a.network(networkID).Description)
}

// Marked returns the networks that were found whose owner marker names a request of the
// owner.
func (a Actual) Marked(desired Desired) []neutron.Network {
	return filter(a.byName, func(n neutron.Network) bool {
		return neutron.RequestOf(n.Description) != "" && desired.Owner.HasMarker(n.Description)
	})
}

// NetworkOf returns the ID of the network whose owner marker names a request, or an empty
// string.
func (a Actual) NetworkOf(request string) string {
	for _, network := range a.byName {
		if neutron.RequestOf(network.Description) == request {
			return network.ID
		}
	}
	return ""
}

// network returns a network that was found, by its ID, or an empty one.
func (a Actual) network(id string) neutron.Network {
	found := slices.Concat(a.byName, a.byID)
	if i := slices.IndexFunc(found, func(n neutron.Network) bool { return n.ID == id }); i >= 0 {
		return found[i]
	}
	return neutron.Network{}
}

func (a Actual) subnet(id string) neutron.Subnet {
	for _, subnets := range a.subnets {
		if i := slices.IndexFunc(subnets, func(s neutron.Subnet) bool { return s.ID == id }); i >= 0 {
			return subnets[i]
		}
	}
	return neutron.Subnet{}
}

func (a Actual) subnetsOf(network neutron.Network) (subnets []neutron.Subnet, known bool) {
	subnets, known = a.subnets[network.ID]
	return subnets, known || len(network.SubnetIDs) == 0
}

func (a Actual) interfacesOf(subnet neutron.Subnet) (found []neutron.RouterInterface, known bool) {
	isOnIt := func(i neutron.RouterInterface) bool { return i.SubnetID == subnet.ID }
	return filter(a.interfaces, isOnIt), a.interfacesOn[subnet.NetworkID] || a.interfacesOn[subnet.ID]
}

// mayBeAttached reports whether the router that the status records may have a subnet.
func (a Actual) mayBeAttached(subnet neutron.Subnet) bool {
	attached, known := a.interfacesOf(subnet)
	_, isAttached := interfaceTo(a.RouterID, attached)
	return isAttached || !known && a.RouterID != ""
}

func interfaceTo(routerID string, list []neutron.RouterInterface) (found neutron.RouterInterface, ok bool) {
	i := slices.IndexFunc(list, func(i neutron.RouterInterface) bool { return i.RouterID == routerID })
	if i < 0 || routerID == "" {
		return neutron.RouterInterface{}, false
	}
	return list[i], true
}

func (a Actual) hasExtension(extension string) (has, known bool) {
	switch {
	case extension == "":
		return true, true
	case a.extensions == nil:
		return false, false
	}
	return slices.Contains(a.extensions, extension), true
}

func mtuOf(network neutron.Network) int {
	if network.MTU == nil {
		return 0
	}
	return *network.MTU
}
