package neutron

import (
	"strings"
	"unicode"
)

// Owner is the Kubernetes object that a network and a subnet in Neutron belong to.
type Owner struct {
	// Cluster distinguishes Kubernetes clusters that share an OpenStack project.
	Cluster         string
	Namespace, Name string
}

// The prefixes of owner markers are stored in clouds. A release with other prefixes
// would not find what earlier releases created.
const (
	markerPrefix         = "samplecrd.k8s.io owner: "
	retainedMarkerPrefix = "samplecrd.k8s.io retained: "
)

// Marker returns the owner marker: the description of a network or subnet that
// belongs to the owner. It is the description, because the request that creates the
// object contains it: a tag would need a second request, and a crash between the two
// would leave a network without owner. (Neutron limits it to 255 characters.)
func (o Owner) Marker() string {
	return markerPrefix + o.Cluster + "/" + o.Namespace + "/" + o.Name
}

// RetainedMarker returns the owner marker of a network whose object was deleted, and
// that waits for the next object of that name.
func (o Owner) RetainedMarker() string {
	return retainedMarkerPrefix + o.Cluster + "/" + o.Namespace + "/" + o.Name
}

// HasMarker reports whether a description is the owner marker.
func (o Owner) HasMarker(description string) bool { return o.isIn(description, markerPrefix) }

// HasRetainedMarker reports whether a description is the marker of a retained network.
func (o Owner) HasRetainedMarker(description string) bool {
	return o.isIn(description, retainedMarkerPrefix)
}

// isIn reports whether a description is a prefix with the path of the owner. It makes
// no copy: a drift check of one Network needs it several times.
func (o Owner) isIn(description, prefix string) bool {
	for _, part := range [...]string{prefix, o.Cluster, "/", o.Namespace, "/"} {
		rest, found := strings.CutPrefix(description, part)
		if !found {
			return false
		}
		description = rest
	}
	return description == o.Name
}

// String returns namespace/name, as in kubectl.
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

// ParseMarker returns the owner in a description, or false if the description is not
// an owner marker. A name that is not printable is none: it must not forge a line of a
// log.
func ParseMarker(description string) (owner Owner, ok bool) {
	return parse(description, markerPrefix)
}

// ParseRetainedMarker returns the owner in a description, or false if the
// description is not the marker of a retained network.
func ParseRetainedMarker(description string) (owner Owner, ok bool) {
	return parse(description, retainedMarkerPrefix)
}

// ownerOf returns the owner, or former owner, in a description. It returns false if
// the description is neither an owner marker nor a retained marker.
func ownerOf(description string) (owner Owner, ok bool) {
	if owner, ok := ParseRetainedMarker(description); ok {
		return owner, true
	}
	return ParseMarker(description)
}

func parse(description, prefix string) (owner Owner, ok bool) {
	path, ok := strings.CutPrefix(description, prefix)
	if isRaw := func(r rune) bool { return !unicode.IsPrint(r) }; !ok || strings.ContainsFunc(path, isRaw) {
		return Owner{}, false
	}
	cluster, rest, _ := strings.Cut(path, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if cluster == "" || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Owner{}, false
	}
	return Owner{Cluster: cluster, Namespace: namespace, Name: name}, true
}

// IsMarker reports whether a description is an owner marker, or one of a retained
// network.
func IsMarker(description string) bool {
	return strings.HasPrefix(description, markerPrefix) || strings.HasPrefix(description, retainedMarkerPrefix)
}
