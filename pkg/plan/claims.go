package plan

import (
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Claims say which networks with the owner marker of an object belong to the controller
// although no status names them. Without a claim, it is unknown why a network is there: a
// user may have removed the finalizer of its object to keep it.
type Claims struct {
	// Requests are those of this process that created or took over a network, or may
	// have, and that no status names.
	Requests []string
	// Released is true if this process has finished the deletion of an object. Seen are
	// the requests of the networks that Neutron had then, which were left for a reason. A
	// network of any other request was created later, by a request in flight.
	Released bool
	Seen     []string
	// Orphans is true if every network without an object is to be deleted.
	Orphans bool
}

// Has reports whether there is a claim to the network with a description.
func (c Claims) Has(description string) bool {
	request := neutron.RequestOf(description)
	switch {
	case c.Orphans || slices.Contains(c.Requests, request):
		return true
	case request == "":
		return false
	}
	return c.Released && !slices.Contains(c.Seen, request)
}
