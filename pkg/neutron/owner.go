package neutron

import "strings"

// Owner is the Kubernetes object that a network and a subnet in Neutron
// belong to.
type Owner struct {
	// Cluster tells clusters that share an OpenStack project apart.
	Cluster         string
	Namespace, Name string
}

// These begin every mark. They are part of what is stored in clouds: a release
// that changes them no longer finds what the ones before it made.
const (
	markPrefix         = "samplecrd.k8s.io owner: "
	retainedMarkPrefix = "samplecrd.k8s.io retained: "
)

// Mark returns the text that says whose a network or subnet is. It goes into
// the description, because that is written by the very request that creates
// the object: a tag would need a second one, and a crash between the two would
// leave a network that nobody owns. (Neutron's limit for it is 255 characters.)
func (o Owner) Marker() string { return markPrefix + o.path() }

// RetainedMarker returns the text that says whose a network was, whose object has
// gone and has left it in Neutron for the next one of its name.
func (o Owner) RetainedMarker() string { return retainedMarkPrefix + o.path() }

// String returns the owner as kubectl would name it: namespace/name.
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

func (o Owner) path() string { return o.Cluster + "/" + o.Namespace + "/" + o.Name }

// ParseMarker returns the owner that a description names as the present one; ok
// is false where the description is no mark.
func ParseMarker(description string) (owner Owner, ok bool) {
	path, ok := strings.CutPrefix(description, markPrefix)
	parts := strings.Split(path, "/")
	if !ok || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Owner{}, false
	}
	return Owner{Cluster: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// IsMarker reports whether a description is a mark, of whatever owner, past owners
// included.
func IsMarker(description string) bool {
	return strings.HasPrefix(description, markPrefix) || strings.HasPrefix(description, retainedMarkPrefix)
}
