package tenant

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// FieldManager is the name under which the controller applies fields. Fields that it has
	// under this name are the proof that an object is its own.
	FieldManager = "namespaceplus"
	// Notifier is the field manager of what is known about notifications. The status has
	// two writers, and neither needs the version of the other.
	Notifier = FieldManager + "-notifier"
)

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

// Dropped returns the objects that the controller has applied, and that are not desired any
// more.
func (o Observed) Dropped(desired []*unstructured.Unstructured) Observed {
	dropped := maps.Clone(o)
	maps.DeleteFunc(dropped, func(_ ID, object metav1.Object) bool {
		return object.GetDeletionTimestamp() != nil || !IsOurs(object)
	})
	for _, object := range desired {
		delete(dropped, IDOf(object))
	}
	return dropped
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
