// Package tenant decides what the namespace of a NamespacePlus contains, and how far it
// is from that. It sends no requests to Kubernetes: the program on client-go and the one
// on controller-runtime share it.
package tenant

import (
	"cmp"
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

	// Kinds are those that every API server has.
	Kinds = []Kind{Namespace, resourceQuota, limitRange, networkPolicy, podDisruptionBudget, roleBinding}
)

// Objects returns what a tenant gets, in the order in which it is applied: the namespace
// first, and what limits the tenant before what lets somebody in. The objects have all
// fields that the controller applies, and no others.
func Objects(tenant *myv1.NamespacePlus) (objects []*unstructured.Unstructured, err error) {
	add := func(kind Kind, name string, content fields) {
		object, invalid := newObject(tenant, kind, name, content)
		objects, err = append(objects, object), errors.Join(err, invalid)
	}
	spec := tenant.Spec
	add(Namespace, tenant.Name, fields{})
	if len(spec.ResourceQuota) > 0 {
		add(resourceQuota, objectName, fields{"spec": fields{"hard": spec.ResourceQuota}})
	}
	if spec.LimitRange != nil {
		add(limitRange, objectName, fields{"spec": spec.LimitRange})
	}
	if len(spec.DefaultDeny) > 0 { // a policy that selects all Pods and allows nothing
		add(networkPolicy, objectName, fields{"spec": networkingv1.NetworkPolicySpec{PolicyTypes: spec.DefaultDeny}})
	}
	if spec.PodDisruptionBudget != nil {
		budget := *spec.PodDisruptionBudget
		budget.Selector = cmp.Or(budget.Selector, &metav1.LabelSelector{}) // all Pods; nil would be none
		add(podDisruptionBudget, objectName, fields{"spec": budget})
	}
	for _, role := range []string{"admin", "edit", "view"} {
		var subjects []rbacv1.Subject
		for _, m := range spec.Members {
			if m.Role == role { // the API server adds the API group
				subjects = append(subjects, rbacv1.Subject{Kind: m.Kind, Name: m.Name, Namespace: m.Namespace})
			}
		}
		if len(subjects) > 0 {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
			add(roleBinding, objectName+"-"+role, fields{"roleRef": ref, "subjects": subjects})
		}
	}
	if spec.NetworkCIDR != "" {
		add(Network, objectName, fields{"spec": fields{"cidr": spec.NetworkCIDR}})
	}
	return objects, err
}

type fields = map[string]any

// newObject returns an object of a tenant. Its annotation is the hash of all else.
func newObject(tenant *myv1.NamespacePlus, kind Kind, name string, content fields) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	object.SetLabels(map[string]string{myv1.LabelTenant: tenant.Name})
	if kind != Namespace {
		object.SetNamespace(tenant.Name)
	} else if tenant.Spec.DeletionPolicy == myv1.Delete {
		// The garbage collector deletes the namespace after this object, also while this
		// controller is down. The namespace takes everything in it along.
		owner := schema.GroupVersion(myv1.GroupVersion).WithKind("NamespacePlus")
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(tenant, owner)})
	}
	text, err := json.Marshal(content) // sorts the fields
	hash := sha256.Sum256(text)
	err = errors.Join(err, json.Unmarshal(text, &object.Object))
	object.SetAnnotations(map[string]string{annotationHash: hex.EncodeToString(hash[:8])})
	return object, err
}
