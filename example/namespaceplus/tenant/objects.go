// Package tenant decides what the namespace of a NamespacePlus contains, and how far it
// is from that. It sends no requests to Kubernetes: the program on client-go and the one
// on controller-runtime share it.
package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
)

// objectName is the name of the objects in the namespace.
const objectName = "namespaceplus"

// annotationHash is the hash of an object as it was applied last.
const annotationHash = myv1.GroupName + "/applied-hash"

// Kind is a kind of objects that a tenant gets.
type Kind = schema.GroupVersionKind

// Resource returns the resource of a kind.
func Resource(kind Kind) schema.GroupVersionResource {
	plural, _ := apimeta.UnsafeGuessKindToResource(kind) // it is right for these kinds
	return plural
}

// The kinds of objects that a tenant gets.
var (
	Namespace           = corev1.SchemeGroupVersion.WithKind("Namespace")
	resourceQuota       = corev1.SchemeGroupVersion.WithKind("ResourceQuota")
	limitRange          = corev1.SchemeGroupVersion.WithKind("LimitRange")
	networkPolicy       = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	podDisruptionBudget = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	roleBinding         = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	// Network is the kind of another controller. Nothing of its code is imported: the two
	// controllers cooperate through the object only.
	Network = Kind{Group: "samplecrd.k8s.io", Version: "v1", Kind: "Network"}

	Kinds = []Kind{Namespace, resourceQuota, limitRange, networkPolicy, podDisruptionBudget, roleBinding, Network}
)

// Objects returns what a tenant gets, in the order in which it is applied: the namespace
// first, and what limits the tenant before what lets somebody in. The objects have all
// fields that the controller applies, and no others.
func Objects(tenant *myv1.NamespacePlus) ([]*unstructured.Unstructured, error) {
	spec, b := tenant.Spec, builder{tenant: tenant}
	b.add(Namespace, tenant.Name, fields{})
	if len(spec.ResourceQuota) > 0 {
		b.add(resourceQuota, objectName, fields{"spec": fields{"hard": spec.ResourceQuota}})
	}
	if spec.LimitRange != nil {
		b.add(limitRange, objectName, fields{"spec": spec.LimitRange})
	}
	if len(spec.DefaultDeny) > 0 { // a policy that selects all Pods and allows nothing
		b.add(networkPolicy, objectName, fields{"spec": networkingv1.NetworkPolicySpec{PolicyTypes: spec.DefaultDeny}})
	}
	if spec.PodDisruptionBudget != nil {
		budget := *spec.PodDisruptionBudget
		if budget.Selector == nil {
			budget.Selector = &metav1.LabelSelector{} // all Pods; without a selector, it would be none
		}
		b.add(podDisruptionBudget, objectName, fields{"spec": budget})
	}
	for _, role := range []string{"admin", "edit", "view"} {
		if subjects := subjectsWith(role, spec.Members); len(subjects) > 0 {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
			b.add(roleBinding, objectName+"-"+role, fields{"roleRef": ref, "subjects": subjects})
		}
	}
	if spec.NetworkCIDR != "" {
		b.add(Network, objectName, fields{"spec": fields{"cidr": spec.NetworkCIDR}})
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

type fields = map[string]any

// builder builds the objects of a tenant.
type builder struct {
	tenant  *myv1.NamespacePlus
	objects []*unstructured.Unstructured
	err     error
}

// add adds an object. Its annotation is the hash of all else.
func (b *builder) add(kind Kind, name string, content fields) {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	object.SetLabels(map[string]string{myv1.LabelTenant: b.tenant.Name})
	if kind != Namespace {
		object.SetNamespace(b.tenant.Name)
	} else if b.tenant.Spec.DeletionPolicy == myv1.Delete {
		// The garbage collector deletes the namespace after this object, also while this
		// controller is down. The namespace takes everything in it along.
		object.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(b.tenant, schema.GroupVersion(myv1.GroupVersion).WithKind("NamespacePlus")),
		})
	}
	text, err := json.Marshal(content) // sorts the fields
	b.err = errors.Join(b.err, err, json.Unmarshal(text, &object.Object))
	hash := sha256.Sum256(text)
	object.SetAnnotations(map[string]string{annotationHash: hex.EncodeToString(hash[:8])})
	b.objects = append(b.objects, object)
}
