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

// MaxNameLength is how long the name of a Network can be.
const MaxNameLength = 63

// The annotations with which a Deployment asks for a Network of its own name.
const (
	// AnnotationCIDR is the range of the Network, such as 192.168.0.0/16.
	AnnotationCIDR = GroupName + "/cidr"
	// AnnotationGateway is its gateway, if another one than the first address, or
	// None.
	AnnotationGateway = GroupName + "/gateway"
	// AnnotationSubnetPool is the name or ID of the subnet pool that hands out the
	// range, in place of AnnotationCIDR.
	AnnotationSubnetPool = GroupName + "/subnet-pool"
	// AnnotationPrefixLength is how much of the subnet pool to take, such as 24.
	AnnotationPrefixLength = GroupName + "/prefix-length"
	// AnnotationNetwork, with the value NetworkNone, asks for no Network, where
	// every Deployment would get one.
	AnnotationNetwork = GroupName + "/network"
	NetworkNone       = "none"
)

// The labels of a Network that was made for a Deployment.
const (
	// LabelDeployment is the name of the Deployment.
	LabelDeployment = GroupName + "/deployment"
	// LabelSource says why it was made: SourceAnnotation or SourceDefault.
	LabelSource      = GroupName + "/source"
	SourceAnnotation = "annotation"
	SourceDefault    = "default"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=nw
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, a teaching API that no Kubernetes release contains"
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.status.cidr`,description="The range of addresses that the subnet has."
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.gateway`,description="The gateway that the subnet has."
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

// Rules say !(a == b) of addresses, because the API server's estimate of what a
// rule costs knows ==, and takes != for something boundless. What they cannot
// say is checked by the controller: which of two addresses is the smaller one.

// NetworkSpec is what a user asks for.
//
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != has(self.subnetPool)",message="give either cidr, for a range of your own, or subnetPool, for one that Neutron hands out"
// +kubebuilder:validation:XValidation:rule="!has(self.cidr) || !isCIDR(self.cidr) || (cidr(self.cidr).prefixLength() >= 1 && cidr(self.cidr).prefixLength() <= (cidr(self.cidr).ip().family() == 4 ? 30 : 126)) || (cidr(self.cidr).prefixLength() > 1 && has(self.enableDHCP) && !self.enableDHCP && has(self.gateway) && self.gateway == 'None')",message="the prefix length of cidr must be from /1 to /30 for IPv4 and from /1 to /126 for IPv6: a smaller range has no room for a gateway and a port, and needs gateway: None and enableDHCP: false",fieldPath=".cidr"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isIP(self.gateway) || !has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(ip(self.gateway))",message="gateway must be an address inside cidr, and of the same IP version (for example, inside 192.168.0.0/16: from 192.168.0.1 to 192.168.255.254)",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isIP(self.gateway) || !has(self.cidr) || !isCIDR(self.cidr) || !(cidr(self.cidr).masked().ip() == ip(self.gateway))",message="gateway must not be the network address, which is the first one of cidr: take the next one, or leave gateway out",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="!has(self.subnetPool) || !has(self.gateway) || self.gateway == 'None'",message="with subnetPool, nobody knows the range beforehand: leave gateway out for its first address, or say None",fieldPath=".gateway"
// +kubebuilder:validation:XValidation:rule="!has(self.subnetPool) || !has(self.allocationPools)",message="with subnetPool, nobody knows the range beforehand: leave allocationPools out",fieldPath=".allocationPools"
// +kubebuilder:validation:XValidation:rule="!has(self.allocationPools) || !has(self.cidr) || !isCIDR(self.cidr) || self.allocationPools.all(p, !isIP(p.start) || !isIP(p.end) || cidr(self.cidr).containsIP(ip(p.start)) && cidr(self.cidr).containsIP(ip(p.end)))",message="allocationPools must lie inside cidr, from the first address of start to the last one of end",fieldPath=".allocationPools"
// +kubebuilder:validation:XValidation:rule="!has(self.dnsNameservers) || !has(self.cidr) || !isCIDR(self.cidr) || self.dnsNameservers.all(a, !isIP(a) || ip(a).family() == cidr(self.cidr).ip().family())",message="dnsNameservers must be of the IP version of cidr",fieldPath=".dnsNameservers"
// +kubebuilder:validation:XValidation:rule="!has(self.hostRoutes) || !has(self.cidr) || !isCIDR(self.cidr) || self.hostRoutes.all(r, (!isIP(r.nextHop) || ip(r.nextHop).family() == cidr(self.cidr).ip().family()) && (!isCIDR(r.destination) || cidr(r.destination).ip().family() == cidr(self.cidr).ip().family()))",message="hostRoutes must be of the IP version of cidr",fieldPath=".hostRoutes"
// +kubebuilder:validation:XValidation:rule="!has(self.ipv6) || !has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 6",message="ipv6 is for an IPv6 cidr only",fieldPath=".ipv6"
// +kubebuilder:validation:XValidation:rule="!has(self.ipv6) || !has(self.enableDHCP) || self.enableDHCP",message="ipv6 modes need DHCP: leave enableDHCP out, or ipv6",fieldPath=".ipv6"
// +kubebuilder:validation:XValidation:rule="!has(self.mtu) || self.mtu >= 1280 || !has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 4",message="mtu must be at least 1280 for IPv6 (RFC 8200)",fieldPath=".mtu"
// +kubebuilder:validation:XValidation:rule="has(self.networkID) == has(oldSelf.networkID) && (!has(self.networkID) || self.networkID == oldSelf.networkID)",message="networkID cannot be set, changed or removed later: create another Network",fieldPath=".networkID"
// +kubebuilder:validation:XValidation:rule="!has(self.networkID) || !(has(self.mtu) || has(self.adminStateUp) || has(self.portSecurityEnabled) || has(self.dnsDomain) || has(self.tags))",message="a network that is adopted stays as it is: leave mtu, adminStateUp, portSecurityEnabled, dnsDomain and tags out, or networkID",fieldPath=".networkID"
type NetworkSpec struct {
	// cidr is the range of addresses of the subnet, IPv4 (/1 to /30) or IPv6 (/1
	// to /126), such as 192.168.0.0/16 or fd00:1234::/64. Host bits are dropped, as Neutron does:
	// 192.168.1.0/16 is the same range as 192.168.0.0/16. A change of the range
	// replaces the subnet, which Neutron allows only while no port uses it.
	// A range of one or two addresses needs gateway: None and enableDHCP: false.
	// +optional
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cidr must be an IPv4 or IPv6 range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || !(cidr('224.0.0.0/4').containsCIDR(cidr(self)) || cidr('ff00::/8').containsCIDR(cidr(self)) || cidr('127.0.0.0/8').containsCIDR(cidr(self)) || cidr(self).masked().ip().isUnspecified())",message="cidr must not be a multicast or loopback range, nor begin with 0.0.0.0 or ::, since hosts cannot have such addresses"
	CIDR string `json:"cidr,omitempty"`

	// subnetPool has Neutron hand out the range, in place of cidr. status.cidr says
	// which one it is. A change to another pool, to another prefix length, or
	// between cidr and subnetPool replaces the subnet, as a change of cidr does.
	// +optional
	SubnetPool *SubnetPoolReference `json:"subnetPool,omitempty"`

	// gateway is the address of the subnet's gateway, such as 192.168.0.1, or None
	// for a subnet without one. It
	// lies inside cidr, and is not its first address, nor, for IPv4, its last one.
	// Where it is left out, it is the address after the first one. It can be
	// changed at any time.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self == 'None' || isIP(self)",message="gateway must be an IPv4 or IPv6 address, such as 192.168.0.1 or fd00:1234::1, or None"
	// +kubebuilder:validation:XValidation:rule="!isIP(self) || !(ip(self).isLoopback() || cidr('224.0.0.0/4').containsIP(ip(self)) || cidr('ff00::/8').containsIP(ip(self)))",message="gateway must not be a multicast or loopback address"
	Gateway string `json:"gateway,omitempty"`

	// allocationPools are the ranges out of which ports get their addresses. They
	// lie inside cidr, apart from each other, and do not have the gateway. Where
	// they are left out, they are all addresses of cidr that a host can have but
	// the gateway. They can be changed at any time; ports keep their addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	AllocationPools []AllocationPool `json:"allocationPools,omitempty"`

	// enableDHCP reports whether ports get their addresses by DHCP. Where it is left
	// out, they do. It can be changed at any time.
	// +optional
	EnableDHCP *bool `json:"enableDHCP,omitempty"`

	// dnsNameservers are the name servers that hosts are told of by DHCP, in their
	// order. Where they are left out, there are none. They can be changed at any time. Clouds
	// limit how many there can be, usually to 5.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a))",message="dnsNameservers must be IPv4 or IPv6 addresses, such as 192.168.0.53"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a == b))",message="dnsNameservers must not say an address twice"
	DNSNameservers []string `json:"dnsNameservers,omitempty"`

	// hostRoutes are the routes that hosts are told of by DHCP, in no order. Where
	// they are left out, there are none. They can be changed at any time. Clouds
	// limit how many there can be, usually to 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	HostRoutes []HostRoute `json:"hostRoutes,omitempty"`

	// ipv6 says how hosts get their addresses in an IPv6 subnet. Where it is left
	// out, Neutron leaves that to whoever runs the router. A change replaces
	// the subnet, as a change of cidr does.
	// +optional
	IPv6 *IPv6Options `json:"ipv6,omitempty"`

	// mtu is the largest packet that the network carries, in bytes. Where it is left
	// out, it is the largest one that the cloud allows for the network;
	// status.mtu says which. It can be changed at any time; hosts learn of it when they
	// renew their lease. Needs Neutron's extension net-mtu-writable.
	// +optional
	// +kubebuilder:validation:Minimum=68
	// +kubebuilder:validation:Maximum=65535
	MTU *int32 `json:"mtu,omitempty"`

	// adminStateUp reports whether the network forwards packets. Where it is left
	// out, it does. It can be changed at any time.
	// +optional
	AdminStateUp *bool `json:"adminStateUp,omitempty"`

	// portSecurityEnabled reports whether ports have security groups and protection
	// against forged addresses, unless they say otherwise themselves. Where it is left out, they
	// have. It can be changed at any time, and is then the default of new ports.
	// Needs Neutron's extension port-security.
	// +optional
	PortSecurityEnabled *bool `json:"portSecurityEnabled,omitempty"`

	// dnsDomain is the domain in which the cloud's DNS service names ports, such as
	// example.org; the dot at its end may be left out. Where it is left out,
	// there is none. It can be changed at any time. Needs Neutron's extension
	// dns-integration.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?[.])*[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?[.]?$')",message="dnsDomain must be a domain name, such as lab.example.org: letters, digits and - between dots, the last part beginning with a letter"
	DNSDomain string `json:"dnsDomain,omitempty"`

	// tags are put on the network, beside those that others put there. They can be
	// changed at any time. Needs Neutron's extension standard-attr-tag.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=60
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.matches('^[A-Za-z0-9_]([A-Za-z0-9 ._:=+@-]*[A-Za-z0-9._:=+@-])?$'))",message="tags must have nothing but letters, digits, spaces and . _ : = + @ -, and begin with a letter, a digit or _, such as team=network"
	// +kubebuilder:validation:XValidation:rule="!self.exists(t, t.endsWith('.json') || t.endsWith('.xml'))",message="tags must not end with .json or .xml, which Neutron takes for something else"
	Tags []string `json:"tags,omitempty"`

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

// GatewayNone is the gateway of a subnet that has none.
const GatewayNone = "None"

// SubnetPoolReference names a subnet pool in Neutron, and how much of it to
// take.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.id)",message="give either the name or the id of the subnet pool"
type SubnetPoolReference struct {
	// name is the name of the subnet pool. It has to be the only one of that name
	// that the project of the controller can see.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`

	// id is the ID of the subnet pool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	ID string `json:"id,omitempty"`

	// prefixLength is that of the range: 24 for 256 addresses of IPv4. Where it is
	// left out, it is the default of the subnet pool; a subnet that is there keeps its own.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=126
	PrefixLength int32 `json:"prefixLength,omitempty"`
}

// AllocationPool is a range of addresses, both ends included.
//
// +kubebuilder:validation:XValidation:rule="isIP(self.start) && isIP(self.end)",message="start and end must be IPv4 or IPv6 addresses, such as 192.168.0.10"
type AllocationPool struct {
	// start is the first address.
	// +required
	// +kubebuilder:validation:MaxLength=45
	Start string `json:"start"`

	// end is the last address.
	// +required
	// +kubebuilder:validation:MaxLength=45
	End string `json:"end"`
}

// HostRoute is a route that hosts are told of.
//
// +kubebuilder:validation:XValidation:rule="isCIDR(self.destination) && cidr(self.destination) == cidr(self.destination).masked()",message="destination must be a range in CIDR notation without host bits, such as 10.20.0.0/16"
// +kubebuilder:validation:XValidation:rule="isIP(self.nextHop)",message="nextHop must be an IPv4 or IPv6 address, such as 192.168.0.2"
type HostRoute struct {
	// destination is the range that the route leads to, such as 10.20.0.0/16.
	// +required
	// +kubebuilder:validation:MaxLength=49
	Destination string `json:"destination"`

	// nextHop is the address to which packets are sent on.
	// +required
	// +kubebuilder:validation:MaxLength=45
	NextHop string `json:"nextHop"`
}

// IPv6Options say how hosts get their IPv6 addresses.
//
// +kubebuilder:validation:XValidation:rule="has(self.addressMode) || has(self.raMode)",message="give addressMode, raMode or both, or leave ipv6 out"
// +kubebuilder:validation:XValidation:rule="!has(self.addressMode) || !has(self.raMode) || self.addressMode == self.raMode",message="addressMode and raMode must be the same where both are given, as Neutron wants it"
type IPv6Options struct {
	// addressMode is how Neutron gives addresses to ports.
	// +optional
	AddressMode IPv6Mode `json:"addressMode,omitempty"`

	// raMode is what Neutron's router announces. Where it is left out, another
	// router does.
	// +optional
	RAMode IPv6Mode `json:"raMode,omitempty"`
}

// IPv6Mode is one of Neutron's modes, as Neutron writes them.
//
// +kubebuilder:validation:Enum=slaac;dhcpv6-stateful;dhcpv6-stateless
type IPv6Mode string

// The IPv6 modes.
const (
	// IPv6ModeSLAAC: hosts make their addresses of what the router announces.
	IPv6ModeSLAAC IPv6Mode = "slaac"
	// IPv6ModeDHCPv6Stateful: DHCPv6 gives addresses and all else.
	IPv6ModeDHCPv6Stateful IPv6Mode = "dhcpv6-stateful"
	// IPv6ModeDHCPv6Stateless: as slaac, and DHCPv6 gives all else.
	IPv6ModeDHCPv6Stateless IPv6Mode = "dhcpv6-stateless"
)

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

	// cidr is the range that the subnet has, without host bits.
	// +optional
	// +kubebuilder:validation:MaxLength=49
	CIDR string `json:"cidr,omitempty"`

	// gateway is the gateway that the subnet has, or None.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	Gateway string `json:"gateway,omitempty"`

	// subnetPool is the subnet pool that the range is from.
	// +optional
	SubnetPool *SubnetPoolStatus `json:"subnetPool,omitempty"`

	// mtu is the MTU that the network has, in bytes; left out where the cloud does
	// not tell.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MTU int32 `json:"mtu,omitempty"`

	// defaultMTU is the MTU that Neutron gave the network by itself; left out as
	// long as it was never asked to.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DefaultMTU int32 `json:"defaultMTU,omitempty"`

	// tags are those that the controller puts on the network. A tag is noted here
	// before it is set there, so that none is forgotten there later.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=60
	Tags []string `json:"tags,omitempty"`

	// conditions tell how the Network is. Ready is True when Neutron has
	// exactly what spec asks for; otherwise its reason and message say what
	// stands in the way.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SubnetPoolStatus is the subnet pool that a range is from.
type SubnetPoolStatus struct {
	// id is the ID of the subnet pool.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// name is the name that the spec gave for it, if it did.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NetworkList is a list of Networks.
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Network `json:"items"`
}
