package plan

// isSafeFromCache reports whether a step may follow from a state that comes from the
// cache of Neutron's state, and may be out of date.
//
// A request with a revision is its own check: Neutron rejects it if anybody has changed
// the object, or created a subnet on the network. All other steps need a look first: the
// revision of a subnet does not protect from a new owner of its network, so a subnet is
// not deleted either. Two exceptions save the look when an object is created or deleted:
//
//   - No replica creates a network for an object before its finalizer is set. So nothing
//     exists for one whose finalizer this plan has just set, except for what earlier
//     objects left: a complete list since then contains that.
//   - A network that was deleted at the cached revision was the one in the cache.
func isSafeFromCache(actual Actual, step Step) bool {
	switch step := step.(type) {
	case Nothing, FindCloud, FindExtensions, FindSubnetPool, FindRouter, FindOtherClusters, AddFinalizer:
		return true
	case Blocked:
		return step.Reason == ReasonExtensionMissing // everything else is as desired
	case CreateNetwork:
		return actual.isNew
	case UpdateNetwork, UpdateSubnet, RetainNetwork:
		return true
	case DeleteNetwork:
		return step.DuplicateOf == ""
	case RemoveFinalizer:
		return actual.confirmed
	}
	return false
}

// WithoutCache returns the state without what came from the cache of Neutron's state.
func (a Actual) WithoutCache() Actual {
	a.Cached, a.confirmed = false, false
	a.byName, a.byID, a.subnets = nil, nil, nil
	a.routers, a.interfaces, a.interfacesOn, a.ports = nil, nil, nil, nil
	return a
}
