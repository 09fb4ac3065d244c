package plan

import "fmt"

// Blocked ends a plan: the controller cannot continue until a user changes something in
// Kubernetes or Neutron. As an error, it is the outcome of a sync.
type Blocked struct {
	Reason  Reason
	Message string
}

func (Blocked) kind() kind       { return kind{} }
func (s Blocked) String() string { return fmt.Sprintf("blocked: %s: %s", s.Reason, s.Message) }
func (s Blocked) intent() string { return s.String() }
func (s Blocked) Error() string  { return s.String() }

// blocked returns the end of a plan with a formatted message.
func blocked(reason Reason, format string, values ...any) Step {
	return Blocked{Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// Reason is why a plan is blocked, as one word.
type Reason string

// The reasons for which Next blocks a plan. The reference of conditions has these sentences.
const (
	// ReasonInvalidSpec: the spec contains a value that the controller cannot use.
	ReasonInvalidSpec Reason = "InvalidSpec"
	// ReasonAmbiguous: Neutron has several networks or subnets with the owner marker of the
	// Network, or several subnet pools or routers with the name in the spec; or a network had
	// the owner marker before the Network was created.
	ReasonAmbiguous Reason = "Ambiguous"
	// ReasonNotOurs: the network in the status does not have the owner marker of the Network,
	// or the network to adopt belongs to another Network.
	ReasonNotOurs Reason = "NotOurs"
	// ReasonNotFound: the network, subnet pool or router in the spec does not exist.
	ReasonNotFound Reason = "NotFound"
	// ReasonExtensionMissing: a field of the spec requires an extension that this Neutron does
	// not have. Everything else is as desired.
	ReasonExtensionMissing Reason = "ExtensionMissing"
	// ReasonSubnetPoolMismatch: the subnet pool has another IP version than the spec requires,
	// or does not allocate ranges of the desired length.
	ReasonSubnetPoolMismatch Reason = "SubnetPoolMismatch"
	// ReasonOtherCloud: the network is in another cloud than the one that the controller is
	// connected to.
	ReasonOtherCloud Reason = "OtherCloud"
	// ReasonOtherCluster: there is no network yet, but one of an object of the same namespace
	// and name in another cluster.
	ReasonOtherCluster Reason = "OtherCluster"
	// ReasonDrifted: somebody changed the network or subnet directly in Neutron, and the drift
	// policy is to report it.
	ReasonDrifted Reason = "Drifted"
	// ReasonInUse: deleting the network would also delete subnets that do not belong to the
	// Network.
	ReasonInUse Reason = "InUse"
)

// The reasons of callers, for what the two states do not tell.
const (
	// ReasonPaused: an annotation of the Network pauses it.
	ReasonPaused Reason = "Paused"
	// ReasonAdoptionNotAllowed: the spec names a network to adopt, but the controller runs
	// without -allow-adoption for its namespace.
	ReasonAdoptionNotAllowed Reason = "AdoptionNotAllowed"
	// ReasonNamespaceLimit: the namespace has as many networks in Neutron as
	// -max-networks-per-namespace allows, including retained and orphaned ones.
	ReasonNamespaceLimit Reason = "NamespaceLimit"
	// ReasonDefinitionDeleted: the CustomResourceDefinition is being deleted, which deletes all
	// Networks, hardly ever on purpose.
	ReasonDefinitionDeleted Reason = "DefinitionDeleted"
	// ReasonNotConverging: Neutron's responses do not match the requests, so that the plan does
	// not end.
	ReasonNotConverging Reason = "NotConverging"
)
