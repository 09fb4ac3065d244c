package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/report"
)

// A Deployment can ask for a Network of its own name, by annotation. So what
// happens to the Deployment puts the key of that Network into the queue, and
// the first thing that a sync of it looks at is what the Deployment asks for.

// Deployments say which Deployments get a Network.
type Deployments string

// What -deployment-networks can be.
const (
	AnnotatedDeployments Deployments = "annotated"
	AllDeployments       Deployments = "all"
	NoDeployments        Deployments = "none"
)

// DeploymentOptions say which Deployments get which Networks.
type DeploymentOptions struct {
	Which Deployments
	// DefaultSubnetPool is the name or ID of the subnet pool of those that do not
	// say what they want, with AllDeployments.
	DefaultSubnetPool string
	// ExcludedNamespaces are those whose Deployments are not looked at.
	ExcludedNamespaces []string
}

// deployments is what is known of the Deployments, of which nothing is kept but
// what a Network could come of.
type deployments struct {
	options DeploymentOptions
	stores  byNamespace[cache.Store]
	client  metadata.Getter

	mu   sync.Mutex
	told map[cache.ObjectName]string // the last problem that each was told of
}

var deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")

// WatchDeployments has Deployments ask for Networks, through informers of their
// metadata, by namespace, that must not have been started yet. It is called
// before WarmUp, which does not wait for them: nothing follows from a Deployment
// that is not there (yet), and Networks can do without.
func (c *Controller) WatchDeployments(informers map[string]cache.SharedIndexInformer, client metadata.Interface, options DeploymentOptions) error {
	c.deployments = &deployments{
		options: options,
		stores:  byNamespace[cache.Store]{},
		client:  client.Resource(deploymentResource),
		told:    map[cache.ObjectName]string{},
	}
	for namespace, informer := range informers {
		if err := informer.SetTransform(onlyWhatAsks); err != nil {
			return fmt.Errorf("thinning the informer of Deployments: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(logDeploymentWatchError); err != nil {
			return fmt.Errorf("setting the error handler of the informer of Deployments: %w", err)
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.enqueueDeployment,
			UpdateFunc: func(before, after any) {
				if asksOtherwise(before.(*metav1.PartialObjectMetadata), after.(*metav1.PartialObjectMetadata)) {
					c.enqueueDeployment(after)
				}
			},
			DeleteFunc: c.enqueueDeployment,
		})
		if err != nil {
			return fmt.Errorf("adding the event handler for Deployments: %w", err)
		}
		c.deployments.stores[namespace] = informer.GetStore()
	}
	return nil
}

// enqueueDeployment asks for a sync of the Network that has a Deployment's name.
func (c *Controller) enqueueDeployment(deployment any) {
	if key, err := cache.DeletionHandlingObjectToName(deployment); err == nil {
		c.enqueueNetwork(key, "Deployment")
	}
}

// enqueueDeployments does so for all that there are.
func (c *Controller) enqueueDeployments() {
	if c.deployments == nil {
		return
	}
	for _, store := range c.deployments.stores {
		for _, deployment := range store.List() {
			c.enqueueDeployment(deployment)
		}
	}
}

// get returns a Deployment, or nil where there is none.
func (d *deployments) get(key cache.ObjectName) (*metav1.PartialObjectMetadata, error) {
	store, watched := d.stores.of(key.Namespace)
	if !watched {
		return nil, nil
	}
	object, exists, err := store.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	return object.(*metav1.PartialObjectMetadata), nil
}

// onlyWhatAsks keeps out of the cache what no Network can come of.
func onlyWhatAsks(object any) (any, error) {
	deployment, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	thin := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         deployment.Namespace,
		Name:              deployment.Name,
		UID:               deployment.UID,
		ResourceVersion:   deployment.ResourceVersion,
		DeletionTimestamp: deployment.DeletionTimestamp,
	}}
	thin.Annotations = ourAnnotations(deployment)
	return thin, nil
}

func asksOtherwise(before, after *metav1.PartialObjectMetadata) bool {
	return before.UID != after.UID || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) || !maps.Equal(before.Annotations, after.Annotations)
}

// followDeployment makes the Network of a key what the Deployment of that name
// asks for. It returns true where it has changed something: that comes back as
// an event, which brings the key again.
func (c *Controller) followDeployment(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network) (changed bool, err error) {
	if c.deployments == nil || slices.Contains(c.deployments.options.ExcludedNamespaces, key.Namespace) {
		return false, nil
	}
	deployment, err := c.deployments.get(key)
	if err != nil {
		return false, fmt.Errorf("looking for the Deployment: %w", err)
	}
	if deployment == nil {
		c.deployments.forget(key)
		return false, nil
	}
	asked := c.deployments.options.wishOf(deployment)
	what, problem := decide(deployment, asked, network)
	switch what {
	case leave:
		c.deployments.forget(key)
		return false, nil
	case tell:
		c.tellDeployment(key, deployment, "NetworkNotMade", problem)
		return false, nil
	case create:
		return c.createFor(ctx, deployment, asked)
	case change, remove:
	}
	// What changes or removes something is decided on the Deployment as it is now:
	// a cache may be behind, and the garbage collector at work.
	live, err := c.deployments.client.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("looking at the Deployment before its Network is changed: %w", err)
	}
	if now, _ := decide(live, c.deployments.options.wishOf(live), network); now != what || asksOtherwise(deployment, onlyAnnotations(live)) {
		return false, fmt.Errorf("changing the Network of a Deployment: %w", errOutdated)
	}
	if what == remove {
		return c.removeFor(ctx, deployment, network)
	}
	return c.changeFor(ctx, deployment, asked, network)
}

func onlyAnnotations(deployment *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	thin, _ := onlyWhatAsks(deployment)
	return thin.(*metav1.PartialObjectMetadata)
}

func (c *Controller) createFor(ctx context.Context, deployment *metav1.PartialObjectMetadata, asked wish) (changed bool, err error) {
	network := &samplecrdv1.Network{Spec: *asked.spec}
	network.Namespace, network.Name, network.Labels = deployment.Namespace, deployment.Name, labelsOf(deployment, asked)
	network.OwnerReferences = []metav1.OwnerReference{ownerReference(deployment)}
	_, err = c.client.SamplecrdV1().Networks(network.Namespace).Create(ctx, network, metav1.CreateOptions{FieldManager: controllerName})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true, nil // the cache has not seen it yet, and will; or there is no need for it any more
	case err != nil:
		return false, c.notDone(deployment, "making", err)
	}
	c.toldDeployment(ctx, deployment, "NetworkCreated", "CreateNetwork", "Created the Network "+network.Name+": "+specText(network.Spec)+".")
	return true, nil
}

func (c *Controller) changeFor(ctx context.Context, deployment *metav1.PartialObjectMetadata, asked wish, network *samplecrdv1.Network) (changed bool, err error) {
	after := network.DeepCopy()
	after.Spec = asked.specFor(network)
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == deployment.UID })
	after.OwnerReferences = append(after.OwnerReferences, ownerReference(deployment))
	for name, value := range labelsOf(deployment, asked) {
		metav1.SetMetaDataLabel(&after.ObjectMeta, name, value)
	}
	updated, err := c.client.SamplecrdV1().Networks(network.Namespace).Update(ctx, after, metav1.UpdateOptions{FieldManager: controllerName})
	if err != nil {
		return false, c.notDone(deployment, "changing", err)
	}
	c.networks.wrote(updated)
	if !worthASync(network, updated) { // nothing was changed that would bring the key again
		c.tellDeployment(cache.MetaObjectToName(deployment), deployment, "NetworkNotMade", "Something changes the Network "+network.Name+" back as soon as it is changed: look for an admission webhook.")
		return false, nil
	}
	c.toldDeployment(ctx, deployment, "NetworkUpdated", "UpdateNetwork", "Changed the Network "+network.Name+": "+specText(network.Spec)+" → "+specText(after.Spec)+".")
	return true, nil
}

func (c *Controller) removeFor(ctx context.Context, deployment *metav1.PartialObjectMetadata, network *samplecrdv1.Network) (changed bool, err error) {
	err = c.client.SamplecrdV1().Networks(network.Namespace).Delete(ctx, network.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &network.UID, ResourceVersion: &network.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, c.notDone(deployment, "deleting", err)
	}
	c.toldDeployment(ctx, deployment, "NetworkDeleted", "DeleteNetwork", "Deleted the Network "+network.Name+", which is no longer asked for.")
	return true, nil
}

// notDone tells the Deployment of a refusal. A spec that the API server finds
// invalid is not tried again until the annotations change.
func (c *Controller) notDone(deployment *metav1.PartialObjectMetadata, doing string, err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s the Network of a Deployment: %w", doing, err)
	}
	key := cache.MetaObjectToName(deployment)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		c.tellDeployment(key, deployment, "NetworkNotMade", fmt.Sprintf("The API server refuses the Network: %v", err))
	}
	if apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("%s the Network of a Deployment: %w", doing, err)
}

// toldDeployment says in the log and in an event what was done for a Deployment.
func (c *Controller) toldDeployment(ctx context.Context, deployment *metav1.PartialObjectMetadata, reason, action, text string) {
	klog.FromContext(ctx).Info("Done for the Deployment", "reason", reason, "text", text)
	c.deployments.forget(cache.MetaObjectToName(deployment))
	c.event(reference(deployment), report.Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: text})
}

// tellDeployment tells a Deployment of a problem, once.
func (c *Controller) tellDeployment(key cache.ObjectName, deployment *metav1.PartialObjectMetadata, reason, problem string) {
	d, about := c.deployments, string(deployment.UID)+" "+problem
	d.mu.Lock()
	known := d.told[key] == about
	d.told[key] = about
	d.mu.Unlock()
	if !known {
		c.event(reference(deployment), report.Event{Type: corev1.EventTypeWarning, Reason: reason, Action: "Sync", Note: problem})
	}
}

// forget forgets that a Deployment was told of a problem.
func (d *deployments) forget(key cache.ObjectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.told, key)
}

// ownerReference has the garbage collector delete a Network after its
// Deployment. A Deployment does not wait for that: to make it wait takes, in
// some clusters, the right to set finalizers of Deployments.
func ownerReference(deployment *metav1.PartialObjectMetadata) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	owner.BlockOwnerDeletion = nil
	return owner
}

// reference names a Deployment in an event.
func reference(deployment *metav1.PartialObjectMetadata) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment",
		Namespace: deployment.Namespace, Name: deployment.Name, UID: deployment.UID,
	}
}
