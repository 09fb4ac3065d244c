package neutron

// Owner is the Kubernetes object that a network and a subnet in Neutron
// belong to.
type Owner struct {
	// Cluster tells clusters that share an OpenStack project apart.
	Cluster         string
	Namespace, Name string
}

// markPrefix begins every mark. It is part of what is stored in clouds: a
// release that changes it no longer finds what the ones before it made.
const markPrefix = "samplecrd.k8s.io owner: "

// Mark returns the text that says whose a network or subnet is. It goes into
// the description, because that is written by the very request that creates
// the object: a tag would need a second one, and a crash between the two would
// leave a network that nobody owns. (Neutron's limit for it is 255 characters.)
func (o Owner) Mark() string {
	return markPrefix + o.Cluster + "/" + o.Namespace + "/" + o.Name
}

// String returns the owner as kubectl would name it: namespace/name.
func (o Owner) String() string { return o.Namespace + "/" + o.Name }
