package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Step is one request to Kubernetes or Neutron, or the end of a plan. Logs, events
// and tests contain its text.
type Step interface {
	fmt.Stringer
	step() // the steps are those of this file
}

// The steps that end a plan.
type (
	// Nothing means that the actual state is the desired state.
	Nothing struct{}
	// Blocked means that the controller cannot continue until a user changes
	// something in Kubernetes or Neutron.
	Blocked struct {
		Reason  Reason
		Message string
	}
)

// Reason is why a plan is blocked, as one word.
type Reason string

// The reasons for which a plan is blocked.
const (
	// ReasonInvalidSpec: the spec contains a value that the controller cannot use.
	ReasonInvalidSpec Reason = "InvalidSpec"
	// ReasonAmbiguous: Neutron has several networks or subnets with the owner marker
	// of the Network, or several subnet pools or routers with the name in the spec. Or
	// a network had the owner marker before the Network was created.
	ReasonAmbiguous Reason = "Ambiguous"
	// ReasonNotOurs: the network in the status does not have the owner marker of the
	// Network, or the network to adopt belongs to another Network.
	ReasonNotOurs Reason = "NotOurs"
	// ReasonNotFound: the network, subnet pool or router in the spec does not exist.
	ReasonNotFound Reason = "NotFound"
	// ReasonAdoptionNotAllowed: the spec names a network to adopt, but the controller
	// runs without -allow-adoption. Next does not return it by itself; it is a
	// [Desired.Obstacle].
	ReasonAdoptionNotAllowed Reason = "AdoptionNotAllowed"
	// ReasonExtensionMissing: a field of the spec requires an extension that this
	// Neutron does not have. Everything else is as desired.
	ReasonExtensionMissing Reason = "ExtensionMissing"
	// ReasonSubnetPoolMismatch: the subnet pool has another IP version than the
	// spec requires, or does not allocate ranges of the desired length.
	ReasonSubnetPoolMismatch Reason = "SubnetPoolMismatch"
	// ReasonOtherCloud: the network is in another cloud than the one that the
	// controller is connected to.
	ReasonOtherCloud Reason = "OtherCloud"
	// ReasonOtherCluster: there is no network yet, but one of an object of the same
	// namespace and name in another cluster.
	ReasonOtherCluster Reason = "OtherCluster"
	// ReasonDrifted: somebody changed the network or subnet directly in Neutron, and
	// the drift policy is to report it.
	ReasonDrifted Reason = "Drifted"
	// ReasonInUse: deleting the network would also delete subnets that do not belong
	// to the Network.
	ReasonInUse Reason = "InUse"
	// ReasonNamespaceLimit: the namespace has as many networks in Neutron as
	// -max-networks-per-namespace allows, including retained and orphaned ones. Next
	// does not return it; the caller, which counts them, does.
	ReasonNamespaceLimit Reason = "NamespaceLimit"
	// ReasonDefinitionDeleted: the CustomResourceDefinition is being deleted, which deletes
	// all Networks, hardly ever on purpose. Next does not return it; the caller, which
	// reads it before a deletion, does.
	ReasonDefinitionDeleted Reason = "DefinitionDeleted"
	// ReasonNotConverging: Neutron's responses do not match the requests, so that the
	// plan does not end. Next does not return it; the caller, which counts the steps,
	// does.
	ReasonNotConverging Reason = "NotConverging"
)

// The steps that read.
type (
	// FindNetwork looks for our network by its ID or by our owner marker.
	FindNetwork struct{ Filter neutron.NetworkFilter }
	// FindSubnets looks for the subnets on our network.
	FindSubnets struct{ Filter neutron.SubnetFilter }
	// FindSubnetPool looks for the subnet pool in the spec.
	FindSubnetPool struct{ Filter neutron.SubnetPoolFilter }
	// FindExtensions looks for the extensions of this Neutron.
	FindExtensions struct{}
	// FindRouter looks for the router in the spec.
	FindRouter struct{ Filter neutron.RouterFilter }
	// FindRouterInterfaces looks for the routers to which a network is attached.
	FindRouterInterfaces struct{ NetworkID string }
	// FindPorts looks for the ports that use a network.
	FindPorts struct{ NetworkID string }
	// FindOtherClusters looks for networks of other clusters with our name.
	FindOtherClusters struct{ Name string }
	// FindCloud looks for the identity of the cloud that requests go to.
	FindCloud struct{}
)

// Change describes what a step changes.
type Change struct{ What, From, To string }

func (c Change) String() string { return fmt.Sprintf("%s %s → %s", c.What, c.From, c.To) }

// The steps that write.
type (
	// AddFinalizer keeps the object until RemoveFinalizer, and records the cloud.
	AddFinalizer struct{ Cloud string }
	// CreateNetwork creates a network.
	CreateNetwork struct{ Network neutron.NewNetwork }
	// UpdateNetwork restores the settings, name and owner marker of our network.
	UpdateNetwork struct {
		ID      string
		Changes []Change
		Update  neutron.NetworkUpdate
	}
	// RetainNetwork gives our network the retained marker, for the next object of
	// the same name.
	RetainNetwork struct {
		ID     string
		Update neutron.NetworkUpdate
	}
	// RecordTags records in the status the tags that were added to our network, or
	// are about to be.
	RecordTags struct{ Tags []string }
	// AddTag adds a tag to our network.
	AddTag struct{ ID, Tag string }
	// RemoveTag removes a tag of ours.
	RemoveTag struct{ ID, Tag string }
	// CreateSubnet creates a subnet on our network.
	CreateSubnet struct{ Subnet neutron.NewSubnet }
	// UpdateSubnet restores the settings, name and owner marker of our subnet.
	UpdateSubnet struct {
		ID      string
		Changes []Change
		Update  neutron.SubnetUpdate
	}
	// DeleteSubnet deletes our subnet. For describes the subnet that replaces it,
	// if there is one. Duplicate is true if there already is another one of ours.
	DeleteSubnet struct {
		Duplicate bool
		ID        string
		Revision  int
		From      netip.Prefix
		For       string
	}
	// DeleteNetwork deletes our network, with our subnet on it. If DuplicateOf is
	// set, it deletes a duplicate of that network.
	DeleteNetwork struct {
		ID          string
		Revision    int
		DuplicateOf string
	}
	// RemoveFinalizer lets Kubernetes delete the object.
	RemoveFinalizer struct{}
	// RecordRouter records in the status the router to which our subnet is about to be
	// attached, or none. Replaces is the one that was recorded before, or empty.
	RecordRouter struct{ ID, Name, Replaces string }
	// AttachRouter attaches our subnet to a router.
	AttachRouter struct{ Interface neutron.RouterInterface }
	// DetachRouter detaches our subnet from a router. For describes what that permits,
	// if the router is attached again or the subnet is deleted.
	DetachRouter struct {
		Interface neutron.RouterInterface
		For       string
	}
)

func (Nothing) step()           {}
func (Blocked) step()           {}
func (FindNetwork) step()       {}
func (FindSubnets) step()       {}
func (FindSubnetPool) step()    {}
func (FindExtensions) step()    {}
func (FindCloud) step()         {}
func (FindOtherClusters) step() {}
func (RecordTags) step()        {}
func (AddTag) step()            {}
func (RemoveTag) step()         {}
func (AddFinalizer) step()      {}
func (CreateNetwork) step()     {}
func (UpdateNetwork) step()     {}
func (RetainNetwork) step()     {}
func (CreateSubnet) step()      {}
func (UpdateSubnet) step()      {}
func (DeleteSubnet) step()      {}
func (DeleteNetwork) step()     {}
func (RemoveFinalizer) step()   {}

func (FindRouter) step()           {}
func (FindRouterInterfaces) step() {}
func (FindPorts) step()            {}
func (RecordRouter) step()         {}
func (AttachRouter) step()         {}
func (DetachRouter) step()         {}

// ChangesNeutron reports whether a step changes something in Neutron.
func ChangesNeutron(step Step) bool {
	switch step.(type) {
	case Nothing, Blocked, RecordTags, RecordRouter, AddFinalizer, RemoveFinalizer:
		return false
	}
	return !IsRead(step)
}

func (Nothing) String() string   { return "nothing to do" }
func (s Blocked) String() string { return fmt.Sprintf("blocked: %s: %s", s.Reason, s.Message) }

func (s FindNetwork) String() string {
	if s.Filter.ID != "" {
		return "find network " + s.Filter.ID
	}
	return "find networks with the name " + strconv.Quote(s.Filter.Name)
}

func (s FindSubnets) String() string {
	return "find subnets of network " + s.Filter.NetworkID
}

func (s FindSubnetPool) String() string {
	if s.Filter.ID != "" {
		return "find subnet pool " + s.Filter.ID
	}
	return "find subnet pool with name " + strconv.Quote(s.Filter.Name)
}

func (FindExtensions) String() string { return "find extensions" }
func (FindCloud) String() string      { return "find the cloud" }

func (s FindOtherClusters) String() string {
	return "find networks of other clusters with the name " + strconv.Quote(s.Name)
}

func (AddFinalizer) String() string    { return "add finalizer" }
func (s CreateNetwork) String() string { return "create network " + s.Network.Name }

func (s UpdateNetwork) String() string {
	return fmt.Sprintf("update network %s: %s", s.ID, joinTexts(s.Changes, Change.String, ", "))
}

func (s RetainNetwork) String() string {
	return fmt.Sprintf("retain network %s: description → %q", s.ID, s.Update.Description)
}

func (s RecordTags) String() string {
	return "record tags in the status: " + strings.Join(s.Tags, ", ")
}

func (s AddTag) String() string    { return fmt.Sprintf("add tag %q to network %s", s.Tag, s.ID) }
func (s RemoveTag) String() string { return fmt.Sprintf("remove tag %q from network %s", s.Tag, s.ID) }

func (s CreateSubnet) String() string {
	text := "create subnet: " + s.Subnet.CIDR.String()
	if pool := s.Subnet.FromPool; pool != nil {
		text = "create subnet: " + allocationText(pool.SubnetPoolID, pool.PrefixLength)
	}
	if gateway := s.Subnet.Gateway; gateway != nil {
		text += ", gateway " + addrText(*gateway)
	}
	return text
}

func (s UpdateSubnet) String() string {
	return "update subnet: " + joinTexts(s.Changes, Change.String, ", ")
}

func (s DeleteSubnet) String() string {
	if s.For == "" {
		return "delete subnet: " + s.From.String()
	}
	return fmt.Sprintf("delete subnet: %s is replaced by %s", s.From, s.For)
}

func (s DeleteNetwork) String() string {
	if s.DuplicateOf != "" {
		return fmt.Sprintf("delete network %s: duplicate of %s, created by another request", s.ID, s.DuplicateOf)
	}
	return "delete network " + s.ID
}

func (RemoveFinalizer) String() string { return "remove finalizer" }

func (s FindRouter) String() string {
	if s.Filter.ID != "" {
		return "find router " + s.Filter.ID
	}
	return "find router with name " + strconv.Quote(s.Filter.Name)
}

func (s FindRouterInterfaces) String() string { return "find routers of network " + s.NetworkID }
func (s FindPorts) String() string            { return "find ports of network " + s.NetworkID }

func (s RecordRouter) String() string {
	if s.ID == "" {
		return "remove router " + s.Replaces + " from the status"
	}
	return "record router in the status: " + s.ID
}

func (s AttachRouter) String() string {
	address := KnownAfterCreate
	if s.Interface.Address.IsValid() {
		address = s.Interface.Address.String()
	}
	return fmt.Sprintf("attach subnet to router %s with the address %s", s.Interface.RouterID, address)
}

func (s DetachRouter) String() string {
	text := "detach subnet from router " + s.Interface.RouterID
	if s.For != "" {
		text += " to " + s.For
	}
	return text
}

func joinTexts[T any](values []T, text func(T) string, separator string) string {
	var texts []string
	for _, value := range values {
		texts = append(texts, text(value))
	}
	return strings.Join(texts, separator)
}
