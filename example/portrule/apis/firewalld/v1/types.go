package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionApplied is True if the firewall of the node contains the rule.
const ConditionApplied = "Applied"

// +genclient
// +genclient:nonNamespaced
// +resourceName=ports
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ports,singular=port,scope=Cluster,shortName=fp
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name: must have at most 63 characters, because the node's firewall uses it as a name"
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.spec.port`
// +kubebuilder:printcolumn:name="Protocol",type=string,JSONPath=`.spec.protocol`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Sources",type=string,JSONPath=`.spec.sources`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodes[*].node`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.nodes[*].conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.nodes[*].conditions[?(@.type=="Applied")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// PortRule makes a port of nodes reachable from its sources, and only from the sources of
// the PortRules that name this port. Connections that exist, and connections of a node to
// itself, are not affected.
//
// It is cluster-scoped, as Nodes are: who may restrict a port of a node can cut off every
// tenant on it.
type PortRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PortRuleSpec   `json:"spec"`
	Status PortRuleStatus `json:"status,omitempty"`
}

// PortRuleSpec is the desired state.
type PortRuleSpec struct {
	// Name is what people call this port, such as "web shop". It has no effect.
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`
	// Port is the number of the port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// Protocol is tcp or udp.
	// +kubebuilder:validation:Enum=tcp;udp
	// +kubebuilder:default=tcp
	Protocol string `json:"protocol,omitempty"`
	// Host is the address of the node at which the port is meant. Defaults to all addresses.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address"
	Host string `json:"host,omitempty"`
	// Sources are the CIDRs from which clients may connect. Defaults to any address.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a CIDR, such as 192.0.2.0/24 or 2001:db8::/64"
	Sources []string `json:"sources,omitempty"`
	// NodeSelector are the labels of the nodes that the rule concerns. Defaults to all nodes.
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// IsPermanent also adds the rule to the permanent configuration of firewalld. Then a
	// restart of firewalld or of the node finds it before the agent runs.
	IsPermanent bool `json:"isPermanent,omitempty"`
}

// PortRuleStatus is the observed state. It has as many writers as entries.
type PortRuleStatus struct {
	// Nodes has an entry for each node that the rule concerns. Its agent writes it.
	// +listType=map
	// +listMapKey=node
	Nodes []NodeStatus `json:"nodes,omitempty"`
}

// NodeStatus is the state of a rule on one node.
type NodeStatus struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Conditions has the condition Applied.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// PortRuleList is a list of PortRules.
type PortRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PortRule `json:"items"`
}
