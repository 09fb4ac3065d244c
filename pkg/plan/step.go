package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

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
	// ReasonNotOurs: the network that the status names carries no mark of ours,
	// or the one to adopt is another object's.
	ReasonNotOurs Reason = "NotOurs"
	// ReasonNotFound: there is no network with the ID that the spec names.
	ReasonNotFound Reason = "NotFound"
	// ReasonAdoptionNotAllowed: the spec names a network, which whoever runs the
	// controller has not allowed. Next never says this by itself; it is an
	// [Desired.Obstacle].
	ReasonAdoptionNotAllowed Reason = "AdoptionNotAllowed"
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
	// UpdateNetwork gives our network its name and mark back.
	UpdateNetwork struct {
		ID                        string
		FromName, FromDescription string
		Update                    neutron.NetworkUpdate
	}
	// RetainNetwork marks our network as one that waits for the next object of
	// the same name.
	RetainNetwork struct {
		ID     string
		Update neutron.NetworkUpdate
	}
	// CreateSubnet makes a subnet on our network.
	CreateSubnet struct{ Subnet neutron.Subnet }
	// UpdateSubnet gives our subnet another gateway, or its name and mark back.
	UpdateSubnet struct {
		ID     string
		From   netip.Addr
		Update neutron.SubnetUpdate
	}
	// DeleteSubnet takes our subnet away, to make room for one with the range To
	// where that is set.
	DeleteSubnet struct {
		ID       string
		Revision int
		From, To netip.Prefix
	}
	// DeleteNetwork takes our network away, with our subnet on it; or the twin of
	// it, where TwinOf is set.
	DeleteNetwork struct {
		ID       string
		Revision int
		TwinOf   string
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
func (UpdateNetwork) step()   {}
func (RetainNetwork) step()   {}
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
	return "find network with description " + quoted(s.Filter.Descriptions...)
}

func (s FindSubnets) String() string {
	return "find subnets of network " + s.Filter.NetworkID
}

func (AddFinalizer) String() string    { return "add finalizer" }
func (s CreateNetwork) String() string { return "create network " + s.Network.Name }

func (s UpdateNetwork) String() string {
	var changes []string
	if s.FromName != s.Update.Name {
		changes = append(changes, fmt.Sprintf("name %q → %q", s.FromName, s.Update.Name))
	}
	if s.FromDescription != s.Update.Description {
		changes = append(changes, fmt.Sprintf("description %q → %q", s.FromDescription, s.Update.Description))
	}
	return fmt.Sprintf("update network %s: %s", s.ID, strings.Join(changes, ", "))
}

func (s RetainNetwork) String() string {
	return fmt.Sprintf("retain network %s: description → %q", s.ID, s.Update.Description)
}

func (s CreateSubnet) String() string {
	return fmt.Sprintf("create subnet: %s, gateway %s", s.Subnet.CIDR, s.Subnet.Gateway)
}

func (s UpdateSubnet) String() string {
	var changes []string
	if s.From != s.Update.Gateway {
		from := "none"
		if s.From.IsValid() {
			from = s.From.String()
		}
		changes = append(changes, fmt.Sprintf("gateway %s → %s", from, s.Update.Gateway))
	}
	if s.Update.Description != "" {
		changes = append(changes, fmt.Sprintf("name → %q, description → %q", s.Update.Name, s.Update.Description))
	}
	return "update subnet: " + strings.Join(changes, ", ")
}

func (s DeleteSubnet) String() string {
	if !s.To.IsValid() {
		return "delete subnet: " + s.From.String()
	}
	return fmt.Sprintf("delete subnet: %s makes room for %s", s.From, s.To)
}

func (s DeleteNetwork) String() string {
	if s.TwinOf != "" {
		return fmt.Sprintf("delete network %s: a second one that we made, beside %s, when an answer was lost", s.ID, s.TwinOf)
	}
	return "delete network " + s.ID
}

func (RemoveFinalizer) String() string { return "remove finalizer" }

func quoted(texts ...string) string {
	var all []string
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, " or ")
}
