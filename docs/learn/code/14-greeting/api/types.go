// Package api contains version v1 of the API group learn.example.org. Its only kind is
// Greeting. The deepcopy functions and the CRD are generated from it.
//
// +kubebuilder:object:generate=true
// +groupName=learn.example.org
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "learn.example.org", Version: "v1"}

// +kubebuilder:object:root=true

// Greeting becomes a ConfigMap that contains a text.
type Greeting struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired text.
	// +required
	Spec GreetingSpec `json:"spec"`
}

// GreetingSpec is the desired text.
type GreetingSpec struct {
	// person is the name of the person to address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Person string `json:"person"`
}

// +kubebuilder:object:root=true

// GreetingList is a list of Greetings.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Greeting `json:"items"`
}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(GroupVersion, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, GroupVersion) // for the options of list and watch
}
