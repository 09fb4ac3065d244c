package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/samplecrd/network-controller/pkg/plan"
)

// The ledger has, for each key, what may exist in Neutron although no object names it. A
// finalizer does not prove that an object waits for it (kubernetes/kubernetes#77988), and
// a request without a response may be executed minutes later. So nothing is forgotten
// because an object is gone or because time has passed: only because a status names the
// network, or because a list that began afterwards does not have it.
//
//	event                                what the account of the key notes
//	-----------------------------------  ----------------------------------------------
//	a request is about to be sent        the request, as pending
//	Neutron has executed it              the ID of its network; it is no longer pending
//	Neutron has rejected it, or it was
//	not sent                             nothing: the request ends
//	there is no response                 it is pending for maxInFlight, and its network
//	                                     may appear for maxLateness
//	the status names its network         the request ends
//	its network was deleted or retained  the request ends
//	a list that began after its time
//	does not have its network            the request ends
//	the finalizer was set, or another
//	object of the name has it            an earlier release ends
//	the finalizer was removed, or the
//	response to that was lost            a release: what Neutron has now stays; what
//	                                     appears within maxLateness is deleted
//	a list began after its time          the release ends
//	a router is about to be attached,
//	or was detached                      the router, or none
//	a subnet is about to be created on
//	an adopted network, or the network
//	is left                              the network, until the status names the subnet, or
//	                                     a list that began after maxLateness has none of
//	                                     ours on it
//	the first sync of an object whose
//	finalizer another leader has set     what that one may have requested
//	a list began maxInFlight later       a former leader's requests are all in it
//	an orphan is to be deleted           that, until the next sync
//
// An account without a note is removed from the ledger.

// account is what may exist in Neutron for one key.
type account struct {
	requests []request
	released *release
	former   *former
	// router is the router to which a subnet of a network in requests, or on one in adopted,
	// may be attached.
	router string
	// adopted are networks of somebody else on which a subnet of ours may be.
	adopted []adopted
	// isOrphan is true if everything with the owner marker is to be deleted, because the
	// object does not exist.
	isOrphan bool
}

// request is a request to Neutron that no status names yet.
type request struct {
	// id is the request in an owner marker. It is empty for a request that leaves no
	// network behind: then only pendingUntil matters.
	id string
	// networkID is empty until Neutron has responded.
	networkID string
	// inFlight is true until there is a response, or the controller stops waiting for it.
	inFlight bool
	// pendingUntil is until when Neutron may still be executing the request, and nothing
	// that it may change can be decided. It is zero after a response.
	pendingUntil time.Time
	// endsAt is from when on a list without its network shows that there is none.
	endsAt time.Time
}

// release is the end of an object whose finalizer this process removed.
type release struct {
	uid    types.UID
	seen   []string // the requests of the networks that Neutron had then
	endsAt time.Time
}

// adopted is a network of somebody else.
type adopted struct {
	networkID string
	endsAt    time.Time // from when on a list without a subnet of ours shows that there is none
}

// former is an object as a former leader left it.
type former struct {
	uid       types.UID
	networkID string
	// readySince is when the object became Ready, or zero if it was not.
	readySince time.Time
}

// sent notes a request that is about to be sent.
func (a *account) sent(id string) {
	a.ended(id, "")
	a.requests = append(a.requests, request{id: id, inFlight: true})
}

// executed notes that Neutron has executed a request.
func (a *account) executed(id, networkID string, now time.Time) {
	a.edit(id, func(r *request) { *r = request{id: id, networkID: networkID, endsAt: now} })
}

// lost notes that there is no response to a request.
func (a *account) lost(id string, pendingUntil, endsAt time.Time) {
	a.edit(id, func(r *request) { r.inFlight, r.pendingUntil, r.endsAt = false, pendingUntil, endsAt })
}

func (a *account) edit(id string, change func(*request)) {
	for i := range a.requests {
		if a.requests[i].id == id && a.requests[i].inFlight {
			change(&a.requests[i])
		}
	}
}

// ended ends a request, by its ID or by its network: it was rejected, or a status names
// its network, or there is no network of it any more. Without an ID, it ends the request
// in flight.
func (a *account) ended(id, networkID string) {
	a.end(func(r request) bool {
		return r.id == id && (id != "" || r.inFlight) || networkID != "" && r.networkID == networkID
	})
}

func (a *account) end(isOver func(request) bool) {
	a.requests = slices.DeleteFunc(a.requests, isOver)
}

// mayHaveSubnet notes that a subnet of ours may be on a network of somebody else.
func (a *account) mayHaveSubnet(on adopted) {
	a.hasNoSubnet(on.networkID)
	a.adopted = append(a.adopted, on)
}

func (a *account) hasNoSubnet(networkID string) {
	a.adopted = slices.DeleteFunc(a.adopted, func(known adopted) bool { return known.networkID == networkID })
}

// listed notes that a complete list of Neutron's state began at a time. It has the networks
// of some requests, and subnets of ours on some networks of somebody else.
func (a *account) listed(began time.Time, inList, withSubnet []string, formerUntil time.Time) {
	a.end(func(r request) bool {
		isOver := !r.inFlight && r.endsAt.Before(began) && r.pendingUntil.Before(began)
		return isOver && (r.id == "" || !slices.Contains(inList, r.id))
	})
	isLate := func(id string) bool { return !slices.Contains(a.released.seen, id) } // the next sync deletes it
	if a.released != nil && a.released.endsAt.Before(began) && !slices.ContainsFunc(inList, isLate) {
		a.released = nil
	}
	a.adopted = slices.DeleteFunc(a.adopted, func(known adopted) bool {
		return known.endsAt.Before(began) && !slices.Contains(withSubnet, known.networkID)
	})
	if formerUntil.Before(began) {
		a.former = nil
	}
}

func (a *account) hasNetworks() bool {
	return slices.ContainsFunc(a.requests, func(r request) bool { return r.id != "" })
}

// hasUnnamed reports whether something may exist to which a router can be attached.
func (a *account) hasUnnamed() bool { return a.hasNetworks() || len(a.adopted) > 0 }

// claims returns which networks with the owner marker belong to the controller although
// no status names them. Gone is true if there is no object.
func (a *account) claims(gone bool) (claims plan.Claims) {
	for _, r := range a.requests {
		if r.id != "" {
			claims.Requests = append(claims.Requests, r.id)
		}
	}
	if a.released != nil {
		claims.Released, claims.Seen = true, a.released.seen
	}
	claims.Orphans = gone && a.isOrphan
	return claims
}

// pendingUntil returns until when a request without a response may be pending.
func (a *account) pendingUntil() (until time.Time) {
	for _, r := range a.requests {
		if r.pendingUntil.After(until) {
			until = r.pendingUntil
		}
	}
	return until
}

// counts reports whether a network may exist, or come into being, that a list lacks, given
// whether a list has begun since a time.
func (a *account) counts(listedSince func(time.Time) bool) bool {
	return slices.ContainsFunc(a.requests, func(r request) bool {
		return r.id != "" && (r.inFlight || r.pendingUntil.IsZero() || !listedSince(r.pendingUntil))
	})
}

func (a *account) isEmpty() bool {
	return len(a.requests) == 0 && a.released == nil && a.former == nil && len(a.adopted) == 0 && !a.isOrphan
}
