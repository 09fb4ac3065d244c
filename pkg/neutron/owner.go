package neutron

import (
	"cmp"
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
	networkPrefix  = "samplecrd.k8s.io network owner: "
	markerPrefix   = "samplecrd.k8s.io owner: "
	retainedPrefix = "samplecrd.k8s.io retained: "
	requestInfix   = " request: "
	takenOverText  = " taken over"
)

// Marker returns the owner marker of a subnet: the description of a subnet that belongs
// to the owner. Releases before requests were marked gave it to networks, too.
//
// It is the description, because the request that creates the object contains it: a tag
// would need a second request, and a crash between the two would leave an object without
// owner. (Neutron limits it to 255 characters.)
func (o Owner) Marker() string { return markerPrefix + o.path() }

// NetworkMarker returns the owner marker of a network. It names the request that created
// the network. Of two networks with the marker of one owner, one that names another
// request was created by a process of ours. One that names the same is a copy. TakenOver
// is true if the request did not create the network, but took over one that had been
// retained.
func (o Owner) NetworkMarker(request string, takenOver bool) string {
	marker := networkPrefix + o.path()
	if request != "" {
		marker += requestInfix + request
	}
	if takenOver {
		marker += takenOverText
	}
	return marker
}

// RetainedMarker returns the owner marker of a network whose object was deleted, and
// that waits for the next object of that name.
func (o Owner) RetainedMarker() string { return retainedPrefix + o.path() }

func (o Owner) path() string { return o.Cluster + "/" + o.Namespace + "/" + o.Name }

// HasMarker reports whether a description is the owner marker of a network or subnet.
func (o Owner) HasMarker(description string) bool {
	owner, ok := ParseMarker(description)
	return ok && owner == o
}

// HasRetainedMarker reports whether a description is the marker of a retained network.
func (o Owner) HasRetainedMarker(description string) bool {
	owner, ok := ParseRetainedMarker(description)
	return ok && owner == o
}

// compare orders owners by cluster, namespace and name.
func (o Owner) compare(other Owner) int {
	return cmp.Or(cmp.Compare(o.Cluster, other.Cluster), cmp.Compare(o.Namespace, other.Namespace),
		cmp.Compare(o.Name, other.Name))
}

// String returns namespace/name, as in kubectl.
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

// RequestOf returns the request that the owner marker in the description of a network
// names, or an empty string.
func RequestOf(description string) string {
	_, request, _ := splitMarker(description)
	return strings.TrimSuffix(request, takenOverText)
}

// IsTakenOver reports whether a description is the owner marker of a network that had
// been retained before.
func IsTakenOver(description string) bool {
	return strings.HasPrefix(description, networkPrefix) && strings.HasSuffix(description, takenOverText)
}

// splitMarker returns the parts of an owner marker: the path of the owner, and what
// follows it.
func splitMarker(description string) (path, request string, ok bool) {
	if path, ok := strings.CutPrefix(description, markerPrefix); ok {
		return path, "", true
	}
	rest, ok := strings.CutPrefix(description, networkPrefix)
	path, request, hasRequest := strings.Cut(rest, requestInfix)
	if !hasRequest {
		path = strings.TrimSuffix(path, takenOverText)
	}
	return path, request, ok && !strings.Contains(strings.TrimSuffix(request, takenOverText), " ")
}

// ParseMarker returns the owner in a description, or false if the description is not
// an owner marker. A name that is not printable is none: it must not forge a line of a
// log.
func ParseMarker(description string) (owner Owner, ok bool) {
	path, request, ok := splitMarker(description)
	if !ok || !isPrintable(request) {
		return Owner{}, false
	}
	return parse(path)
}

// ParseRetainedMarker returns the owner in a description, or false if the
// description is not the marker of a retained network.
func ParseRetainedMarker(description string) (owner Owner, ok bool) {
	path, ok := strings.CutPrefix(description, retainedPrefix)
	if !ok {
		return Owner{}, false
	}
	return parse(path)
}

// ownerOf returns the owner, or former owner, in a description. It returns false if
// the description is neither an owner marker nor a retained marker.
func ownerOf(description string) (owner Owner, ok bool) {
	if owner, ok := ParseRetainedMarker(description); ok {
		return owner, true
	}
	return ParseMarker(description)
}

// parse returns the owner with a path.
func parse(path string) (owner Owner, ok bool) {
	cluster, rest, _ := strings.Cut(path, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if !isPrintable(path) || cluster == "" || namespace == "" || name == "" || strings.ContainsAny(name, "/ ") {
		return Owner{}, false
	}
	return Owner{Cluster: cluster, Namespace: namespace, Name: name}, true
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// IsMarker reports whether a description is an owner marker, or one of a retained
// network.
func IsMarker(description string) bool {
	for _, prefix := range [...]string{networkPrefix, markerPrefix, retainedPrefix} {
		if strings.HasPrefix(description, prefix) {
			return true
		}
	}
	return false
}
