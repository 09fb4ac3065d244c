package neutron_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

func TestErrorText(t *testing.T) {
	for name, test := range map[string]struct {
		err  *neutron.Error
		want string
	}{
		"in Neutron's words": {
			&neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 409, Type: "OverQuota", Message: "Quota exceeded."},
			"create network: rejected: 409 OverQuota: Quota exceeded.",
		},
		"no words": {
			&neutron.Error{Op: "list networks", Class: neutron.ErrUnavailable, Status: 503},
			"list networks: unavailable: 503",
		},
		"no answer": {
			&neutron.Error{Op: "list networks", Class: neutron.ErrUnavailable, Message: "connection refused", Cause: errors.New("hidden")},
			"list networks: unavailable: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.err.Error(); got != test.want {
				t.Errorf("Error() = %q, want %q", got, test.want)
			}
		})
	}
}

// TestIsLoginRejected: only Keystone can reject a login.
func TestIsLoginRejected(t *testing.T) {
	const keystone = "https://keystone.example/v3"
	for _, test := range []struct {
		keystone string
		status   int
		want     bool
	}{
		{keystone, 401, true},
		{keystone, 403, true},
		{keystone, 404, true},
		{keystone, 400, false},
		{keystone, 429, false},
		{keystone, 503, false},
		{keystone, 0, false},
		{"", 401, false},
		{"", 404, false},
	} {
		err := &neutron.Error{Class: neutron.ErrUnavailable, Keystone: test.keystone, Status: test.status}
		if got := err.IsLoginRejected(); got != test.want {
			t.Errorf("IsLoginRejected() of %d, Keystone %q = %v, want %v", test.status, test.keystone, got, test.want)
		}
	}
}

func TestErrorIs(t *testing.T) {
	err := error(&neutron.Error{Class: neutron.ErrUnavailable, Cause: context.Canceled})
	if !errors.Is(err, neutron.ErrUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, neutron.ErrRefused) {
		t.Errorf("%v is of another kind, or has lost its cause", err)
	}
}
