package neutron_test

import (
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestMarkers pins the owner markers, which are stored in clouds.
func TestMarkers(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	for got, want := range map[string]string{
		owner.Marker():                     "samplecrd.k8s.io owner: c1/default/example",
		owner.RetainedMarker():             "samplecrd.k8s.io retained: c1/default/example",
		owner.NetworkMarker("k3x9", false): "samplecrd.k8s.io network owner: c1/default/example request: k3x9",
		owner.NetworkMarker("k3x9", true):  "samplecrd.k8s.io network owner: c1/default/example request: k3x9 taken over",
		owner.NetworkMarker("", true):      "samplecrd.k8s.io network owner: c1/default/example taken over",
		owner.NetworkMarker("", false):     "samplecrd.k8s.io network owner: c1/default/example",
	} {
		if got != want {
			t.Errorf("got the marker %q, want %q", got, want)
		}
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

func TestParseMarker(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	for text, want := range map[string]struct {
		request   string
		takenOver bool
	}{
		owner.Marker():                   {"", false},
		owner.NetworkMarker("", false):   {"", false},
		owner.NetworkMarker("", true):    {"", true},
		owner.NetworkMarker("a1", false): {"a1", false},
		owner.NetworkMarker("a1", true):  {"a1", true},
	} {
		if got, ok := neutron.ParseMarker(text); !ok || got != owner || !owner.HasMarker(text) || !neutron.IsMarker(text) {
			t.Errorf("ParseMarker(%q) = %v, %v, want %v", text, got, ok, owner)
		}
		if request, over := neutron.RequestOf(text), neutron.IsTakenOver(text); request != want.request || over != want.takenOver {
			t.Errorf("%q has the request %q (taken over: %v), want %+v", text, request, over, want)
		}
		if _, ok := neutron.ParseRetainedMarker(text); ok || owner.HasRetainedMarker(text) {
			t.Errorf("%q is a retained marker", text)
		}
	}
	if got, ok := neutron.ParseRetainedMarker(owner.RetainedMarker()); !ok || got != owner || !owner.HasRetainedMarker(owner.RetainedMarker()) {
		t.Errorf("ParseRetainedMarker() = %v, %v, want %v", got, ok, owner)
	}
}

func TestNoMarker(t *testing.T) {
	owner := neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
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
