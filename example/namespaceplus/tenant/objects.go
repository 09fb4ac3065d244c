// Package tenant decides what the namespace of a NamespacePlus contains, and how far it
// is from that. It sends no requests to Kubernetes: the program on client-go and the one
// on controller-runtime share it.
package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
)

// objectName is the name of the objects in the namespace.
const objectName = "namespaceplus"

// annotationHash is the hash of an object as it was applied last.
const annotationHash = myv1.GroupName + "/applied-hash"

// Kind is a kind of objects that a tenant gets.
type Kind struct {
	schema.GroupVersionKind
	Resource string // plural
}

// GVR returns the resource.
func (k Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

func kind(gv schema.GroupVersion, name, resource string) Kind {
	return Kind{gv.WithKind(name), resource}
}

// The kinds of objects that a tenant gets.
var (
	Namespace           = kind(corev1.SchemeGroupVersion, "Namespace", "namespaces")
	resourceQuota       = kind(corev1.SchemeGroupVersion, "ResourceQuota", "resourcequotas")
	limitRange          = kind(corev1.SchemeGroupVersion, "LimitRange", "limitranges")
	networkPolicy       = kind(networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies")
	podDisruptionBudget = kind(policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets")
	roleBinding         = kind(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings")
	// Network is the kind of another controller. Nothing of its code is imported: the two
	// controllers cooperate through the object only.
	Network = kind(schema.GroupVersion{Group: "samplecrd.k8s.io", Version: "v1"}, "Network", "networks")

	Kinds = []Kind{Namespace, resourceQuota, limitRange, networkPolicy, podDisruptionBudget, roleBinding, Network}
)

// Object is an object with all fields that the controller applies, and no others.
type Object struct {
	*unstructured.Unstructured
	Kind Kind
}

// Objects returns what a tenant gets, in the order in which it is applied: the namespace
// first, and what limits the tenant before what lets somebody in.
func Objects(tenant *myv1.NamespacePlus) ([]Object, error) {
	spec, b := tenant.Spec, builder{tenant: tenant}
	b.add(Namespace, tenant.Name, "", nil)
	if len(spec.ResourceQuota) > 0 {
		b.add(resourceQuota, objectName, "spec", &corev1.ResourceQuotaSpec{Hard: spec.ResourceQuota})
	}
	if spec.LimitRange != nil {
		b.add(limitRange, objectName, "spec", spec.LimitRange)
	}
	if len(spec.DefaultDeny) > 0 { // a policy that selects all Pods and allows nothing
		b.add(networkPolicy, objectName, "spec", &networkingv1.NetworkPolicySpec{PolicyTypes: spec.DefaultDeny})
	}
	if spec.PodDisruptionBudget != nil {
		budget := spec.PodDisruptionBudget.DeepCopy()
		if budget.Selector == nil {
			budget.Selector = &metav1.LabelSelector{} // all Pods; without a selector, it would be none
		}
		b.add(podDisruptionBudget, objectName, "spec", budget)
	}
	for _, role := range []string{"admin", "edit", "view"} {
		if subjects := subjectsWith(role, spec.Members); len(subjects) > 0 {
			b.add(roleBinding, objectName+"-"+role, "", &struct {
				RoleRef  rbacv1.RoleRef   `json:"roleRef"`
				Subjects []rbacv1.Subject `json:"subjects"`
			}{rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, subjects})
		}
	}
	if spec.NetworkCIDR != "" {
		b.add(Network, objectName, "spec", &struct {
			CIDR string `json:"cidr"`
		}{spec.NetworkCIDR})
	}
	return b.objects, b.err
}

func subjectsWith(role string, members []myv1.Member) (subjects []rbacv1.Subject) {
	for _, member := range members {
		if member.Role != role {
			continue
		}
		subject := rbacv1.Subject{Kind: member.Kind, Name: member.Name, Namespace: member.Namespace}
		if member.Kind != rbacv1.ServiceAccountKind {
			subject.APIGroup = rbacv1.GroupName
		}
		subjects = append(subjects, subject)
	}
	return subjects
}

// builder builds the objects of a tenant.
type builder struct {
	tenant  *myv1.NamespacePlus
	objects []Object
	err     error
}

// add adds an object. Content has its fields, or those of one field.
func (b *builder) add(kind Kind, name, field string, content any) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if content != nil && b.err == nil {
		var fields map[string]any
		fields, b.err = runtime.DefaultUnstructuredConverter.ToUnstructured(content)
		if object.Object = fields; field != "" {
			object.Object = map[string]any{field: fields}
		}
	}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetName(name)
	object.SetLabels(map[string]string{myv1.LabelTenant: b.tenant.Name})
	if kind != Namespace {
		object.SetNamespace(b.tenant.Name)
	} else if b.tenant.Spec.DeletionPolicy == myv1.Delete {
		// The garbage collector deletes the namespace after this object, also while this
		// controller is down. The namespace takes everything in it along.
		object.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(b.tenant, myv1.SchemeGroupVersion.WithKind("NamespacePlus")),
		})
	}
	text, err := json.Marshal(object.Object) // sorts the fields
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("building %s %s: %w", kind.Kind, name, err)
	}
	hash := sha256.Sum256(text)
	object.SetAnnotations(map[string]string{annotationHash: hex.EncodeToString(hash[:8])})
	b.objects = append(b.objects, Object{object, kind})
}
