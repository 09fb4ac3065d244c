package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition that every Network has, and the finalizer that keeps a Network
// until what was made for it in Neutron has gone.
const (
	// ConditionReady is True when Neutron has exactly what spec asks for.
	ConditionReady = "Ready"
	// Finalizer is set before anything is made in Neutron, and taken away when
	// Neutron has confirmed that nothing is left.
	Finalizer = "samplecrd.k8s.io/neutron"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=nw
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, a teaching API that no Kubernetes release contains"
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidr`,description="The addresses asked for."
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.spec.gateway`,description="The gateway asked for; empty for the first address of a host."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether Neutron has what the spec asks for."
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the Network is or is not ready.",priority=1
// +kubebuilder:printcolumn:name="Network ID",type=string,JSONPath=`.status.networkID`,description="The ID of the network in Neutron.",priority=1
// +kubebuilder:printcolumn:name="Subnet ID",type=string,JSONPath=`.status.subnetID`,description="The ID of the subnet in Neutron.",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters: it becomes a part of the network's name and description in Neutron, which are limited to 255"

// Network is a network with one subnet in OpenStack Neutron. The controller
// makes both, keeps them as the spec says, and takes them away when the
// Network is deleted.
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the network should be.
	// +required
	Spec NetworkSpec `json:"spec"`

	// status is what the network was when the controller last looked. It is
	// written by the controller alone.
	// +optional
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "No controller has looked at this Network yet.", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status NetworkStatus `json:"status,omitempty,omitzero"`
}

// The second rule below says !(a == b), because the API server's estimate of what
// a rule costs knows == of addresses, and takes != for something boundless.

// NetworkSpec is what a user asks for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isIP(self.gateway) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(ip(self.gateway))",message="gateway must be an address inside cidr, and of the same IP version (for example, inside 192.168.0.0/16: from 192.168.0.1 to 192.168.255.254)",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isIP(self.gateway) || !isCIDR(self.cidr) || !(cidr(self.cidr).masked().ip() == ip(self.gateway))",message="gateway must not be the network address, which is the first one of cidr: take the next one, or leave gateway out",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="has(self.networkID) == has(oldSelf.networkID) && (!has(self.networkID) || self.networkID == oldSelf.networkID)",message="networkID cannot be set, changed or removed later: create another Network",fieldPath=".networkID"
type NetworkSpec struct {
	// cidr is the range of addresses of the subnet, IPv4 (/1 to /30) or IPv6 (/1
	// to /126), such as 192.168.0.0/16 or fd00:1234::/64. Host bits are dropped, as Neutron does:
	// 192.168.1.0/16 is the same range as 192.168.0.0/16. A change of the range
	// replaces the subnet, which Neutron allows only while no port uses it.
	// +required
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr must be an IPv4 or IPv6 range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 1 && cidr(self).prefixLength() <= (cidr(self).ip().family() == 4 ? 30 : 126))",message="the prefix length of cidr must be from /1 to /30 for IPv4 and from /1 to /126 for IPv6: a smaller range has no room for a gateway and a port"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || !(cidr('224.0.0.0/4').containsCIDR(cidr(self)) || cidr('ff00::/8').containsCIDR(cidr(self)) || cidr('127.0.0.0/8').containsCIDR(cidr(self)) || cidr(self).masked().ip().isUnspecified())",message="cidr must not be a multicast or loopback range, nor begin with 0.0.0.0 or ::, since hosts cannot have such addresses"
	CIDR string `json:"cidr"`

	// gateway is the address of the subnet's gateway, such as 192.168.0.1. It
	// lies inside cidr, and is not its first address, nor, for IPv4, its last one.
	// Where it is left out, it is the address after the first one. It can be
	// changed at any time.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="gateway must be an IPv4 or IPv6 address, such as 192.168.0.1 or fd00:1234::1"
	// +kubebuilder:validation:XValidation:rule="!isIP(self) || !(ip(self).isLoopback() || cidr('224.0.0.0/4').containsIP(ip(self)) || cidr('ff00::/8').containsIP(ip(self)))",message="gateway must not be a multicast or loopback address"
	Gateway string `json:"gateway,omitempty"`

	// networkID is the ID of a network that is in Neutron already, to be adopted
	// in place of making one. Whoever runs the controller has to allow that
	// (-allow-adoption). The subnet of cidr is made on it, or taken over where it
	// is there. A network that was adopted is deleted only if deletionPolicy says
	// Delete in so many words. It cannot be set, changed or removed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	NetworkID string `json:"networkID,omitempty"`

	// deletionPolicy says what becomes of the network in Neutron when this object
	// is deleted. Delete takes it away, with its subnet. Retain leaves both, and
	// a Network of the same name in the same namespace takes them up again.
	// Where it is left out, a network that the controller made is deleted; one
	// that it adopted stays, and the subnet that was made on it goes.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy says what becomes of a network in Neutron when its object goes.
//
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionPolicyDelete: the network is deleted, with its subnet.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain: the network stays.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// NetworkStatus is what the controller found and did.
type NetworkStatus struct {
	// observedGeneration is the metadata.generation of the spec that this
	// status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// networkID is the ID of the network in Neutron.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NetworkID string `json:"networkID,omitempty"`

	// subnetID is the ID of the subnet in Neutron.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SubnetID string `json:"subnetID,omitempty"`

	// conditions tell how the Network is. Ready is True when Neutron has
	// exactly what spec asks for; otherwise its reason and message say what
	// stands in the way.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NetworkList is a list of Networks.
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Network `json:"items"`
}
