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
	// ReasonNotFound: there is no network, or subnet pool, that the spec names.
	ReasonNotFound Reason = "NotFound"
	// ReasonAdoptionNotAllowed: the spec names a network, which whoever runs the
	// controller has not allowed. Next never says this by itself; it is an
	// [Desired.Obstacle].
	ReasonAdoptionNotAllowed Reason = "AdoptionNotAllowed"
	// ReasonExtensionMissing: the spec asks for something that needs an extension
	// of Neutron that this cloud does not have. All else is as asked for.
	ReasonExtensionMissing Reason = "ExtensionMissing"
	// ReasonSubnetPoolMismatch: the subnet pool is not of the IP version that the
	// rest of the spec is, or hands out no range of the length that is asked for.
	ReasonSubnetPoolMismatch Reason = "SubnetPoolMismatch"
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
	// FindSubnetPool looks for the subnet pool that the spec names.
	FindSubnetPool struct{ Filter neutron.SubnetPoolFilter }
	// FindExtensions looks for what this Neutron can do.
	FindExtensions struct{}
)

// Change is what a step changes, for people.
type Change struct{ What, From, To string }

func (c Change) String() string { return fmt.Sprintf("%s %s → %s", c.What, c.From, c.To) }

// The steps that change something.
type (
	// AddFinalizer keeps the object until RemoveFinalizer.
	AddFinalizer struct{}
	// CreateNetwork makes a network.
	CreateNetwork struct{ Network neutron.NewNetwork }
	// UpdateNetwork gives our network its settings, name and mark back.
	UpdateNetwork struct {
		ID      string
		Changes []Change
		Update  neutron.NetworkUpdate
	}
	// RetainNetwork marks our network as one that waits for the next object of
	// the same name.
	RetainNetwork struct {
		ID     string
		Update neutron.NetworkUpdate
	}
	// NoteTags notes in the status which tags we are about to put on our network,
	// beside those noted before.
	NoteTags struct{ Tags []string }
	// AddTag puts a tag on our network.
	AddTag struct{ ID, Tag string }
	// RemoveTag takes a tag of ours away.
	RemoveTag struct{ ID, Tag string }
	// CreateSubnet makes a subnet on our network.
	CreateSubnet struct{ Subnet neutron.NewSubnet }
	// UpdateSubnet gives our subnet its settings, name and mark back.
	UpdateSubnet struct {
		ID      string
		Changes []Change
		Update  neutron.SubnetUpdate
	}
	// DeleteSubnet takes our subnet away, to make room for another one where that
	// is set.
	DeleteSubnet struct {
		ID       string
		Revision int
		From     netip.Prefix
		For      string
	}
	// DeleteNetwork takes our network away, with our subnet on it; or the twin of
	// it, where DuplicateOf is set.
	DeleteNetwork struct {
		ID          string
		Revision    int
		DuplicateOf string
	}
	// RemoveFinalizer lets the object go.
	RemoveFinalizer struct{}
)

func (Nothing) step()         {}
func (Blocked) step()         {}
func (FindNetwork) step()     {}
func (FindSubnets) step()     {}
func (FindSubnetPool) step()  {}
func (FindExtensions) step()  {}
func (NoteTags) step()        {}
func (AddTag) step()          {}
func (RemoveTag) step()       {}
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

func (s FindSubnetPool) String() string {
	if s.Filter.ID != "" {
		return "find subnet pool " + s.Filter.ID
	}
	return "find subnet pool with name " + strconv.Quote(s.Filter.Name)
}

func (FindExtensions) String() string  { return "find extensions" }
func (AddFinalizer) String() string    { return "add finalizer" }
func (s CreateNetwork) String() string { return "create network " + s.Network.Name }

func (s UpdateNetwork) String() string {
	return fmt.Sprintf("update network %s: %s", s.ID, join(s.Changes))
}

func (s RetainNetwork) String() string {
	return fmt.Sprintf("retain network %s: description → %q", s.ID, s.Update.Description)
}

func (s NoteTags) String() string  { return "note tags as ours: " + strings.Join(s.Tags, ", ") }
func (s AddTag) String() string    { return fmt.Sprintf("add tag %q to network %s", s.Tag, s.ID) }
func (s RemoveTag) String() string { return fmt.Sprintf("remove tag %q from network %s", s.Tag, s.ID) }

func (s CreateSubnet) String() string {
	var words []string
	if pool := s.Subnet.FromPool; pool != nil {
		length := ""
		if pool.PrefixLength > 0 {
			length = fmt.Sprintf("a /%d ", pool.PrefixLength)
		}
		words = append(words, length+"from subnet pool "+pool.SubnetPoolID)
	} else {
		words = append(words, s.Subnet.CIDR.String())
	}
	if gateway := s.Subnet.Gateway; gateway != nil {
		words = append(words, "gateway "+addrText(*gateway))
	}
	return "create subnet: " + strings.Join(words, ", ")
}

func (s UpdateSubnet) String() string { return "update subnet: " + join(s.Changes) }

func (s DeleteSubnet) String() string {
	if s.For == "" {
		return "delete subnet: " + s.From.String()
	}
	return fmt.Sprintf("delete subnet: %s makes room for %s", s.From, s.For)
}

func (s DeleteNetwork) String() string {
	if s.DuplicateOf != "" {
		return fmt.Sprintf("delete network %s: a second one that we made, beside %s, when an answer was lost", s.ID, s.DuplicateOf)
	}
	return "delete network " + s.ID
}

func (RemoveFinalizer) String() string { return "remove finalizer" }

func join(changes []Change) string {
	var words []string
	for _, change := range changes {
		words = append(words, change.String())
	}
	return strings.Join(words, ", ")
}

// addrText returns an address, or "none" for the zero Addr.
func addrText(address netip.Addr) string {
	if !address.IsValid() {
		return "none"
	}
	return address.String()
}

func quoted(texts ...string) string {
	var all []string
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, " or ")
}
