package plan

import (
	"fmt"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// A router interface has no description, so it cannot have an owner marker. The status
// records a router before the subnet is attached to it. Only that router is ever
// detached, and only from a subnet of ours.

// stepToRouter attaches our subnet, which stepToSubnet has found to be as desired, to the
// desired router, and detaches it from the one that the status records. It returns nil if
// nothing is left to do, or if this Neutron has no routers.
func stepToRouter(desired Desired, actual Actual, network neutron.Network) Step {
	if desired.Router == nil && actual.RouterID == "" {
		return nil
	}
	subnets, _ := actual.subnetsOf(network)
	subnet, _, _ := selectSubnet(desired, actual, actual.ourSubnets(desired, subnets))
	attached, known := actual.interfacesOf(subnet)
	if !known {
		return FindRouterInterfaces{network.ID}
	}
	routerID, _ := actual.routerID(desired)
	_, isDone := interfaceTo(routerID, attached)
	if desired.Router != nil && !isDone {
		if has, known := actual.hasExtension(neutron.ExtensionRouter); !known {
			return FindExtensions{}
		} else if !has {
			return nil
		}
		router, step := selectRouter(desired, actual)
		if step != nil {
			return step
		}
		routerID = router.ID
	}
	if isDone && actual.RouterID == "" && neutron.IsTakenOver(network.Description) {
		return RecordRouter{ID: routerID, Name: desired.Router.Name} // the object that retained the network attached it
	}
	return stepToAttached(desired, actual, subnet, routerID)
}

// stepToAttached attaches a subnet to the desired router, and to no other router that
// the status records. The ID of the router is empty for none.
func stepToAttached(desired Desired, actual Actual, subnet neutron.Subnet, routerID string) Step {
	attached, _ := actual.interfacesOf(subnet)
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
		return blocked(ReasonNotOurs, // somebody may give it one: an invalid spec is never tried again
			"spec.router requires a gateway, but the adopted subnet %s has none: "+
				"set spec.gateway to an address of %s, or remove spec.router.", subnet.ID, subnet.CIDR)
	}
	for _, other := range attached {
		if other.Address == subnet.Gateway {
			return blocked(ReasonNotOurs,
				"subnet %s is attached to router %s, but not by this Network: it is not detached to make room for router %s. "+
					"Detach it (openstack router remove subnet %s %s), or set spec.router.id to %s.",
				subnet.ID, other.RouterID, routerID, other.RouterID, subnet.ID, other.RouterID)
		}
	}
	if actual.RouterID != routerID {
		return RecordRouter{ID: routerID, Name: desired.Router.Name, Replaces: actual.RouterID}
	}
	return AttachRouter{neutron.RouterInterface{
		RouterID: routerID, NetworkID: subnet.NetworkID, SubnetID: subnet.ID, Address: subnet.Gateway,
	}}
}

// selectRouter returns the desired router. It returns a step if the router is unknown
// or cannot be used. It looks for a name again even if the status records it: the
// router may have been replaced by one of the same name.
func selectRouter(desired Desired, actual Actual) (neutron.Router, Step) {
	router := desired.Router
	switch {
	case actual.routers == nil:
		return neutron.Router{}, FindRouter{neutron.RouterFilter{ID: router.ID, Name: router.Name}}
	case len(actual.routers) == 0:
		return neutron.Router{}, blocked(ReasonNotFound,
			"router %q, which spec.router names, does not exist in the controller's project. "+
				"Create it (openstack router create), or set spec.router to an existing one.", router.Name+router.ID)
	case len(actual.routers) > 1:
		ids := sortedIDs(actual.routers, func(r neutron.Router) string { return r.ID })
		return neutron.Router{}, ambiguousName("routers", router.Name, ids, "spec.router")
	}
	return actual.routers[0], nil
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

// stepFromAdopted detaches the router that the status records from the subnet that the
// status names, if that was adopted and the spec has another range by now.
func stepFromAdopted(desired Desired, actual Actual, subnets []neutron.Subnet) Step {
	for _, subnet := range subnets {
		if !actual.hasLeft(desired, subnet) {
			continue
		}
		attached, known := actual.interfacesOf(subnet)
		if !known {
			return FindRouterInterfaces{subnet.NetworkID}
		}
		if ours, ok := interfaceTo(actual.RouterID, attached); ok {
			return DetachRouter{Interface: ours, For: "use " + desired.RangeText()}
		}
	}
	return nil
}

// hasLeft reports whether an object has adopted a subnet with a router, and no longer does.
func (a Actual) hasLeft(desired Desired, subnet neutron.Subnet) bool {
	return desired.Adopted != "" && a.RouterID != "" && subnet.ID == a.SubnetID && !desired.adopts(subnet) &&
		!neutron.IsMarker(subnet.Description)
}

// stepToDetached detaches the router that the status records before a subnet is deleted,
// alone or with its network, unless Neutron would reject that: ports that use what is
// deleted also use the router. Every port on the network counts if the network is deleted,
// even one without an address.
func stepToDetached(actual Actual, subnet neutron.Subnet, purpose string, withNetwork bool) Step {
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
	used, users := "subnet "+subnet.ID, usersOf(subnet, ports)
	if withNetwork {
		used, users = "network "+subnet.NetworkID, textsOf(ports, neutron.Port.String)
	}
	for _, other := range actual.interfaces {
		isUser := other.SubnetID == subnet.ID || withNetwork && other.NetworkID == subnet.NetworkID
		if isUser && other.RouterID != ours.RouterID {
			users = append(users, routerText(other))
		}
	}
	if users != nil {
		return blocked(ReasonInUse,
			"cannot %s: ports use %s (%s). Subnet %s stays attached to router %s until they are deleted.",
			purpose, used, firstOf(users), subnet.ID, ours.RouterID)
	}
	return DetachRouter{Interface: ours, For: purpose}
}

func usersOf(subnet neutron.Subnet, ports []neutron.Port) []string {
	uses := func(p neutron.Port) bool { return slices.Contains(p.SubnetIDs, subnet.ID) }
	return textsOf(filter(ports, uses), neutron.Port.String)
}

func replacement(desired Desired, subnet neutron.Subnet) string {
	return fmt.Sprintf("replace subnet %s by %s", subnet.CIDR, desired.RangeText())
}

// stepToUnrouted detaches our subnets on a network, each with a step, before they are
// deleted, alone or with the network; and the adopted one, which stays.
func stepToUnrouted(desired Desired, actual Actual, networkID string, withNetwork bool) Step {
	if actual.RouterID == "" && desired.Router == nil {
		return nil
	}
	purpose := "delete the subnet"
	if withNetwork {
		purpose = "delete the network"
	}
	subnets, known := actual.subnets[networkID]
	switch {
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: networkID}}
	case !actual.interfacesOn[networkID]:
		return FindRouterInterfaces{networkID}
	}
	for _, subnet := range subnets {
		attached, _ := actual.interfacesOf(subnet)
		isAdopted := desired.adopts(subnet) || actual.hasLeft(desired, subnet)
		if ours, ok := interfaceTo(actual.RouterID, attached); ok && isAdopted {
			return DetachRouter{Interface: ours}
		}
		if !desired.has(subnet) {
			continue
		}
		if step := stepToDetached(actual, subnet, purpose, withNetwork); step != nil {
			return step
		}
	}
	return nil
}

// stepToNoForeignRouter blocks the deletion of a network while routers have it that the
// status does not record.
func stepToNoForeignRouter(actual Actual, network neutron.Network) Step {
	isOnIt := func(i neutron.RouterInterface) bool { return i.NetworkID == network.ID }
	texts := textsOf(filter(actual.interfaces, isOnIt), routerText)
	if texts == nil {
		return nil
	}
	slices.Sort(texts)
	return blocked(ReasonInUse,
		"network %s cannot be deleted: it is attached to routers, but not by this Network (%s). "+
			"Detach them first (openstack router remove subnet), or set spec.deletionPolicy to Retain.",
		network.ID, firstOf(texts))
}

// routerID returns the ID of the desired router, if it is known without a request.
func (a Actual) routerID(desired Desired) (id string, known bool) {
	switch router := desired.Router; {
	case router == nil:
		return "", false
	case router.ID != "":
		return router.ID, true
	case len(a.routers) == 1:
		return a.routers[0].ID, true
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
