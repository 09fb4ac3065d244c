// Package openstack speaks to a real Neutron over HTTP. It is the only package
// that knows of gophercloud.
//
// What it adds to gophercloud is distrust: a mistake here creates a network
// twice, or forgets one that is still there.
//
//   - An answer that is not the one that was asked for (no JSON, a list without
//     its key, an object without its revision, an address that does not parse)
//     is neutron.ErrUnavailable, never an empty list or a zero value.
//   - "Not found" is believed only of Neutron itself, and only of one object: a
//     404 out of a proxy, or as the answer to a list, is ErrUnavailable.
//   - One method call is one request (a list: one a page). Nothing is tried
//     again here, no redirect is followed, no rate limit is waited for: the
//     caller has a queue for that, and the error says how long to wait. There
//     are two exceptions: a request whose token was refused, and which so was
//     not carried out, is sent once more with a new one; and where ports hold a
//     subnet, they are asked for, since Neutron does not name them.
//   - Every failure is a *neutron.Error, whose text is the same for the same
//     failure, so that it can stand in a condition without changing it.
package openstack
