package neutron_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

func TestErrorText(t *testing.T) {
	for want, err := range map[string]*neutron.Error{
		"create network: rejected: 409 OverQuota: Quota exceeded.": {Op: "create network", Class: neutron.ErrRefused, Status: 409, Type: "OverQuota", Message: "Quota exceeded."},
		"list networks: unavailable: 503":                          {Op: "list networks", Class: neutron.ErrUnavailable, Status: 503},
		"list networks: unavailable: connection refused":           {Op: "list networks", Class: neutron.ErrUnavailable, Message: "connection refused", Cause: errors.New("hidden")},
	} {
		if got := err.Error(); got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
	}
}

// TestIsLoginRejected: only Keystone can reject a login.
func TestIsLoginRejected(t *testing.T) {
	for status, want := range map[int]bool{401: true, 403: true, 404: true, 400: false, 429: false, 503: false, 0: false} {
		for _, keystone := range []string{"https://keystone.example/v3", ""} {
			err := &neutron.Error{Class: neutron.ErrUnavailable, Keystone: keystone, Status: status}
			if got := err.IsLoginRejected(); got != (want && keystone != "") {
				t.Errorf("IsLoginRejected() of %d, Keystone %q = %v", status, keystone, got)
			}
		}
	}
}

func TestErrorIs(t *testing.T) {
	err := error(&neutron.Error{Class: neutron.ErrUnavailable, Cause: context.Canceled})
	if !errors.Is(err, neutron.ErrUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, neutron.ErrRefused) {
		t.Errorf("%v is of another kind, or has lost its cause", err)
	}
}
