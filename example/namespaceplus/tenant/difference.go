package tenant

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldManager is the name under which the controller applies fields. Fields that it has
// under this name are the proof that an object is its own.
const FieldManager = "namespaceplus"

// ID identifies an object of a tenant.
type ID struct {
	Kind Kind
	Name string
}

// IDOf returns the ID of an object.
func IDOf(object *unstructured.Unstructured) ID {
	return ID{object.GroupVersionKind(), object.GetName()}
}

// Observed are the objects of a tenant, as far as they have its label. Metadata is enough.
type Observed map[ID]metav1.Object

// IsDropped reports whether the controller has applied an object that is not desired any more.
func IsDropped(id ID, object metav1.Object, desired []*unstructured.Unstructured) bool {
	return IsOurs(object) && object.GetDeletionTimestamp() == nil &&
		!slices.ContainsFunc(desired, func(one *unstructured.Unstructured) bool { return IDOf(one) == id })
}

// IsOurs reports whether the controller has applied an object.
func IsOurs(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager
	})
}

// IsUpToDate reports whether an object is as it was applied, and whether that is what is
// desired. It compares no values. Who changes a value takes the field over from its
// manager: as long as the controller manages all fields, nobody has changed one. And the
// hash says whether they are those of the present spec.
func IsUpToDate(desired *unstructured.Unstructured, observed metav1.Object) bool {
	if observed == nil || observed.GetAnnotations()[annotationHash] != desired.GetAnnotations()[annotationHash] {
		return false
	}
	fields := desired.DeepCopy().Object
	for _, identity := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		unstructured.RemoveNestedField(fields, identity...) // nobody manages these
	}
	return slices.ContainsFunc(observed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		var set map[string]any
		return entry.Manager == FieldManager && entry.FieldsV1 != nil &&
			json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) == nil && contains(set, fields)
	})
}

// contains reports whether a set of fields contains those of an object. The set has the
// form of managedFields: {"f:spec": {"f:hard": {"f:cpu": {}}}}.
func contains(set, object map[string]any) bool {
	for name, value := range object {
		members, ok := set["f:"+name].(map[string]any)
		if !ok {
			return false
		}
		// A set without members is a field that is managed as a whole.
		if nested, isMap := value.(map[string]any); isMap && len(members) > 0 && !contains(members, nested) {
			return false
		}
	}
	return true
}
