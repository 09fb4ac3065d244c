package deployments

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// errOutdated ends a sync of a Deployment that has changed since it was read. The retry
// reads the newer one.
var errOutdated = fmt.Errorf("the Deployment changed: %w", store.ErrOutdated)

// apply creates, updates or deletes the Network of a Deployment. It returns a problem
// that lasts until somebody changes something, or an error that is to be retried.
func (c *Controller) apply(
	ctx context.Context, action action, deployment *metav1.PartialObjectMetadata, network *samplecrdv1.Network,
) (problem string, err error) {
	if action == create {
		// No live read is needed: if the Deployment no longer exists, the garbage
		// collector deletes the Network.
		return c.create(ctx, deployment)
	}
	// An update or a deletion is decided on the live Deployment: the cache may be stale,
	// and the garbage collector at work.
	live, err := c.Metadata.Resource(Resource).Namespace(deployment.Namespace).
		Get(ctx, deployment.Name, metav1.GetOptions{})
	if err != nil {
		return "", c.failed(deployment, "reading the Deployment before updating its Network", err)
	}
	now, _ := decide(live, c.Options.requestOf(live), network)
	if now != action || requestChanged(deployment, thinned(live)) {
		return "", fmt.Errorf("updating the Network of a Deployment: %w", errOutdated)
	}
	if action == remove {
		return "", c.remove(ctx, deployment, network)
	}
	return c.update(ctx, deployment, network)
}

func (c *Controller) create(ctx context.Context, deployment *metav1.PartialObjectMetadata) (problem string, err error) {
	requested := c.Options.requestOf(deployment)
	network := &samplecrdv1.Network{Spec: *requested.spec}
	network.Namespace, network.Name, network.Labels = deployment.Namespace, deployment.Name,
		labelsFor(deployment, requested)
	network.OwnerReferences = []metav1.OwnerReference{ownerReference(deployment)}
	_, err = c.Client.SamplecrdV1().Networks(network.Namespace).Create(ctx, network,
		metav1.CreateOptions{FieldManager: manager})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "", nil // its event will come, or the namespace is being deleted
	case apierrors.IsInvalid(err):
		return rejection(err), nil
	case err != nil:
		return "", c.failed(deployment, "creating the Network of a Deployment", err)
	}
	c.announce(ctx, deployment, "NetworkCreated", "Created the Network "+network.Name+": "+specText(network.Spec)+".")
	return "", nil
}

// update patches the Network: the cache lacks most labels and annotations, so the whole
// object must not be sent.
func (c *Controller) update(
	ctx context.Context, deployment *metav1.PartialObjectMetadata, network *samplecrdv1.Network,
) (problem string, err error) {
	requested := c.Options.requestOf(deployment)
	after := network.DeepCopy()
	after.Spec = requested.specFor(network)
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences,
		func(o metav1.OwnerReference) bool { return o.UID == deployment.UID })
	after.OwnerReferences = append(after.OwnerReferences, ownerReference(deployment))
	for name, value := range labelsFor(deployment, requested) {
		metav1.SetMetaDataLabel(&after.ObjectMeta, name, value)
	}
	read := network.DeepCopy()
	read.UID, read.ResourceVersion = "", "" // so that the patch has them
	patch, err := status.MergePatch(read, after)
	if err != nil {
		return "", err
	}
	updated, err := c.Client.SamplecrdV1().Networks(network.Namespace).
		Patch(ctx, network.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	switch {
	case apierrors.IsInvalid(err):
		return rejection(err), nil
	case err != nil:
		return "", c.failed(deployment, "updating the Network of a Deployment", err)
	}
	change := changeText(network.Spec, after.Spec)
	switch {
	case updated.Generation != network.Generation:
		c.announce(ctx, deployment, "NetworkUpdated", "Updated the Network "+network.Name+": "+change+".")
		c.Events.Event(updated, corev1.EventTypeNormal, "UpdatedForDeployment", status.Clip( // its users may have edited it
			"Changed the spec to what the Deployment "+deployment.Name+" requests: "+change+
				". To change it, edit the annotations of the Deployment."))
	case ownershipChanged(network, updated):
		c.announce(ctx, deployment, "NetworkUpdated", "Took over the Network "+network.Name+".")
	default:
		c.warn(deployment, "Updates of the Network "+network.Name+
			" have no effect: check for a mutating admission webhook or policy that reverts them.")
	}
	return "", nil
}

func (c *Controller) remove(ctx context.Context, deployment *metav1.PartialObjectMetadata,
	network *samplecrdv1.Network) error {
	err := c.Client.SamplecrdV1().Networks(network.Namespace).Delete(ctx, network.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &network.UID, ResourceVersion: &network.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return c.failed(deployment, "deleting the Network of a Deployment", err)
	}
	c.announce(ctx, deployment, "NetworkDeleted", "Deleted the Network "+network.Name+
		": the Deployment no longer requests it.")
	return nil
}

// failed returns the error of a request. If the API server denied it, an event reports
// that.
func (c *Controller) failed(deployment *metav1.PartialObjectMetadata, doing string, err error) error {
	if apierrors.IsForbidden(err) {
		c.warn(deployment, rejection(err)+" Check the controller's RBAC roles and the admission policies.")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func rejection(err error) string { return fmt.Sprintf("The API server rejected the Network: %v.", err) }

func (c *Controller) announce(ctx context.Context, deployment *metav1.PartialObjectMetadata, reason, change string) {
	klog.FromContext(ctx).Info("Reconciled the Network of a Deployment",
		"reason", reason, "change", status.Printable(change))
	c.Events.Event(reference(deployment), corev1.EventTypeNormal, reason, status.Clip(change))
}

// warn reports a problem to a Deployment.
func (c *Controller) warn(deployment *metav1.PartialObjectMetadata, problem string) {
	c.Events.Event(reference(deployment), corev1.EventTypeWarning, "NetworkNotMade", status.Clip(problem))
}

// ownerReference makes the garbage collector delete a Network after its Deployment.
// It does not block the deletion of the Deployment: in some clusters, that takes
// the permission to set finalizers of Deployments.
func ownerReference(deployment *metav1.PartialObjectMetadata) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	owner.BlockOwnerDeletion = nil
	return owner
}

func reference(deployment *metav1.PartialObjectMetadata) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment",
		Namespace: deployment.Namespace, Name: deployment.Name, UID: deployment.UID,
	}
}
