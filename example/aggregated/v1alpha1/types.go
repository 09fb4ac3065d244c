package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NeutronNetwork is a network as it is in Neutron. It is computed for each request and
// stored nowhere: it has no spec, because nobody can request anything with it.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NeutronNetwork struct {
	metav1.TypeMeta `json:",inline"`
	// metadata.name is the ID of the network in Neutron. metadata.namespace is that of the
	// Network in its owner marker.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is what Neutron returned in the last list.
	Status NeutronNetworkStatus `json:"status"`
}

// State is what a Neutron network is to the Kubernetes cluster.
type State string

// The states of a Neutron network.
const (
	// StateOwned: its Network exists.
	StateOwned State = "Owned"
	// StateOrphaned: it has an owner marker of this cluster, and its Network does not exist.
	StateOrphaned State = "Orphaned"
	// StateRetained: its Network was deleted, and its deletionPolicy kept it.
	StateRetained State = "Retained"
	// StateForeign: it has no owner marker of this cluster.
	StateForeign State = "Foreign"
)

// NeutronNetworkStatus is the observed state.
type NeutronNetworkStatus struct {
	// name is the name in Neutron, which anybody can change there.
	Name string `json:"name"`
	// cidrs are the ranges of its subnets.
	// +optional
	// +listType=atomic
	CIDRs []string `json:"cidrs,omitempty"`
	// state is Owned, Orphaned, Retained or Foreign.
	State State `json:"state"`
	// owner is the cluster, namespace and name in the owner marker.
	// +optional
	Owner string `json:"owner,omitempty"`
	// network is the name of the Network in this namespace, if it exists.
	// +optional
	Network string `json:"network,omitempty"`
	// drift has what the controller would do to make Neutron match the Network.
	// +optional
	// +listType=atomic
	Drift []string `json:"drift,omitempty"`
	// orphanedSince is when this server noticed that the Network does not exist. It is
	// not stored: it starts again with the server.
	// +optional
	OrphanedSince *metav1.Time `json:"orphanedSince,omitempty"`
}

// NeutronNetworkList is a list of Neutron networks.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NeutronNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NeutronNetwork `json:"items"`
}
