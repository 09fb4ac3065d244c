package neutron_test

import (
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestMarkers pins the owner markers, which are stored in clouds, and what they say.
func TestMarkers(t *testing.T) {
	for _, test := range []struct {
		got, want, request string
		takenOver          bool
	}{
		{owner.Marker(), "samplecrd.k8s.io owner: c1/default/example", "", false},
		{owner.NetworkMarker("k3", false), "samplecrd.k8s.io network owner: c1/default/example request: k3", "k3", false},
		{owner.NetworkMarker("k3", true), "samplecrd.k8s.io network owner: c1/default/example request: k3 taken over", "k3", true},
		{owner.NetworkMarker("", true), "samplecrd.k8s.io network owner: c1/default/example taken over", "", true},
		{owner.NetworkMarker("", false), "samplecrd.k8s.io network owner: c1/default/example", "", false},
	} {
		text := test.want
		if test.got != text {
			t.Errorf("got the marker %q, want %q", test.got, text)
		}
		if got, ok := neutron.ParseMarker(text); !ok || got != owner || !owner.HasMarker(text) || !neutron.IsMarker(text) {
			t.Errorf("ParseMarker(%q) = %v, %v, want %v", text, got, ok, owner)
		}
		if request, over := neutron.RequestOf(text), neutron.IsTakenOver(text); request != test.request || over != test.takenOver {
			t.Errorf("%q has the request %q (taken over: %v), want %+v", text, request, over, test)
		}
		if _, ok := neutron.ParseRetainedMarker(text); ok || owner.HasRetainedMarker(text) {
			t.Errorf("%q is a retained marker", text)
		}
	}
	const retained = "samplecrd.k8s.io retained: c1/default/example"
	got, ok := neutron.ParseRetainedMarker(retained)
	if !ok || got != owner || !owner.HasRetainedMarker(retained) || owner.RetainedMarker() != retained {
		t.Errorf("ParseRetainedMarker() = %v, %v, want %v", got, ok, owner)
	}
}

// TestMarkerLength: Neutron limits a description to 255 characters.
func TestMarkerLength(t *testing.T) {
	longest := strings.Repeat("x", 63)
	owner := neutron.Owner{Cluster: longest, Namespace: longest, Name: longest}
	if got := len(owner.NetworkMarker("12345678", true)); got > 255 {
		t.Errorf("an owner marker can have %d characters", got)
	}
}

func TestNoMarker(t *testing.T) {
	marker := owner.NetworkMarker("a1", false)
	for _, text := range []string{
		"", "mine", owner.RetainedMarker(), owner.Marker() + "/x", "samplecrd.k8s.io owner: c1/default/", "samplecrd.k8s.io owner: c1/default",
		" " + owner.Marker(), owner.Marker() + "\nforged", owner.Marker() + "\x1b[2J", owner.Marker() + " request: a1",
		" " + marker, marker + " more", marker + "\nforged", marker + "\x1b", "samplecrd.k8s.io network owner: c1/default/example more",
		"samplecrd.k8s.io network owner: c1/default/ request: a1",
	} {
		if got, ok := neutron.ParseMarker(text); ok {
			t.Errorf("ParseMarker(%q) = %v", text, got)
		}
	}
	for _, text := range []string{"", "mine", marker + " more", owner.RetainedMarker(), owner.Marker() + "/x"} {
		if owner.HasMarker(text) {
			t.Errorf("%q counts as the marker of %v", text, owner)
		}
	}
	for _, other := range []neutron.Owner{
		{Cluster: "c2", Namespace: "default", Name: "example"}, {Cluster: "c1", Namespace: "another", Name: "example"},
		{Cluster: "c1", Namespace: "default", Name: "example2"}, {Cluster: "c1", Namespace: "default", Name: "exampl"},
	} {
		if owner.HasMarker(other.NetworkMarker("a1", true)) || owner.HasMarker(other.Marker()) || owner.HasRetainedMarker(other.RetainedMarker()) {
			t.Errorf("a marker of %+v counts as one of %+v", other, owner)
		}
	}
}
