package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the one that the API server serves.
var GroupVersion = schema.GroupVersion{Group: "neutron.samplecrd.k8s.io", Version: "v1alpha1"}

// Resource is the plural in the path of requests.
const Resource = "neutronnetworks"

// AddToScheme adds the types, and the fields by which they can be selected.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NeutronNetwork{}, &NeutronNetworkList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return scheme.AddFieldLabelConversionFunc(GroupVersion.WithKind("NeutronNetwork"),
		func(field, value string) (string, string, error) {
			if _, ok := (&NeutronNetwork{}).Fields()[field]; !ok {
				return "", "", fmt.Errorf("%q cannot be selected: use metadata.name, metadata.namespace, status.name, "+
					"status.state, status.network or status.owner", field)
			}
			return field, value, nil
		})
}

// Fields are what a field selector can select.
func (n *NeutronNetwork) Fields() fields.Set {
	return fields.Set{
		"metadata.name": n.Name, "metadata.namespace": n.Namespace, "status.name": n.Status.Name,
		"status.state": string(n.Status.State), "status.network": n.Status.Network, "status.owner": n.Status.Owner,
	}
}
