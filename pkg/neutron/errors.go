package neutron

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The classes of errors. Every error of a Client has exactly one of them. Callers
// distinguish them with errors.Is; each requires a different reaction.
var (
	// ErrNotFound: the object does not exist (404).
	ErrNotFound = errors.New("not found")
	// ErrInUse: ports use the object (409). It passes when they are deleted.
	ErrInUse = errors.New("in use")
	// ErrConflict: another client changed the object since it was read (412, or 409
	// if Neutron reports a concurrent change). Read again, decide again.
	ErrConflict = errors.New("changed concurrently")
	// ErrRefused: Neutron understood the request and rejected it: quota, policy,
	// invalid values. It passes when the request or the cloud changes, so a retry is
	// worth it after minutes, not after seconds.
	ErrRefused = errors.New("rejected")
	// ErrUnavailable: no usable response: a server that is down, overloaded or
	// broken, a timeout, a login that failed. The request may have been executed.
	ErrUnavailable = errors.New("unavailable")
)

// NotSent is the Type of an Error whose request was certainly not sent: it had to wait too
// long for others, or another replica may be the leader.
const NotSent = "NotSent"

// ErrNoCloud is the Cause of an Error of a namespace that has no cloud, or whose cloud has
// not accepted a login yet. The request was not sent.
var ErrNoCloud = errors.New("no cloud")

// OverQuota is the type of an error of a request that would exceed a quota of the project.
const OverQuota = "OverQuota"

// Error is a failed request to Neutron. Its text is meant for people. It is the
// same for the same failure (no request IDs, no times), and contains no secret.
type Error struct {
	// Op is the request in words, such as "create subnet".
	Op string
	// Class is one of the Err variables of this package.
	Class error
	// Status is the HTTP status, or 0 if there was no response.
	Status int
	// Type is Neutron's name of the failure, such as OverQuota, or NotSent, or empty.
	Type string
	// Message is the failure in Neutron's own words, if there are any.
	Message string
	// Ports are the IDs of the ports that use the object, or of some of them, if they
	// are known.
	Ports []string
	// Keystone is the address of Keystone if its login failed, which the request needs,
	// and empty otherwise. Such a request was not executed.
	Keystone string
	// RetryAfter is how long the server requests not to be called, or 0.
	RetryAfter time.Duration
	// Cause is the underlying error if there was no response, such as
	// context.Canceled or ErrNoCloud, or nil. It is not part of the text.
	Cause error
}

// Error returns a text such as
// "create network: rejected: 409 OverQuota: Quota exceeded for resources: ['network'].".
func (e *Error) Error() string {
	words := []string{e.Op, e.Class.Error()}
	if e.Status != 0 {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.Type)))
	}
	if e.Message != "" {
		words = append(words, e.Message)
	}
	return strings.Join(words, ": ")
}

// IsLoginRejected reports whether Keystone has rejected the credentials, or does not know
// them. It does not know an application credential that was deleted, or its own address.
func (e *Error) IsLoginRejected() bool {
	switch e.Status {
	case 401, 403, 404:
		return e.Keystone != ""
	}
	return false
}

// IsWithoutCloud reports whether no cloud is configured for the namespace. If one is, and its
// login fails, the Error is that of the login.
func (e *Error) IsWithoutCloud() bool { return errors.Is(e.Cause, ErrNoCloud) && e.Keystone == "" }

// Unwrap returns the class and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Cause}
}
