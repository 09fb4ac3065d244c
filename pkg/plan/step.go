package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Step is one request to Kubernetes or Neutron, or the end of a plan. Logs and plans
// contain its text. The steps are those of this package.
type Step interface {
	fmt.Stringer
	kind() kind
	intent() string
}

// kind says what a step does. It is empty if the step ends a plan.
type kind struct {
	action Action
	// corrects is true if the step may correct what another client changed in Neutron, and
	// false if it only ends what the controller itself made.
	corrects bool
	fact     string
	// event is the reason of the event that reports the step. It is empty if the step changes
	// nothing in Neutron: it reads, or changes the object in Kubernetes.
	event string
}

// Action is what a step does to an object.
type Action string

// The actions. To change a part of an object is to update the object.
const (
	Find   Action = "find"
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// ActionOf returns what a step does, or an empty string for the end of a plan.
func ActionOf(step Step) Action { return step.kind().action }

// IsRead reports whether a step only reads.
func IsRead(step Step) bool { return step.kind().action == Find }

// ChangesNeutron reports whether a step changes something in Neutron.
func ChangesNeutron(step Step) bool { return step.kind().event != "" }

// MayCorrect reports whether a step may correct what another client changed in Neutron.
func MayCorrect(step Step) bool { return step.kind().corrects }

// Fact returns what a step did, in the past tense, for the log.
func Fact(step Step) string { return step.kind().fact }

// Intent returns what a step is for, after "cannot" or "to".
func Intent(step Step) string { return step.intent() }

// Cure returns what a user does if Neutron rejects a step because something is in use.
func Cure(step Step) string {
	isDeletion := false
	switch step := step.(type) {
	case AttachRouter:
		return "Delete the port, or set spec.gateway to another address."
	case DetachRouter:
		return "Remove the routes or floating IP addresses that require the router, or restore the previous spec."
	case DeleteNetwork:
		if step.DuplicateOf != "" {
			return "Delete the ports, or move them to the other network."
		}
		isDeletion = true
	case DeleteSubnet:
		isDeletion = step.For == ""
	}
	if isDeletion {
		return "Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain."
	}
	return "Delete the ports, or restore the previous spec."
}

// Did returns what a step did that an event reports: its intent, whose verb is regular, in
// the past tense.
func Did(step Step) string {
	verb, object, _ := strings.Cut(strings.TrimSuffix(step.intent(), ","), " ")
	return strings.TrimSuffix(verb, "e") + "ed " + object
}

// DuplicateDeleted is the reason of the event for a duplicate, which has an event of its own.
const DuplicateDeleted = "DuplicateDeleted"

// EventOf returns the reason of the event that reports a step, or an empty string.
func EventOf(step Step) string { return step.kind().event }

// Nothing ends a plan: the actual state is the desired state.
type Nothing struct{}

func (Nothing) kind() kind     { return kind{} }
func (Nothing) String() string { return "nothing to do" }
func (Nothing) intent() string { return "do nothing" }

// FindNetwork looks for our network by its ID or by our owner marker.
type FindNetwork struct{ Filter neutron.NetworkFilter }

func (FindNetwork) kind() kind     { return kind{action: Find, fact: "Found networks"} }
func (FindNetwork) intent() string { return "look up the Neutron network" }

func (s FindNetwork) String() string {
	if s.Filter.ID != "" {
		return "find network " + s.Filter.ID
	}
	return "find networks with the name " + strconv.Quote(s.Filter.Name)
}

// FindSubnets looks for the subnets on our network.
type FindSubnets struct{ Filter neutron.SubnetFilter }

func (FindSubnets) kind() kind       { return kind{action: Find, fact: "Found subnets"} }
func (s FindSubnets) String() string { return "find subnets of network " + s.Filter.NetworkID }
func (FindSubnets) intent() string   { return "look up the subnets of the Neutron network" }

// FindSubnetPool looks for the subnet pool in the spec.
type FindSubnetPool struct{ Filter neutron.SubnetPoolFilter }

func (FindSubnetPool) kind() kind { return kind{action: Find, fact: "Found subnet pools"} }
func (s FindSubnetPool) String() string {
	return "find subnet pool " + idOrName(s.Filter.ID, s.Filter.Name)
}
func (FindSubnetPool) intent() string { return "look up the subnet pool" }

// FindExtensions looks for the extensions of this Neutron.
type FindExtensions struct{}

func (FindExtensions) kind() kind     { return kind{action: Find, fact: "Found extensions"} }
func (FindExtensions) String() string { return "find extensions" }
func (FindExtensions) intent() string { return "look up the extensions of Neutron" }

// FindRouter looks for the router in the spec.
type FindRouter struct{ Filter neutron.RouterFilter }

func (FindRouter) kind() kind       { return kind{action: Find, fact: "Found routers"} }
func (s FindRouter) String() string { return "find router " + idOrName(s.Filter.ID, s.Filter.Name) }
func (FindRouter) intent() string   { return "look up the router" }

// FindRouterInterfaces looks for the routers to which a network is attached.
type FindRouterInterfaces struct{ NetworkID string }

func (FindRouterInterfaces) kind() kind       { return kind{action: Find, fact: "Found router interfaces"} }
func (s FindRouterInterfaces) String() string { return "find routers of network " + s.NetworkID }
func (FindRouterInterfaces) intent() string   { return "look up the routers of the Neutron network" }

// FindPorts looks for the ports that use a network.
type FindPorts struct{ NetworkID string }

func (FindPorts) kind() kind       { return kind{action: Find, fact: "Found ports"} }
func (s FindPorts) String() string { return "find ports of network " + s.NetworkID }
func (FindPorts) intent() string   { return "look up the ports of the Neutron network" }

// FindOtherClusters looks for networks of other clusters with our name.
type FindOtherClusters struct{ Name string }

func (FindOtherClusters) kind() kind       { return kind{action: Find, fact: "Found other clusters"} }
func (s FindOtherClusters) intent() string { return s.String() }
func (s FindOtherClusters) String() string {
	return "find networks of other clusters with the name " + strconv.Quote(s.Name)
}

// FindCloud looks for the identity of the cloud that requests go to.
type FindCloud struct{}

func (FindCloud) kind() kind     { return kind{action: Find, fact: "Found cloud"} }
func (FindCloud) String() string { return "find the cloud" }
func (FindCloud) intent() string { return "find out to which cloud Neutron belongs" }

// AddFinalizer keeps the object until RemoveFinalizer, and records the cloud.
type AddFinalizer struct{ Cloud string }

func (AddFinalizer) kind() kind     { return kind{action: Update, fact: "Added finalizer"} }
func (AddFinalizer) String() string { return "add finalizer" }
func (AddFinalizer) intent() string { return "add finalizer" }

// RemoveFinalizer lets Kubernetes delete the object.
type RemoveFinalizer struct{}

func (RemoveFinalizer) kind() kind     { return kind{action: Update, fact: "Removed finalizer"} }
func (RemoveFinalizer) String() string { return "remove finalizer" }
func (RemoveFinalizer) intent() string { return "finish the deletion" }

// RecordTags records in the status the tags that were added to our network, or are about
// to be.
type RecordTags struct{ Tags []string }

func (RecordTags) kind() kind { return kind{action: Update, fact: "Recorded tags"} }
func (s RecordTags) String() string {
	return "record tags in the status: " + strings.Join(s.Tags, ", ")
}
func (RecordTags) intent() string { return "record the tags in the status" }

// RecordRouter records in the status the router to which our subnet is about to be
// attached, or none. Replaces is the one that was recorded before, or empty.
type RecordRouter struct{ ID, Name, Replaces string }

func (RecordRouter) kind() kind     { return kind{action: Update, fact: "Recorded router"} }
func (RecordRouter) intent() string { return "record the router in the status" }

func (s RecordRouter) String() string {
	if s.ID == "" {
		return "remove router " + s.Replaces + " from the status"
	}
	return "record router in the status: " + s.ID
}

// CreateNetwork creates a network.
type CreateNetwork struct{ Network neutron.NewNetwork }

func (CreateNetwork) kind() kind       { return kind{Create, true, "Created network", "NetworkCreated"} }
func (s CreateNetwork) String() string { return "create network " + s.Network.Name }
func (CreateNetwork) intent() string   { return "create the Neutron network" }

// UpdateNetwork restores the settings, name and owner marker of our network.
type UpdateNetwork struct {
	ID      string
	Changes []Change
	Update  neutron.NetworkUpdate
}

func (UpdateNetwork) kind() kind       { return kind{Update, true, "Changed network", "NetworkUpdated"} }
func (s UpdateNetwork) intent() string { return changeIntent(s.Changes) }
func (s UpdateNetwork) String() string {
	return "update network " + s.ID + ": " + changesText(s.Changes)
}

// RetainNetwork gives our network the retained marker, for the next object of the same
// name.
type RetainNetwork struct {
	ID     string
	Update neutron.NetworkUpdate
}

func (RetainNetwork) kind() kind       { return kind{Update, false, "Retained network", "NetworkRetained"} }
func (s RetainNetwork) intent() string { return "mark the Neutron network " + s.ID + " as retained" }
func (s RetainNetwork) String() string {
	return fmt.Sprintf("retain network %s: description → %q", s.ID, s.Update.Description)
}

// DeleteNetwork deletes our network, with our subnet on it. If DuplicateOf is set, it
// deletes a duplicate of that network.
type DeleteNetwork struct {
	ID          string
	Revision    int
	DuplicateOf string
}

func (s DeleteNetwork) kind() kind {
	if s.DuplicateOf != "" {
		return kind{Delete, false, "Deleted duplicate network", DuplicateDeleted}
	}
	return kind{Delete, false, "Deleted network", "NetworkDeleted"}
}

func (s DeleteNetwork) String() string {
	if s.DuplicateOf != "" {
		return fmt.Sprintf("delete network %s: duplicate of %s, created by another request", s.ID, s.DuplicateOf)
	}
	return "delete network " + s.ID
}

func (s DeleteNetwork) intent() string {
	if s.DuplicateOf != "" {
		return fmt.Sprintf("delete the Neutron network %s, a duplicate of %s,", s.ID, s.DuplicateOf)
	}
	return "delete the Neutron network " + s.ID
}

// AddTag adds a tag to our network.
type AddTag struct{ ID, Tag string }

func (AddTag) kind() kind       { return kind{Update, true, "Added tag", "NetworkUpdated"} }
func (s AddTag) String() string { return fmt.Sprintf("add tag %q to network %s", s.Tag, s.ID) }
func (s AddTag) intent() string { return fmt.Sprintf("add the tag %q", s.Tag) }

// RemoveTag removes a tag of ours.
type RemoveTag struct{ ID, Tag string }

func (RemoveTag) kind() kind       { return kind{Update, false, "Removed tag", "NetworkUpdated"} }
func (s RemoveTag) String() string { return fmt.Sprintf("remove tag %q from network %s", s.Tag, s.ID) }
func (s RemoveTag) intent() string { return fmt.Sprintf("remove the tag %q", s.Tag) }

// CreateSubnet creates a subnet on our network.
type CreateSubnet struct{ Subnet neutron.NewSubnet }

func (CreateSubnet) kind() kind       { return kind{Create, true, "Created subnet", "SubnetCreated"} }
func (s CreateSubnet) String() string { return "create subnet: " + s.text() }

func (s CreateSubnet) intent() string {
	if s.Subnet.FromPool != nil {
		return "create a subnet with " + s.text()
	}
	return "create the subnet " + s.text()
}

// text describes the subnet.
func (s CreateSubnet) text() string {
	text := s.Subnet.CIDR.String()
	if pool := s.Subnet.FromPool; pool != nil {
		text = allocationText(pool.SubnetPoolID, pool.PrefixLength)
	}
	if gateway := s.Subnet.Gateway; gateway != nil {
		text += ", gateway " + addrText(*gateway)
	}
	return text
}

// UpdateSubnet restores the settings, name and owner marker of our subnet.
type UpdateSubnet struct {
	ID      string
	Changes []Change
	Update  neutron.SubnetUpdate
}

func (UpdateSubnet) kind() kind       { return kind{Update, true, "Changed subnet", "SubnetUpdated"} }
func (s UpdateSubnet) String() string { return "update subnet: " + changesText(s.Changes) }
func (s UpdateSubnet) intent() string { return changeIntent(s.Changes) }

// DeleteSubnet deletes our subnet. For describes the subnet that replaces it, if there is
// one. Duplicate is true if there already is another one of ours.
type DeleteSubnet struct {
	Duplicate bool
	ID        string
	Revision  int
	From      netip.Prefix
	For       string
}

func (DeleteSubnet) kind() kind { return kind{Delete, true, "Deleted subnet", "SubnetDeleted"} }

func (s DeleteSubnet) String() string {
	if s.For == "" {
		return "delete subnet: " + s.From.String()
	}
	return fmt.Sprintf("delete subnet: %s is replaced by %s", s.From, s.For)
}

func (s DeleteSubnet) intent() string {
	if s.For == "" {
		return "delete the subnet " + s.From.String()
	}
	return fmt.Sprintf("change %s to %s", s.From, s.For)
}

// AttachRouter attaches our subnet to a router.
type AttachRouter struct{ Interface neutron.RouterInterface }

func (AttachRouter) kind() kind {
	return kind{Update, true, "Attached subnet to router", "RouterAttached"}
}
func (s AttachRouter) String() string { return s.text("attach subnet") }
func (s AttachRouter) intent() string { return s.text("attach the subnet") }

func (s AttachRouter) text(begin string) string {
	address := KnownAfterCreate
	if s.Interface.Address.IsValid() {
		address = s.Interface.Address.String()
	}
	return fmt.Sprintf("%s to router %s with the address %s", begin, s.Interface.RouterID, address)
}

// DetachRouter detaches our subnet from a router. For describes what that permits, if the
// router is attached again or the subnet is deleted.
type DetachRouter struct {
	Interface neutron.RouterInterface
	For       string
}

func (DetachRouter) kind() kind {
	return kind{Update, true, "Detached subnet from router", "RouterDetached"}
}
func (s DetachRouter) intent() string { return "detach the subnet from router " + s.Interface.RouterID }

func (s DetachRouter) String() string {
	text := "detach subnet from router " + s.Interface.RouterID
	if s.For != "" {
		text += " to " + s.For
	}
	return text
}

// Change describes what a step changes.
type Change struct{ What, From, To string }

func (c Change) String() string { return fmt.Sprintf("%s %s → %s", c.What, c.From, c.To) }

func changeIntent(changes []Change) string {
	text := func(c Change) string { return fmt.Sprintf("%s from %s to %s", c.What, c.From, c.To) }
	return "change " + listText(changes, text)
}

func idOrName(id, name string) string {
	if id != "" {
		return id
	}
	return "with name " + strconv.Quote(name)
}
