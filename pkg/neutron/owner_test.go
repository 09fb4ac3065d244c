package neutron_test

import (
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestMarker: clouds store the text. If this test fails, an upgraded controller no
// longer finds its networks.
func TestMarker(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	if got, want := owner.Marker(), "samplecrd.k8s.io owner: c1/default/example"; got != want {
		t.Errorf("Mark() = %q, want %q", got, want)
	}
	if got, want := owner.RetainedMarker(), "samplecrd.k8s.io retained: c1/default/example"; got != want {
		t.Errorf("RetainedMarker() = %q, want %q", got, want)
	}
	if got, want := owner.String(), "default/example"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestMarkFits: Neutron takes 255 characters, and each part has 63 at most.
func TestMarkFits(t *testing.T) {
	long := strings.Repeat("x", 63)
	owner := neutron.Owner{Cluster: long, Namespace: long, Name: long}
	if got := len(owner.RetainedMarker()); got > 255 {
		t.Errorf("a mark can have %d characters", got)
	}
}

// TestParseMark: it is the inverse of Mark, and takes nothing else for one.
func TestParseMark(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	if got, ok := neutron.ParseMarker(owner.Marker()); !ok || got != owner {
		t.Errorf("ParseMarker(%q) = %v, %v", owner.Marker(), got, ok)
	}
	for _, text := range []string{"", "mine", owner.RetainedMarker(), owner.Marker() + "/x", "samplecrd.k8s.io owner: c1/default/", "samplecrd.k8s.io owner: c1/default", " " + owner.Marker(), owner.Marker() + "\nforged", owner.Marker() + "\x1b[2J"} {
		if got, ok := neutron.ParseMarker(text); ok {
			t.Errorf("ParseMarker(%q) = %v", text, got)
		}
	}
	others := []neutron.Owner{{}, {Cluster: "c", Namespace: "default", Name: "example"}, {Cluster: "c1", Namespace: "default", Name: "exampl"}, {Cluster: "c1", Namespace: "defaul", Name: "example"}}
	for _, other := range append(others, owner) {
		if has, hasRetained := owner.HasMarker(other.Marker()), owner.HasRetainedMarker(other.RetainedMarker()); has != (other == owner) || hasRetained != has {
			t.Errorf("%v has the markers of %v: %v, %v", owner, other, has, hasRetained)
		}
		if owner.HasMarker(other.RetainedMarker()) || owner.HasRetainedMarker(other.Marker()) || owner.HasMarker(other.Marker()+"/x") {
			t.Errorf("%v has a marker of %v", owner, other)
		}
	}
	for text, want := range map[string]bool{owner.Marker(): true, owner.RetainedMarker(): true, "mine": false, "": false} {
		if neutron.IsMarker(text) != want {
			t.Errorf("IsMarker(%q) = %v", text, !want)
		}
	}
}
