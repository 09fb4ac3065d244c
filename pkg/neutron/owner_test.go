package neutron_test

import (
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestMark: the text is stored in clouds. If this test fails, whoever upgrades
// loses all networks from sight.
func TestMark(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	if got, want := owner.Mark(), "samplecrd.k8s.io owner: c1/default/example"; got != want {
		t.Errorf("Mark() = %q, want %q", got, want)
	}
	if got, want := owner.String(), "default/example"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestMarkFits: Neutron takes 255 characters, and each part has 63 at most.
func TestMarkFits(t *testing.T) {
	long := strings.Repeat("x", 63)
	owner := neutron.Owner{Cluster: long, Namespace: long, Name: long}
	if got := len(owner.Mark()); got > 255 {
		t.Errorf("a mark can have %d characters", got)
	}
}
