package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelTenant is the label of the namespace and of everything that the controller makes
// in it. Its value is the name of the NamespacePlus.
const LabelTenant = GroupName + "/tenant"

// The condition types of a NamespacePlus.
const (
	// ConditionReady is True if the namespace has everything that the spec requests.
	ConditionReady = "Ready"
	// ConditionNotified is True if the receiver has accepted the notification. It is absent
	// if the spec requests none.
	ConditionNotified = "Notified"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=namespacepluses,scope=Cluster,shortName=nsp
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".metadata",message="the name must be a valid name of a namespace: at most 63 lowercase letters, digits and hyphens"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'default' && !self.metadata.name.startsWith('kube-')",fieldPath=".metadata",message="namespaces of Kubernetes itself (default, kube-*) are not for tenants: choose another name"

// NamespacePlus is a namespace for a tenant, with what the tenant gets in it. The
// namespace has the name of this object.
type NamespacePlus struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the tenant gets.
	// +optional
	// +kubebuilder:default={}
	Spec NamespacePlusSpec `json:"spec,omitempty,omitzero"`

	// status is the most recently observed state. Only the controller writes it.
	// +optional
	Status NamespacePlusStatus `json:"status,omitempty,omitzero"`
}

// NamespacePlusSpec is what a tenant gets.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.adopt) || !oldSelf.adopt || has(self.adopt) && self.adopt",fieldPath=".adopt",message="true cannot be taken back: the namespace may contain what is not the tenant's"
// +kubebuilder:validation:XValidation:rule="!(has(self.adopt) && self.adopt && self.deletionPolicy == 'Delete')",fieldPath=".adopt",message="an adopted namespace may contain anything, so it is never deleted with this object: set deletionPolicy to Retain, or adopt to false"
type NamespacePlusSpec struct {
	// resourceQuota are the hard limits of the ResourceQuota. Defaults to no CPU, no
	// memory and no Pods: nothing runs until somebody grants it. An empty object is no quota.
	// +optional
	// +kubebuilder:default={cpu: "0", memory: "0", pods: "0"}
	// +kubebuilder:validation:MaxProperties=64
	ResourceQuota corev1.ResourceList `json:"resourceQuota,omitempty"`

	// limitRange is the spec of the LimitRange. Defaults to no LimitRange.
	// +optional
	LimitRange *corev1.LimitRangeSpec `json:"limitRange,omitempty"`

	// defaultDeny are the directions of traffic that a NetworkPolicy denies to all Pods.
	// Other policies can allow some of it. Defaults to no NetworkPolicy.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=Ingress;Egress
	DefaultDeny []networkingv1.PolicyType `json:"defaultDeny,omitempty"`

	// podDisruptionBudget is the spec of a PodDisruptionBudget. Its selector defaults to
	// all Pods of the namespace. Defaults to no PodDisruptionBudget.
	// +optional
	PodDisruptionBudget *policyv1.PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`

	// members get a role in the namespace. Defaults to nobody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Members []Member `json:"members,omitempty"`

	// networkCIDR is the CIDR of a Network (samplecrd.k8s.io/v1) in the namespace. Another
	// controller makes a network of it. Defaults to no Network.
	// +optional
	// +kubebuilder:validation:MaxLength=49
	NetworkCIDR string `json:"networkCIDR,omitempty"`

	// notification is the receiver of a message when the namespace is ready for the first
	// time. Defaults to no message.
	// +optional
	Notification *Notification `json:"notification,omitempty"`

	// adopt permits the controller to use a namespace that exists already. Its contents
	// stay. Defaults to false, and true cannot be taken back.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// deletionPolicy specifies what happens to the namespace when this object is deleted:
	// Retain keeps it with everything in it, Delete deletes it with everything in it.
	// Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Delete' || self == 'Delete'",message="cannot be changed back from Delete, because this object might be deleted before the namespace is changed: to keep the namespace, delete this object with kubectl delete --cascade=orphan"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy specifies what happens to a namespace.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	Retain DeletionPolicy = "Retain"
	Delete DeletionPolicy = "Delete"
)

// Member is somebody who gets a role in a namespace.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'ServiceAccount') == has(self.namespace)",fieldPath=".namespace",message="a ServiceAccount requires a namespace, and a User or Group has none"
type Member struct {
	// role is the ClusterRole that the member gets in the namespace.
	// +required
	// +kubebuilder:validation:Enum=admin;edit;view
	Role string `json:"role"`

	// kind is the kind of the member. Defaults to User.
	// +optional
	// +kubebuilder:default=User
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind,omitempty"`

	// name is the name of the user, group or ServiceAccount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace is the namespace of a ServiceAccount.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// Notification is the receiver of a message.
type Notification struct {
	// url receives an HTTP POST. It must begin with https://, or with http:// for this
	// machine. Redirects are not followed. Another url is notified again.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (url(self).getScheme() == 'https' || url(self).getScheme() == 'http' && url(self).getHostname() in ['localhost', '127.0.0.1', '::1', '[::1]'])",message="must be a URL that begins with https://, or with http://localhost, http://127.0.0.1 or http://[::1]"
	URL string `json:"url"`
}

// NamespacePlusStatus is the most recently observed state.
type NamespacePlusStatus struct {
	// conditions are the latest observations: Ready and Notified.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// notified is the idempotency key of the notification that was accepted.
	// +optional
	Notified string `json:"notified,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// NamespacePlusList is a list of NamespacePluses.
type NamespacePlusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NamespacePlus `json:"items"`
}
