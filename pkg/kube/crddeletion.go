package kube

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// CRDGuard tells an object that somebody deletes from one that is deleted because its
// CustomResourceDefinition is: that deletes all objects, hardly ever on purpose.
type CRDGuard struct {
	client           metadata.ResourceInterface
	name, annotation string

	mu           sync.Mutex
	read, logged bool
}

// NewCRDGuard returns a guard for the CustomResourceDefinition with this name. An
// annotation of it, with the value true, permits its deletion.
func NewCRDGuard(client metadata.Interface, name, annotation string) *CRDGuard {
	return &CRDGuard{client: client.Resource(definitions), name: name, annotation: annotation}
}

// BeingDeleted reports whether the CustomResourceDefinition is being deleted without
// permission, or does not exist. It asks the API server each time: Kubernetes marks the
// CustomResourceDefinition before its objects, so no older response is valid for an
// object that is being deleted. If the controller never had the right to read it,
// BeingDeleted logs that once, and returns false. If the controller has lost that
// right, it may be losing the others, too: that is an error.
func (g *CRDGuard) BeingDeleted(ctx context.Context) (bool, error) {
	definition, err := g.client.Get(ctx, g.name, metav1.GetOptions{})
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsForbidden(err) && !g.read:
		if !g.logged {
			klog.FromContext(ctx).Error(err, "The CustomResourceDefinition cannot be read: if it is deleted, "+
				"everything that its objects created is deleted, too; apply deploy/ of this version")
		}
		g.logged = true
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the CustomResourceDefinition %s: %w", g.name, err)
	}
	g.read = true
	return definition.DeletionTimestamp != nil && definition.Annotations[g.annotation] != "true", nil
}
