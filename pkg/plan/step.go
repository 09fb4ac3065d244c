package plan

import (
	"fmt"
	"net/netip"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Step is one request to Kubernetes or Neutron, or the end of a plan. Its text
// is how logs, events and tests speak of it.
type Step interface {
	fmt.Stringer
	step() // the steps are those of this file
}

// The steps that end a plan.
type (
	// Nothing is left to do: the actual state is the desired one.
	Nothing struct{}
	// Blocked means that no step of ours would help: somebody has to change
	// something in Kubernetes or Neutron first.
	Blocked struct {
		Reason  Reason
		Message string
	}
)

// Reason says in one word why a plan is blocked.
type Reason string

// The reasons for which a plan is blocked.
const (
	// ReasonInvalidSpec: the spec asks for something that cannot be.
	ReasonInvalidSpec Reason = "InvalidSpec"
	// ReasonAmbiguous: Neutron has several objects that carry our mark.
	ReasonAmbiguous Reason = "Ambiguous"
	// ReasonNotOurs: the network that the status names carries no mark of ours.
	ReasonNotOurs Reason = "NotOurs"
	// ReasonInUse: something that is not ours would be taken away as well.
	ReasonInUse Reason = "InUse"
	// ReasonNotConverging: step after step is done and the end does not come.
	// Next never says this; whoever counts the steps does.
	ReasonNotConverging Reason = "NotConverging"
)

// The steps that look.
type (
	// FindNetwork looks for our network by its ID or by our mark.
	FindNetwork struct{ Filter neutron.NetworkFilter }
	// FindSubnets looks for the subnets on our network.
	FindSubnets struct{ Filter neutron.SubnetFilter }
)

// The steps that change something.
type (
	// AddFinalizer keeps the object until RemoveFinalizer.
	AddFinalizer struct{}
	// CreateNetwork makes a network.
	CreateNetwork struct{ Network neutron.Network }
	// CreateSubnet makes a subnet on our network.
	CreateSubnet struct{ Subnet neutron.Subnet }
	// UpdateSubnet gives our subnet another gateway.
	UpdateSubnet struct {
		ID     string
		From   netip.Addr
		Update neutron.SubnetUpdate
	}
	// DeleteSubnet takes our subnet away to make room for one with another
	// range.
	DeleteSubnet struct {
		ID       string
		Revision int
		From, To netip.Prefix
	}
	// DeleteNetwork takes our network away, with our subnet on it.
	DeleteNetwork struct {
		ID       string
		Revision int
	}
	// RemoveFinalizer lets the object go.
	RemoveFinalizer struct{}
)

func (Nothing) step()         {}
func (Blocked) step()         {}
func (FindNetwork) step()     {}
func (FindSubnets) step()     {}
func (AddFinalizer) step()    {}
func (CreateNetwork) step()   {}
func (CreateSubnet) step()    {}
func (UpdateSubnet) step()    {}
func (DeleteSubnet) step()    {}
func (DeleteNetwork) step()   {}
func (RemoveFinalizer) step() {}

func (Nothing) String() string   { return "nothing to do" }
func (s Blocked) String() string { return fmt.Sprintf("blocked: %s: %s", s.Reason, s.Message) }

func (s FindNetwork) String() string {
	if s.Filter.ID != "" {
		return "find network " + s.Filter.ID
	}
	return fmt.Sprintf("find network with description %q", s.Filter.Description)
}

func (s FindSubnets) String() string {
	return "find subnets of network " + s.Filter.NetworkID
}

func (AddFinalizer) String() string    { return "add finalizer" }
func (s CreateNetwork) String() string { return "create network " + s.Network.Name }

func (s CreateSubnet) String() string {
	return fmt.Sprintf("create subnet: %s, gateway %s", s.Subnet.CIDR, s.Subnet.Gateway)
}

func (s UpdateSubnet) String() string {
	from := "none"
	if s.From.IsValid() {
		from = s.From.String()
	}
	return fmt.Sprintf("update subnet: gateway %s → %s", from, s.Update.Gateway)
}

func (s DeleteSubnet) String() string {
	return fmt.Sprintf("delete subnet: %s makes room for %s", s.From, s.To)
}

func (s DeleteNetwork) String() string { return "delete network " + s.ID }
func (RemoveFinalizer) String() string { return "remove finalizer" }
