package v1

// The rules in CEL, and the default of status, are in schema.yaml.

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types and the finalizer of a Network.
const (
	// ConditionReady is True if the network and subnet in Neutron match the spec.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the controller is making Neutron match the
	// spec. Otherwise it is absent. kstatus defines it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True if the controller cannot continue until somebody
	// changes something. Otherwise it is absent. kstatus defines it.
	ConditionStalled = "Stalled"
	// Finalizer is added before anything is created in Neutron. It is removed
	// when Neutron has confirmed that everything is deleted.
	Finalizer = "samplecrd.k8s.io/neutron"
)

// AnnotationCloud identifies the cloud in which a Network has its network: the
// region and the project, such as RegionOne/4f1c…. The controller sets it together
// with the finalizer, before it creates the network. Then status.cloud has priority.
// A controller that is connected to another cloud does not change the Network.
const AnnotationCloud = GroupName + "/cloud"

// AnnotationRetry with another value than before makes the controller retry at once what
// Neutron has rejected, instead of minutes later: somebody has raised a quota, say. The
// value has no meaning; a time is usual.
const AnnotationRetry = GroupName + "/retry"

// AnnotationPaused with any value but false makes the controller change nothing for the
// Network, neither in Neutron nor at its finalizer, until the annotation is removed. The
// condition Reconciling says so, and Ready stays as it is.
const AnnotationPaused = GroupName + "/paused"

// AnnotationAllowDeletion with the value true permits the deletion of the
// CustomResourceDefinition, which deletes every Network and its network in Neutron.
const AnnotationAllowDeletion = GroupName + "/allow-deletion"

// DefinitionName is the name of the CustomResourceDefinition of Networks.
const DefinitionName = "networks." + GroupName

// MaxNameLength is the maximum length of a Network's name.
const MaxNameLength = 63

// The annotations with which a Deployment requests a Network of the same name.
const (
	// AnnotationCIDR is the CIDR of the Network, such as 192.168.0.0/16.
	AnnotationCIDR = GroupName + "/cidr"
	// AnnotationGateway is the gateway of the Network, or None. It defaults to the
	// first host address.
	AnnotationGateway = GroupName + "/gateway"
	// AnnotationSubnetPool is the name or ID of the subnet pool that allocates the
	// CIDR. It replaces AnnotationCIDR.
	AnnotationSubnetPool = GroupName + "/subnet-pool"
	// AnnotationPrefixLength is the prefix length to allocate from the subnet pool,
	// such as 24.
	AnnotationPrefixLength = GroupName + "/prefix-length"
	// AnnotationNetwork with the value NetworkNone opts a Deployment out if every
	// Deployment gets a Network by default.
	AnnotationNetwork = GroupName + "/network"
	NetworkNone       = "none"
)

// The labels of a Network that was created for a Deployment.
const (
	// LabelManagedBy is the program that created the Network.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelDeployment is the name of the Deployment.
	LabelDeployment = GroupName + "/deployment"
	// LabelSource is the reason for the Network: SourceAnnotation if the Deployment
	// requested it, SourceDefault if every Deployment gets one.
	LabelSource      = GroupName + "/source"
	SourceAnnotation = "annotation"
	SourceDefault    = "default"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=nw,categories=all;openstack
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, a teaching API that no Kubernetes release contains"
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Prune=false,Delete=false"
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/prune=disabled"
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.status.cidr`,description="The CIDR of the subnet in Neutron."
// +kubebuilder:printcolumn:name="Gateway",type=string,JSONPath=`.status.gateway`,description="The gateway of the subnet in Neutron."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether Neutron matches the spec."
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of Ready."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="The message of Ready.",priority=1
// +kubebuilder:printcolumn:name="Network ID",type=string,JSONPath=`.status.networkID`,description="The ID of the network in Neutron.",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Network is a network with one subnet in OpenStack Neutron. The controller
// creates both, reconciles them with the spec, and deletes them when the Network
// is deleted.
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state of the network and its subnet.
	// +required
	Spec NetworkSpec `json:"spec"`

	// status is the most recently observed state of the network and its subnet.
	// Only the controller writes it. Until then, the condition Ready is Unknown with
	// the reason Pending.
	// +optional
	Status NetworkStatus `json:"status,omitempty,omitzero"`
}

// NetworkSpec is the desired state of a network and its subnet.
type NetworkSpec struct {
	// cidr is the IPv4 or IPv6 range of the subnet in CIDR notation, such as
	// 192.168.0.0/16 or fd00:1234::/64 (attribute cidr of a Neutron subnet). Host bits
	// are ignored, as in Neutron: 192.168.1.0/16 and 192.168.0.0/16 are the same
	// range. The prefix length is /1 to /30 for IPv4 and /1 to /126 for IPv6. A range
	// of one or two addresses requires gateway: None and enableDHCP: false. Exactly
	// one of cidr and subnetPool must be set. Changing the range replaces the subnet,
	// which Neutron permits only while no port uses it.
	// +optional
	// +kubebuilder:validation:MaxLength=49
	CIDR string `json:"cidr,omitempty"`

	// subnetPool is the Neutron subnet pool that allocates the range of the subnet
	// (attribute subnetpool_id). The allocated range is in status.cidr. Exactly one of
	// cidr and subnetPool must be set. Changing the pool or the prefix length, or
	// changing between cidr and subnetPool, replaces the subnet, which Neutron permits
	// only while no port uses it.
	// +optional
	SubnetPool *SubnetPoolReference `json:"subnetPool,omitempty"`

	// gateway is the gateway address of the subnet, such as 192.168.0.1, or None for a
	// subnet without a gateway (attribute gateway_ip). The address must be inside
	// cidr. It must not be the first address of cidr, nor the last address of an IPv4
	// cidr. Defaults to the second address of the range. With subnetPool, only None is
	// permitted. May be changed at any time.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	Gateway string `json:"gateway,omitempty"`

	// allocationPools are the address ranges from which ports get their addresses
	// (attribute allocation_pools). The pools must be inside cidr, must not overlap,
	// and must not contain the gateway. Defaults to all host addresses of cidr except
	// the gateway. Not permitted with subnetPool. May be changed at any time; existing
	// ports keep their addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	AllocationPools []AllocationPool `json:"allocationPools,omitempty"`

	// enableDHCP specifies whether Neutron assigns addresses to ports by DHCP
	// (attribute enable_dhcp). Defaults to true. May be changed at any time.
	// +optional
	EnableDHCP *bool `json:"enableDHCP,omitempty"`

	// dnsNameservers are the addresses of the DNS servers that DHCP announces to
	// hosts, in order of preference (attribute dns_nameservers). Defaults to none. May
	// be changed at any time. Neutron limits the number of DNS servers, by default to
	// 5.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	DNSNameservers []string `json:"dnsNameservers,omitempty"`

	// hostRoutes are the routes that DHCP announces to hosts (attribute host_routes).
	// Their order has no effect. Defaults to none. May be changed at any time. Neutron
	// limits the number of routes, by default to 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	HostRoutes []HostRoute `json:"hostRoutes,omitempty"`

	// ipv6 specifies how hosts in an IPv6 subnet get their addresses (attributes
	// ipv6_address_mode and ipv6_ra_mode). Defaults to no modes: a router outside of
	// Neutron configures the hosts. Requires an IPv6 range and DHCP. Changing a mode
	// replaces the subnet, which Neutron permits only while no port uses it.
	// +optional
	IPv6 *IPv6Options `json:"ipv6,omitempty"`

	// mtu is the maximum transmission unit of the network, in bytes (attribute mtu).
	// Defaults to the largest value that the cloud permits for the network, which is
	// in status.mtu. An IPv6 subnet requires at least 1280. May be changed at any
	// time; hosts apply the new value when they renew their DHCP lease. Requires the
	// Neutron extension net-mtu-writable.
	// +optional
	// +kubebuilder:validation:Minimum=68
	// +kubebuilder:validation:Maximum=65535
	MTU *int32 `json:"mtu,omitempty"`

	// adminStateUp specifies whether the network forwards packets (attribute
	// admin_state_up). Defaults to true. May be changed at any time.
	// +optional
	AdminStateUp *bool `json:"adminStateUp,omitempty"`

	// portSecurityEnabled specifies whether new ports of the network have security
	// groups and protection against address spoofing (attribute
	// port_security_enabled). A port can override it. Defaults to true. May be changed
	// at any time; existing ports keep their setting. Requires the Neutron extension
	// port-security.
	// +optional
	PortSecurityEnabled *bool `json:"portSecurityEnabled,omitempty"`

	// dnsDomain is the domain in which the cloud's DNS service names ports, such as
	// example.org (attribute dns_domain). The trailing dot is optional. Defaults to
	// none. May be changed at any time. Requires the Neutron extension
	// dns-integration.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DNSDomain string `json:"dnsDomain,omitempty"`

	// tags are the tags that the controller adds to the network (attribute tags). Tags
	// of other origin are not removed. Defaults to none. May be changed at any time.
	// Requires the Neutron extension standard-attr-tag.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=60
	Tags []string `json:"tags,omitempty"`

	// networkID is the ID of an existing Neutron network to adopt. The controller then
	// creates no network. It creates the subnet on the adopted network, or adopts the
	// subnet if one with the range of cidr exists. The controller changes only those
	// settings of an adopted subnet that spec contains. Adoption requires the
	// controller flag -allow-adoption. The adopted network is deleted only if
	// deletionPolicy is Delete. Immutable: networkID cannot be set, changed or removed
	// after creation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	NetworkID string `json:"networkID,omitempty"`

	// deletionPolicy specifies what happens in Neutron when the Network is deleted.
	// Delete deletes the network and its subnet. Retain keeps both; a new Network with
	// the same namespace and name takes them over. Defaults to Delete for a network
	// that the controller created. An adopted network is kept by default, and the
	// subnet that the controller created on it is deleted. May be changed at any time.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// router is an existing Neutron router of the controller's project to which the
	// subnet is attached, so that the network reaches other networks. The subnet must
	// have a gateway, which becomes the address of the router in the subnet. Defaults
	// to none: the network is isolated. May be changed at any time. The controller
	// detaches the subnet before it deletes it. Requires the Neutron extension router.
	// +optional
	Router *RouterReference `json:"router,omitempty"`

	// driftPolicy specifies what happens when somebody changes the network or subnet
	// directly in Neutron. Correct reverts the change. Report leaves it, and reports
	// it in the condition Ready with the reason Drifted, until driftPolicy is set to
	// Correct or the spec changes. Defaults to the controller flag -drift.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`
}

// RouterReference is a reference to a Neutron router.
type RouterReference struct {
	// name is the name of the router. It must be unique among the routers of the
	// controller's OpenStack project. Exactly one of name and id must be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`

	// id is the ID of the router. Exactly one of name and id must be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	ID string `json:"id,omitempty"`
}

// DriftPolicy specifies what happens after a change that was made directly in
// Neutron.
//
// +kubebuilder:validation:Enum=Correct;Report
type DriftPolicy string

// The drift policies.
const (
	// DriftPolicyCorrect reverts the change.
	DriftPolicyCorrect DriftPolicy = "Correct"
	// DriftPolicyReport leaves the change and reports it.
	DriftPolicyReport DriftPolicy = "Report"
)

// GatewayNone is the value of gateway for a subnet without a gateway.
const GatewayNone = "None"

// SubnetPoolReference is a reference to a Neutron subnet pool, and the prefix
// length to allocate from it.
type SubnetPoolReference struct {
	// name is the name of the subnet pool. It must be unique among the subnet pools
	// that the controller's OpenStack project can see. Exactly one of name and id must
	// be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`

	// id is the ID of the subnet pool. Exactly one of name and id must be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	ID string `json:"id,omitempty"`

	// prefixLength is the prefix length of the range to allocate, such as 24 for 256
	// IPv4 addresses (attribute prefixlen). At most 30 for IPv4. Defaults to the
	// default prefix length of the subnet pool. Removing prefixLength does not change
	// an existing subnet.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=126
	PrefixLength int32 `json:"prefixLength,omitempty"`
}

// AllocationPool is a range of addresses, including both ends.
type AllocationPool struct {
	// start is the first address of the pool.
	// +required
	// +kubebuilder:validation:MaxLength=45
	Start string `json:"start"`

	// end is the last address of the pool.
	// +required
	// +kubebuilder:validation:MaxLength=45
	End string `json:"end"`
}

// HostRoute is a route that DHCP announces to hosts.
type HostRoute struct {
	// destination is the destination range of the route in CIDR notation without host
	// bits, such as 10.20.0.0/16.
	// +required
	// +kubebuilder:validation:MaxLength=49
	Destination string `json:"destination"`

	// nextHop is the address of the next hop, such as 192.168.0.2.
	// +required
	// +kubebuilder:validation:MaxLength=45
	NextHop string `json:"nextHop"`
}

// IPv6Options specify how hosts get their IPv6 addresses.
type IPv6Options struct {
	// addressMode is the mode in which Neutron assigns addresses to ports (attribute
	// ipv6_address_mode). Defaults to none. If addressMode and raMode are both set,
	// they must be equal.
	// +optional
	AddressMode IPv6Mode `json:"addressMode,omitempty"`

	// raMode is the mode that Neutron's router announces in router advertisements
	// (attribute ipv6_ra_mode). Defaults to none: a router outside of Neutron sends
	// the advertisements.
	// +optional
	RAMode IPv6Mode `json:"raMode,omitempty"`
}

// IPv6Mode is an IPv6 address assignment mode of Neutron. With slaac, hosts derive
// their addresses from router advertisements. With dhcpv6-stateful, DHCPv6 assigns
// addresses and options. With dhcpv6-stateless, hosts derive their addresses from
// router advertisements, and DHCPv6 announces the other options.
//
// +kubebuilder:validation:Enum=slaac;dhcpv6-stateful;dhcpv6-stateless
type IPv6Mode string

// The IPv6 modes.
const (
	// IPv6ModeSLAAC means that hosts derive their addresses from router
	// advertisements.
	IPv6ModeSLAAC IPv6Mode = "slaac"
	// IPv6ModeDHCPv6Stateful means that DHCPv6 assigns addresses and options.
	IPv6ModeDHCPv6Stateful IPv6Mode = "dhcpv6-stateful"
	// IPv6ModeDHCPv6Stateless means that hosts derive their addresses from router
	// advertisements, and DHCPv6 announces the other options.
	IPv6ModeDHCPv6Stateless IPv6Mode = "dhcpv6-stateless"
)

// DeletionPolicy specifies what happens in Neutron when a Network is deleted.
//
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionPolicyDelete deletes the network and its subnet.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain keeps the network and its subnet.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// NetworkStatus is the most recently observed state of a network and its subnet.
type NetworkStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedGeneration is the latest metadata.generation whose spec Neutron has
	// matched. It remains if somebody changes Neutron later.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MatchedGeneration int64 `json:"matchedGeneration,omitempty"`

	// networkID is the ID of the network in Neutron.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NetworkID string `json:"networkID,omitempty"`

	// cloud identifies the cloud in which the network is: its region and project, such
	// as RegionOne/4f1c…. A controller that is connected to another cloud does not
	// change the Network.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cloud string `json:"cloud,omitempty"`

	// subnetID is the ID of the subnet in Neutron.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SubnetID string `json:"subnetID,omitempty"`

	// cidr is the range of the subnet in CIDR notation, without host bits.
	// +optional
	// +kubebuilder:validation:MaxLength=49
	CIDR string `json:"cidr,omitempty"`

	// gateway is the gateway address of the subnet, or None if it has no gateway.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	Gateway string `json:"gateway,omitempty"`

	// subnetPool is the subnet pool that allocated the range.
	// +optional
	SubnetPool *SubnetPoolStatus `json:"subnetPool,omitempty"`

	// router is the router to which the controller attached the subnet. The controller
	// records it here before it attaches the subnet, so that it can detach it later.
	// +optional
	Router *RouterStatus `json:"router,omitempty"`

	// mtu is the MTU of the network, in bytes. It is empty if the cloud does not
	// report it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MTU int32 `json:"mtu,omitempty"`

	// defaultMTU is the MTU that Neutron assigned by default, in bytes. It is empty if
	// Neutron never assigned a default to this network.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DefaultMTU int32 `json:"defaultMTU,omitempty"`

	// tags are the tags that the controller manages on the network. The controller
	// records a tag here before it adds the tag in Neutron, so that it can remove the
	// tag later.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=60
	Tags []string `json:"tags,omitempty"`

	// conditions are the current conditions of the Network. Ready is True if the
	// network and subnet in Neutron match the spec. Otherwise the reason and message
	// of Ready specify the problem and its solution. Reconciling is True while the
	// controller is working on the Network, and Stalled is True if somebody has to
	// change something first.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SubnetPoolStatus identifies the subnet pool that allocated a range.
type SubnetPoolStatus struct {
	// id is the ID of the subnet pool.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// name is the name in spec.subnetPool.name. It is empty if the spec references the
	// subnet pool by ID.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`
}

// RouterStatus identifies the router to which the subnet is attached.
type RouterStatus struct {
	// id is the ID of the router.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// name is the name in spec.router.name. It is empty if the spec references the
	// router by ID.
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
