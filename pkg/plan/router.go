package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// A router interface has no description, so it cannot have an owner marker. The status
// records a router before the subnet is attached to it. Only that router is ever
// detached, and only from a subnet of ours.

// Router is a router by its ID or by its name.
type Router struct{ ID, Name string }

// readRouter reads the router to which the subnet is attached.
func readRouter(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	router := spec.Router
	switch {
	case router == nil:
		return ""
	case (router.Name == "") == (router.ID == ""):
		return "spec.router must have either a name or an id"
	case desired.NoGateway:
		return "spec.router requires a gateway, which is the address of the router in the subnet, but spec.gateway is None: omit router, or set gateway to an address or omit it"
	}
	desired.Router = &Router{ID: router.ID, Name: router.Name}
	return ""
}

// WithRouters returns the state after a FindRouter.
func (a Actual) WithRouters(found []neutron.Router) Actual {
	a.routers = &found
	return a
}

// WithRouterInterfaces returns the state after a FindRouterInterfaces.
func (a Actual) WithRouterInterfaces(networkID string, found []neutron.RouterInterface) Actual {
	a.interfaces = slices.DeleteFunc(slices.Clone(a.interfaces), func(i neutron.RouterInterface) bool { return i.NetworkID == networkID })
	a.interfaces = append(a.interfaces, found...)
	return a.withKnownInterfaces(networkID)
}

// WithPorts returns the state after a FindPorts.
func (a Actual) WithPorts(networkID string, found []neutron.Port) Actual {
	a.ports = maps.Clone(a.ports)
	if a.ports == nil {
		a.ports = map[string][]neutron.Port{}
	}
	a.ports[networkID] = found
	return a
}

// WithNewSubnet returns the state after a subnet was created: no router has it.
func (a Actual) WithNewSubnet(created neutron.Subnet) Actual {
	return a.WithSubnet(created).withKnownInterfaces(created.ID)
}

// withKnownInterfaces returns the state in which the router interfaces of a network or
// subnet are known.
func (a Actual) withKnownInterfaces(id string) Actual {
	a.interfacesOn = maps.Clone(a.interfacesOn)
	if a.interfacesOn == nil {
		a.interfacesOn = map[string]bool{}
	}
	a.interfacesOn[id] = true
	return a
}

// WithRouterInterface returns the state after a subnet was attached to a router.
func (a Actual) WithRouterInterface(added neutron.RouterInterface) Actual {
	a.interfaces = append(slices.Clone(a.interfaces), added)
	return a
}

// WithoutRouterInterface returns the state after a subnet was detached from a router.
func (a Actual) WithoutRouterInterface(removed neutron.RouterInterface) Actual {
	a.interfaces = slices.DeleteFunc(slices.Clone(a.interfaces), func(i neutron.RouterInterface) bool {
		return i.RouterID == removed.RouterID && i.SubnetID == removed.SubnetID
	})
	return a
}

// WithRecordedRouter returns the state after a router was recorded in the status.
func (a Actual) WithRecordedRouter(id, name string) Actual {
	a.RouterID, a.RouterName = id, name
	return a
}

// interfacesOf returns the router interfaces of a subnet, if they are known.
func (a Actual) interfacesOf(subnet neutron.Subnet) (found []neutron.RouterInterface, known bool) {
	others := func(i neutron.RouterInterface) bool { return i.SubnetID != subnet.ID }
	return slices.DeleteFunc(slices.Clone(a.interfaces), others), a.interfacesOn[subnet.NetworkID] || a.interfacesOn[subnet.ID]
}

// interfaceTo returns the router interface of one router, if it is in the list.
func interfaceTo(routerID string, list []neutron.RouterInterface) (found neutron.RouterInterface, ok bool) {
	i := slices.IndexFunc(list, func(i neutron.RouterInterface) bool { return i.RouterID == routerID })
	if i < 0 || routerID == "" {
		return neutron.RouterInterface{}, false
	}
	return list[i], true
}

// routerID returns the ID of the desired router, if it is known without a request.
func (a Actual) routerID(desired Desired) (id string, known bool) {
	switch router := desired.Router; {
	case router == nil:
		return "", false
	case router.ID != "":
		return router.ID, true
	case a.routers != nil && len(*a.routers) == 1:
		return (*a.routers)[0].ID, true
	case router.Name == a.RouterName && a.RouterID != "":
		return a.RouterID, true
	}
	return "", false
}

// routerRecord returns the router to record in the status, with its name in the spec.
func (a Actual) routerRecord(desired Desired) (id, name string) {
	if routerID, known := a.routerID(desired); known && routerID == a.RouterID && !desired.Absent {
		return a.RouterID, desired.Router.Name
	}
	return a.RouterID, a.RouterName
}

// stepToRouter attaches our subnet to the desired router, and detaches it from the one
// that the status records. It returns nil if nothing is left to do, or if this Neutron
// has no routers.
func stepToRouter(desired Desired, actual Actual, network neutron.Network) Step {
	if desired.Router == nil && actual.RouterID == "" {
		return nil
	}
	subnets, _ := actual.subnetsOf(network)
	ours := actual.ourSubnets(desired, subnets)
	if len(ours) == 0 {
		return nil
	}
	subnet, _, _ := selectSubnet(desired, actual, ours)
	attached, known := actual.interfacesOf(subnet)
	if !known {
		return FindRouterInterfaces{network.ID}
	}
	routerID := ""
	if desired.Router != nil {
		id, _ := actual.routerID(desired)
		if _, done := interfaceTo(id, attached); !done {
			if has, known := actual.hasExtension(neutron.ExtensionRouter); !known {
				return FindExtensions{}
			} else if !has {
				return nil
			}
			router, step := selectRouter(desired, actual)
			if step != nil {
				return step
			}
			id = router.ID
		}
		routerID = id
	}
	if _, isDone := interfaceTo(routerID, attached); isDone && actual.RouterID == "" && neutron.IsTakenOver(network.Description) {
		return RecordRouter{ID: routerID, Name: desired.Router.Name} // the object that retained the network attached it
	}
	return stepToAttached(desired, actual, subnet, attached, routerID)
}

// stepToAttached attaches a subnet to the desired router, and to no other router that
// the status records. The ID of the router is empty for none.
func stepToAttached(desired Desired, actual Actual, subnet neutron.Subnet, attached []neutron.RouterInterface, routerID string) Step {
	_, isDone := interfaceTo(routerID, attached)
	if actual.RouterID != "" && actual.RouterID != routerID {
		if previous, ok := interfaceTo(actual.RouterID, attached); ok {
			return DetachRouter{Interface: previous}
		}
		if routerID == "" || isDone { // a user attached the subnet to the desired router
			return RecordRouter{Replaces: actual.RouterID}
		}
	}
	switch {
	case routerID == "" || isDone:
		return nil
	case !subnet.Gateway.IsValid():
		return Blocked{Reason: ReasonInvalidSpec, Message: fmt.Sprintf(
			"spec.router requires a gateway, but the adopted subnet %s has none: set spec.gateway to an address of %s, or remove spec.router.", subnet.ID, subnet.CIDR)}
	}
	for _, other := range attached {
		if other.Address == subnet.Gateway {
			return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
				"subnet %s is attached to router %s, but not by this Network: it is not detached to make room for router %s. "+
					"Detach it (openstack router remove subnet %s %s), or set spec.router.id to %s.",
				subnet.ID, other.RouterID, routerID, other.RouterID, subnet.ID, other.RouterID)}
		}
	}
	if actual.RouterID != routerID {
		return RecordRouter{ID: routerID, Name: desired.Router.Name, Replaces: actual.RouterID}
	}
	return AttachRouter{neutron.RouterInterface{RouterID: routerID, NetworkID: subnet.NetworkID, SubnetID: subnet.ID, Address: subnet.Gateway}}
}

// selectRouter returns the desired router. It returns a step if the router is unknown
// or cannot be used. It looks for a name again even if the status records it: the
// router may have been replaced by one of the same name.
func selectRouter(desired Desired, actual Actual) (neutron.Router, Step) {
	router := desired.Router
	switch {
	case actual.routers == nil:
		return neutron.Router{}, FindRouter{neutron.RouterFilter{ID: router.ID, Name: router.Name}}
	case len(*actual.routers) == 0:
		return neutron.Router{}, Blocked{Reason: ReasonNotFound, Message: fmt.Sprintf(
			"router %q, which spec.router names, does not exist in the controller's project. Create it (openstack router create), or set spec.router to an existing one.", router.Name+router.ID)}
	case len(*actual.routers) > 1:
		ids := sortedIDs(*actual.routers, func(r neutron.Router) string { return r.ID })
		return neutron.Router{}, Blocked{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
			"Neutron has %d routers with the name %q (%s). Set spec.router.id to one of these IDs, and remove spec.router.name.", len(ids), router.Name, strings.Join(ids, ", "))}
	}
	return (*actual.routers)[0], nil
}

// stepToOtherGateway detaches the router that the status records before a subnet gets
// another gateway: Neutron rejects that while a router has the current one. Then
// stepToRouter attaches it again.
func stepToOtherGateway(actual Actual, subnet neutron.Subnet) Step {
	if actual.RouterID == "" || !subnet.Gateway.IsValid() {
		return nil
	}
	attached, known := actual.interfacesOf(subnet)
	if !known {
		return FindRouterInterfaces{subnet.NetworkID}
	}
	if ours, ok := interfaceTo(actual.RouterID, attached); ok && ours.Address == subnet.Gateway {
		return DetachRouter{Interface: ours, For: "change its gateway"}
	}
	return nil
}

// stepToDetached detaches the router that the status records before a subnet is
// deleted, unless Neutron would reject that: ports that use the subnet also use the
// router.
func stepToDetached(actual Actual, subnet neutron.Subnet, purpose string) Step {
	return stepToDetachedIf(actual, subnet, purpose, "subnet "+subnet.ID,
		func(p neutron.Port) bool { return slices.Contains(p.SubnetIDs, subnet.ID) },
		func(i neutron.RouterInterface) bool { return i.SubnetID == subnet.ID })
}

// stepToDetachedNetwork detaches it before the network of the subnet is deleted:
// then every port on the network counts, even one without an address.
func stepToDetachedNetwork(actual Actual, subnet neutron.Subnet, purpose string) Step {
	return stepToDetachedIf(actual, subnet, purpose, "network "+subnet.NetworkID,
		func(neutron.Port) bool { return true },
		func(i neutron.RouterInterface) bool { return i.NetworkID == subnet.NetworkID })
}

// stepToDetachedIf detaches it, unless something has users: ports, or interfaces of
// other routers.
func stepToDetachedIf(actual Actual, subnet neutron.Subnet, purpose, used string, uses func(neutron.Port) bool, has func(neutron.RouterInterface) bool) Step {
	if actual.RouterID == "" {
		return nil
	}
	attached, known := actual.interfacesOf(subnet)
	if !known {
		return FindRouterInterfaces{subnet.NetworkID}
	}
	ours, ok := interfaceTo(actual.RouterID, attached)
	if !ok {
		return nil
	}
	ports, known := actual.ports[subnet.NetworkID]
	if !known {
		return FindPorts{subnet.NetworkID}
	}
	var users []string
	for _, port := range ports {
		if uses(port) {
			users = append(users, port.String())
		}
	}
	for _, other := range actual.interfaces {
		if has(other) && other.RouterID != ours.RouterID {
			users = append(users, routerText(other))
		}
	}
	if users != nil {
		return Blocked{Reason: ReasonInUse, Message: fmt.Sprintf(
			"cannot %s: ports use %s (%s). Subnet %s stays attached to router %s until they are deleted.", purpose, used, firstOf(users), subnet.ID, ours.RouterID)}
	}
	return DetachRouter{Interface: ours, For: purpose}
}

// replacement describes what the detachment of a subnet permits.
func replacement(desired Desired, subnet neutron.Subnet) string {
	return fmt.Sprintf("replace subnet %s by %s", subnet.CIDR, desired.RangeText())
}

// stepToUnrouted detaches our subnets on a network, each with a step, before they are
// deleted for a purpose, and the adopted one, which stays.
func stepToUnrouted(desired Desired, actual Actual, networkID, purpose string, stepTo func(Actual, neutron.Subnet, string) Step) Step {
	if actual.RouterID == "" && desired.Router == nil {
		return nil
	}
	subnets, known := actual.subnets[networkID]
	switch {
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: networkID}}
	case !actual.interfacesOn[networkID]:
		return FindRouterInterfaces{networkID}
	}
	for _, subnet := range subnets {
		isAdopted := desired.Adopted != "" && desired.SubnetPool == nil && subnet.CIDR == desired.CIDR && !neutron.IsMarker(subnet.Description)
		attached, _ := actual.interfacesOf(subnet)
		if ours, ok := interfaceTo(actual.RouterID, attached); ok && isAdopted {
			return DetachRouter{Interface: ours}
		}
		if !desired.Owner.HasMarker(subnet.Description) {
			continue
		}
		if step := stepTo(actual, subnet, purpose); step != nil {
			return step
		}
	}
	return nil
}

// stepToNoForeignRouter blocks the deletion of a network while routers have it that the
// status does not record.
func stepToNoForeignRouter(actual Actual, network neutron.Network) Step {
	var texts []string
	for _, other := range actual.interfaces {
		if other.NetworkID == network.ID {
			texts = append(texts, routerText(other))
		}
	}
	if texts == nil {
		return nil
	}
	slices.Sort(texts)
	return Blocked{Reason: ReasonInUse, Message: fmt.Sprintf(
		"network %s cannot be deleted: it is attached to routers, but not by this Network (%s). Detach them first (openstack router remove subnet), or set spec.deletionPolicy to Retain.",
		network.ID, firstOf(texts))}
}

func routerText(i neutron.RouterInterface) string {
	return fmt.Sprintf("subnet %s to router %s", i.SubnetID, i.RouterID)
}

// maxNamed limits how many objects a message names.
const maxNamed = 10

// firstOf joins the first of some texts.
func firstOf(texts []string) string {
	if len(texts) > maxNamed {
		texts = append(slices.Clone(texts[:maxNamed]), fmt.Sprintf("and %d more", len(texts)-maxNamed))
	}
	return strings.Join(texts, ", ")
}
