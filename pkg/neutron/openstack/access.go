package openstack

import (
	"net/http"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Neutron responds with 401 to a token that is not valid, and also to a request that
// the access rules of an application credential forbid. A token counts as valid for a
// while after Keystone issued it, and after Neutron accepted it.
const (
	validSinceIssued   = 30 * time.Second
	validSinceAccepted = 5 * time.Minute
)

// access remembers what Neutron does with tokens, so that a request that is forbidden
// does not cause a login each time.
type access struct {
	mu sync.Mutex
	// forbidden has the operations whose last response was 401, to a new token.
	forbidden map[string]bool
	// accepted is when Neutron last accepted a token. It is zero if Neutron has rejected
	// new tokens for two operations since: then it may reject them for all.
	accepted time.Time
	newest   string // the last operation that was found to be forbidden since accepted, or empty
}

// forget is for new credentials, which may have other access rules.
func (a *access) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forbidden = nil
}

// noteResponse notes a response other than 401. Neutron has accepted the token, unless the
// response may be that of a proxy, or of a Neutron that cannot reach Keystone.
func (a *access) noteResponse(op string, status int, now time.Time) {
	if status/100 != 2 && status/100 != 4 || status == http.StatusTooManyRequests {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.forbidden, op)
	a.accepted, a.newest = now, ""
}

// noteRejected notes a 401. It returns nil if the request is to be repeated with a new
// token, and its error otherwise. It is repeated once.
func (a *access) noteRejected(op string, with *session, now time.Time, repeated bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if repeated && !a.forbidden[op] {
		if a.forbidden == nil {
			a.forbidden = map[string]bool{}
		}
		a.forbidden[op] = true
		if a.newest != "" {
			a.accepted = time.Time{}
		}
		a.newest = op
	}
	isNew := now.Sub(with.issued) < validSinceIssued
	accepted := !a.accepted.IsZero() && now.Sub(a.accepted) < validSinceAccepted
	if !repeated && (!a.forbidden[op] || !isNew && !accepted) {
		return nil
	}
	failed := &neutron.Error{Op: op, Class: neutron.ErrRefused, Status: http.StatusUnauthorized, Type: "Unauthorized"}
	failed.Message = "Neutron accepts the token for other requests"
	if !accepted {
		failed.Class = neutron.ErrUnavailable
		failed.Message = "a new token is rejected as well: this Neutron trusts another Keystone, " +
			"or the access rules of the application credential forbid the request"
	}
	return failed
}
