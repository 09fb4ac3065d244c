package neutron

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The kinds of failure. Every error of a Client is exactly one of them, told
// apart with errors.Is, and each asks for something else to be done.
var (
	// ErrNotFound: the object is not there (404).
	ErrNotFound = errors.New("not found")
	// ErrInUse: ports hold the object (409). It passes when they go.
	ErrInUse = errors.New("in use")
	// ErrConflict: somebody else changed the object since it was read (412, or
	// 409 where Neutron names a concurrent change). Read again, decide again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrRefused: Neutron understood and will not do it as things stand: quota,
	// policy, invalid values. It passes when the request or the cloud changes,
	// so it is worth another try after minutes, not after seconds.
	ErrRefused = errors.New("refused")
	// ErrUnavailable: no usable answer: servers away, overloaded or broken,
	// a time-out, a login that fails. The request may or may not have been
	// carried out.
	ErrUnavailable = errors.New("unavailable")
)

// Error is a failed request to Neutron. Its text is meant for people, is the
// same for the same failure (no request IDs, no times), and holds no secret.
type Error struct {
	// Op is the request in words, such as "create subnet".
	Op string
	// Class is one of the Err variables of this package.
	Class error
	// Status is the HTTP status, or 0 where there was no answer.
	Status int
	// Type is Neutron's name for the failure, such as "OverQuota", or empty.
	Type string
	// Message is the failure in Neutron's own words where it gave any.
	Message string
	// RetryAfter is how long the server asks to be left alone, or 0.
	RetryAfter time.Duration
	// Cause is the error behind it where there was no answer, such as
	// context.Canceled, or nil. Its text is not part of this error's.
	Cause error
}

// Error returns a sentence such as
// "create network: refused: 409 OverQuota: Quota exceeded for resources: ['network'].".
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

// Unwrap makes errors.Is(err, ErrInUse) and its like work.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Cause}
}
