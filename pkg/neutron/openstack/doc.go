// Package openstack is the neutron.Client for a real Neutron, over HTTP, with or
// without a login to Keystone. It is the only package that imports gophercloud.
//
// gophercloud reads clouds.yaml and logs in to Keystone. Requests to Neutron are this
// package's own, with strict checks, because a mistake here creates a network twice, or
// forgets one that exists:
//
//   - A response without the expected content is neutron.ErrUnavailable, never an
//     empty list or a zero value: no JSON, a list without its key, an object
//     without its revision, an invalid address. Only an object that the caller
//     certainly does not look for is skipped: see list.
//   - Responses are decoded as streams, and bounded in bytes, objects, pages and
//     time. So a hostile server cannot exhaust the memory.
//   - "Not found" is accepted from Neutron only, and for one object only. A 404
//     from a proxy, or for a list, is ErrUnavailable.
//   - One method call is one request (for a list: one per page). The package
//     repeats no request, follows no redirect and waits for no rate limit: the
//     caller has a queue, and the error holds Retry-After. There are two
//     exceptions. A request whose token is rejected, which Neutron has not
//     applied, is repeated with a new token. If ports use a subnet, one more
//     request lists them, because Neutron's error does not.
//   - Every failure is a *neutron.Error. Equal failures have equal texts, so that
//     a condition with the text does not change.
package openstack
