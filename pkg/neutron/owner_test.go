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
	if got, want := owner.RetainedMark(), "samplecrd.k8s.io retained: c1/default/example"; got != want {
		t.Errorf("RetainedMark() = %q, want %q", got, want)
	}
	if got, want := owner.String(), "default/example"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestMarkFits: Neutron takes 255 characters, and each part has 63 at most.
func TestMarkFits(t *testing.T) {
	long := strings.Repeat("x", 63)
	owner := neutron.Owner{Cluster: long, Namespace: long, Name: long}
	if got := len(owner.RetainedMark()); got > 255 {
		t.Errorf("a mark can have %d characters", got)
	}
}

// TestParseMark: it is the inverse of Mark, and takes nothing else for one.
func TestParseMark(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	if got, ok := neutron.ParseMark(owner.Mark()); !ok || got != owner {
		t.Errorf("ParseMark(%q) = %v, %v", owner.Mark(), got, ok)
	}
	for _, text := range []string{"", "mine", owner.RetainedMark(), owner.Mark() + "/x", "samplecrd.k8s.io owner: c1/default/", "samplecrd.k8s.io owner: c1/default", " " + owner.Mark()} {
		if got, ok := neutron.ParseMark(text); ok {
			t.Errorf("ParseMark(%q) = %v", text, got)
		}
	}
	for text, want := range map[string]bool{owner.Mark(): true, owner.RetainedMark(): true, "mine": false, "": false} {
		if neutron.IsMark(text) != want {
			t.Errorf("IsMark(%q) = %v", text, !want)
		}
	}
}
