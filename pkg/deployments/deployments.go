// Package deployments gives a Deployment a Network of the same name, if the
// annotations of the Deployment request one. It is complete in itself: an event
// of a Deployment enqueues the key of the Network, and Sync brings the Network
// object in line with the Deployment before the Network itself is reconciled.
package deployments

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Which selects Deployments.
type Which string

// The values of -deployment-networks.
const (
	Annotated Which = "annotated"
	All       Which = "all"
	None      Which = "none"
)

// Options say which Deployments get which Networks.
type Options struct {
	Which Which
	// DefaultSubnetPool is the name or ID of the subnet pool of Deployments without
	// annotations, with All.
	DefaultSubnetPool string
	// ExcludedNamespaces are those whose Deployments are ignored.
	ExcludedNamespaces []string
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	o.ExcludedNamespaces = []string{metav1.NamespaceSystem}
	flags.StringVar((*string)(&o.Which), "deployment-networks", string(Annotated), "Which Deployments get a Network of the same name: annotated (those with annotations that request one), all (every Deployment that does not opt out) or none.")
	flags.StringVar(&o.DefaultSubnetPool, "default-subnet-pool", "", "The `name` or ID of the subnet pool for Deployments without annotations. Required with -deployment-networks=all.")
	flags.Var((*kube.CommaSeparated)(&o.ExcludedNamespaces), "exclude-deployment-namespaces", "Comma-separated `namespaces` whose Deployments are ignored.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	switch {
	case o.Which != Annotated && o.Which != All && o.Which != None:
		return fmt.Errorf("-deployment-networks is %q: it must be annotated, all or none", o.Which)
	case o.Which == All && o.DefaultSubnetPool == "":
		return errors.New("-deployment-networks=all requires -default-subnet-pool, the subnet pool of Deployments without annotations")
	case o.Which != All && o.DefaultSubnetPool != "":
		return errors.New("-default-subnet-pool requires -deployment-networks=all")
	}
	return nil
}

// Resource is the resource that the informers watch.
var Resource = appsv1.SchemeGroupVersion.WithResource("deployments")

// Deployments keeps the Networks of Deployments in line with their annotations. It
// is safe for concurrent use.
type Deployments struct {
	options   Options
	informers store.ByNamespace[cache.SharedIndexInformer]
	metadata  metadata.Getter
	client    clientset.Interface
	networks  *store.Networks
	events    record.EventRecorder
	clock     clock.PassiveClock

	mu sync.Mutex
	// reported is the last problem that an event reported, by Deployment.
	reported map[cache.ObjectName]report
}

// report is a problem that an event has reported.
type report struct {
	uid     types.UID // of the Deployment
	problem string
	at      time.Time
}

// repeatReport is the age of an event from which on it is repeated, if the problem
// still exists: events expire after an hour.
const repeatReport = 25 * time.Minute

// New returns a Deployments that uses informers of metadata, which must not have
// been started. A caller need not wait until they are synced: a Deployment that has
// not been received yet has no effect.
func New(from store.ByNamespace[cache.SharedIndexInformer], metadataClient metadata.Interface, client clientset.Interface, networks *store.Networks, recorder record.EventRecorder, clock clock.PassiveClock, options Options) (*Deployments, error) {
	onWatchError := kube.Resource{Plural: "Deployments"}.LogWatchError(" (not required with -deployment-networks=none)")
	for _, informer := range from {
		if err := informer.SetTransform(onlyAnnotations); err != nil {
			return nil, fmt.Errorf("setting the transform of the informer of Deployments: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(onWatchError); err != nil {
			return nil, fmt.Errorf("setting the watch error handler of the informer of Deployments: %w", err)
		}
	}
	return &Deployments{
		options: options, informers: from, metadata: metadataClient.Resource(Resource), client: client, networks: networks,
		events: recorder, clock: clock, reported: map[cache.ObjectName]report{},
	}, nil
}

// Start passes the key of each existing Deployment to enqueueListed, and from then on
// that of each Deployment that changes to enqueue.
func (d *Deployments) Start(enqueue, enqueueListed func(cache.ObjectName)) error {
	add := func(deployment any, enqueue func(cache.ObjectName)) {
		if key, err := cache.DeletionHandlingObjectToName(deployment); err == nil {
			enqueue(key)
		}
	}
	for _, informer := range d.informers {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(deployment any, isInInitialList bool) {
				if isInInitialList {
					add(deployment, enqueueListed)
				} else {
					add(deployment, enqueue)
				}
			},
			UpdateFunc: func(before, after any) {
				if requestChanged(before.(*metav1.PartialObjectMetadata), after.(*metav1.PartialObjectMetadata)) {
					add(after, enqueue)
				}
			},
			DeleteFunc: func(deployment any) { add(deployment, enqueue) },
		})
		if err != nil {
			return fmt.Errorf("adding an event handler for Deployments: %w", err)
		}
	}
	return nil
}

// get returns a Deployment, or nil if it does not exist or is not watched.
func (d *Deployments) get(key cache.ObjectName) (*metav1.PartialObjectMetadata, error) {
	informer, watched := d.informers.For(key.Namespace)
	if !watched || slices.Contains(d.options.ExcludedNamespaces, key.Namespace) {
		return nil, nil
	}
	object, exists, err := informer.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	return object.(*metav1.PartialObjectMetadata), nil
}

// onlyAnnotations is the transform of the informers: it keeps what decide needs.
func onlyAnnotations(object any) (any, error) {
	if deployment, ok := object.(*metav1.PartialObjectMetadata); ok {
		return thinned(deployment), nil
	}
	return object, nil
}

func thinned(deployment *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         deployment.Namespace,
		Name:              deployment.Name,
		UID:               deployment.UID,
		ResourceVersion:   deployment.ResourceVersion,
		DeletionTimestamp: deployment.DeletionTimestamp,
		Annotations:       thinnedAnnotations(ourAnnotations(deployment)),
	}}
}

// maxValueLength bounds an annotation in the cache. No valid value is longer.
const maxValueLength = 1024

// thinnedAnnotations returns the annotations that decide needs: the known ones, and
// the first unknown one, which it reports.
func thinnedAnnotations(annotations map[string]string) map[string]string {
	var kept map[string]string
	unknown := false
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if !slices.Contains(knownAnnotations, name) {
			if unknown {
				continue
			}
			unknown = true
		}
		value := annotations[name]
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = strings.Clone(value[:min(len(value), maxValueLength)])
	}
	return kept
}

func requestChanged(before, after *metav1.PartialObjectMetadata) bool {
	return before.UID != after.UID || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) || !maps.Equal(before.Annotations, after.Annotations)
}

// errOutdated ends a sync on a Deployment that has changed since it was read. The
// retry reads the newer one.
var errOutdated = fmt.Errorf("the Deployment changed: %w", store.ErrOutdated)

// Sync brings a Network, which is nil if it does not exist, in line with the
// Deployment of the same name. It returns true if the Network object was written, or
// is about to be received: that event enqueues the key again. It returns a
// *status.DeploymentError if the Deployment requests what cannot be done.
func (d *Deployments) Sync(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network) (changed bool, err error) {
	deployment, err := d.get(key)
	if err != nil {
		return false, fmt.Errorf("reading the Deployment: %w", err)
	}
	if deployment == nil {
		d.forget(key)
		return false, d.checkListed(key, network)
	}
	requested := d.options.requestOf(deployment)
	action, problem := decide(deployment, requested, network)
	switch action {
	case keep:
		d.forget(key)
		return false, nil
	case reportOnly:
		return false, d.rejected(deployment, problem, relationOf(network, deployment) == owned)
	case create:
		// No live read is needed: if the Deployment no longer exists, the garbage
		// collector deletes the Network.
		return d.create(ctx, deployment, requested)
	case update, remove:
	}
	// An update or a removal is decided on the live Deployment: the cache may be
	// stale, and the garbage collector at work.
	live, err := d.metadata.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		d.reportProblem(deployment, fmt.Sprintf("The API server rejected a request of the controller: %v. Check the controller's RBAC roles.", err))
	}
	if err != nil {
		return false, fmt.Errorf("reading the Deployment before updating its Network: %w", err)
	}
	if now, _ := decide(live, d.options.requestOf(live), network); now != action || requestChanged(deployment, thinned(live)) {
		return false, fmt.Errorf("updating the Network of a Deployment: %w", errOutdated)
	}
	if action == remove {
		return d.remove(ctx, deployment, network)
	}
	return d.update(ctx, deployment, requested, network)
}

// checkListed returns an error if a Network is marked as one of an invalid Deployment,
// and the Deployments have not been listed since the controller started. Then the
// Deployment may exist.
func (d *Deployments) checkListed(key cache.ObjectName, network *samplecrdv1.Network) error {
	informer, watched := d.informers.For(key.Namespace)
	if !watched || informer.HasSynced() || network == nil ||
		meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionDeploymentInvalid) == nil {
		return nil
	}
	return fmt.Errorf("the Deployments have not been listed yet: %w", store.ErrOutdated)
}

func (d *Deployments) create(ctx context.Context, deployment *metav1.PartialObjectMetadata, requested request) (changed bool, err error) {
	network := &samplecrdv1.Network{Spec: *requested.spec}
	network.Namespace, network.Name, network.Labels = deployment.Namespace, deployment.Name, labelsFor(deployment, requested)
	network.OwnerReferences = []metav1.OwnerReference{ownerReference(deployment)}
	_, err = d.client.SamplecrdV1().Networks(network.Namespace).Create(ctx, network, metav1.CreateOptions{FieldManager: manager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return true, nil // its event will come
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, nil // the namespace is being deleted
	case err != nil:
		return false, d.failed(deployment, "creating", err, false)
	}
	d.announce(ctx, deployment, "NetworkCreated", "Created the Network "+network.Name+": "+specText(network.Spec)+".")
	return true, nil
}

func (d *Deployments) update(ctx context.Context, deployment *metav1.PartialObjectMetadata, requested request, network *samplecrdv1.Network) (changed bool, err error) {
	after := network.DeepCopy()
	after.Spec = requested.specFor(network)
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == deployment.UID })
	after.OwnerReferences = append(after.OwnerReferences, ownerReference(deployment))
	for name, value := range labelsFor(deployment, requested) {
		metav1.SetMetaDataLabel(&after.ObjectMeta, name, value)
	}
	patch, err := changes(network, after)
	if err != nil {
		return false, err
	}
	updated, err := d.client.SamplecrdV1().Networks(network.Namespace).Patch(ctx, network.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return false, d.failed(deployment, "updating", err, true)
	}
	d.networks.Written(updated)
	if updated.Generation == network.Generation && !OwnershipChanged(network, updated) { // no event enqueues the key
		d.reportProblem(deployment, "Updates of the Network "+network.Name+" have no effect: check for a mutating admission webhook or policy that reverts them.")
		return false, nil
	}
	change := "Updated the Network " + network.Name + ": " + changeText(network.Spec, after.Spec) + "."
	if updated.Generation == network.Generation {
		change = "Took over the Network " + network.Name + "."
	}
	d.announce(ctx, deployment, "NetworkUpdated", change)
	if updated.Generation != network.Generation { // its users may have edited it
		d.events.Event(updated, corev1.EventTypeNormal, "UpdatedForDeployment",
			status.Clip("Changed the spec to what the Deployment "+deployment.Name+" requests: "+changeText(network.Spec, after.Spec)+". To change it, edit the annotations of the Deployment."))
	}
	return true, nil
}

// changes returns the merge patch that changes a Network, if it is still the one that was
// read. The cache lacks most labels and annotations, so the whole object must not be
// sent.
func changes(before, after *samplecrdv1.Network) ([]byte, error) {
	read := before.DeepCopy()
	read.UID, read.ResourceVersion = "", "" // so that the patch has them
	return status.MergePatch(read, after)
}

func (d *Deployments) remove(ctx context.Context, deployment *metav1.PartialObjectMetadata, network *samplecrdv1.Network) (changed bool, err error) {
	err = d.client.SamplecrdV1().Networks(network.Namespace).Delete(ctx, network.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &network.UID, ResourceVersion: &network.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, d.failed(deployment, "deleting", err, true)
	}
	d.announce(ctx, deployment, "NetworkDeleted", "Deleted the Network "+network.Name+": the Deployment no longer requests it.")
	return true, nil
}

// failed reports to the Deployment that the API server rejected a Network. A spec
// that the API server finds invalid waits until the annotations change.
func (d *Deployments) failed(deployment *metav1.PartialObjectMetadata, doing string, err error, owned bool) error {
	problem := fmt.Sprintf("The API server rejected the Network: %v", err)
	switch {
	case apierrors.IsInvalid(err):
		return d.rejected(deployment, problem, owned)
	case apierrors.IsForbidden(err):
		d.reportProblem(deployment, problem)
	}
	return fmt.Errorf("%s the Network of a Deployment: %w", doing, err)
}

// rejected reports to the Deployment, and to the Network if there is one that the
// Deployment owns, that the request cannot be done.
func (d *Deployments) rejected(deployment *metav1.PartialObjectMetadata, problem string, owned bool) error {
	d.reportProblem(deployment, problem)
	return &status.DeploymentError{Message: problem, Owned: owned}
}

// announce logs what was done for a Deployment, and records an event.
func (d *Deployments) announce(ctx context.Context, deployment *metav1.PartialObjectMetadata, reason, change string) {
	klog.FromContext(ctx).Info("Reconciled the Network of a Deployment", "reason", reason, "change", status.Printable(change))
	d.forget(cache.MetaObjectToName(deployment))
	d.events.Event(reference(deployment), corev1.EventTypeNormal, reason, status.Clip(change))
}

// reportProblem records an event, unless a recent one reported the same problem.
func (d *Deployments) reportProblem(deployment *metav1.PartialObjectMetadata, problem string) {
	key, now := cache.MetaObjectToName(deployment), d.clock.Now()
	d.mu.Lock()
	last := d.reported[key]
	known := last.uid == deployment.UID && last.problem == problem && now.Sub(last.at) < repeatReport
	if !known {
		d.reported[key] = report{deployment.UID, problem, now}
	}
	d.mu.Unlock()
	if !known {
		d.events.Event(reference(deployment), corev1.EventTypeWarning, "NetworkNotMade", status.Clip(problem))
	}
}

// forget forgets the problem of a Deployment: it is resolved.
func (d *Deployments) forget(key cache.ObjectName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reported, key)
}

// ownerReference makes the garbage collector delete a Network after its Deployment.
// It does not block the deletion of the Deployment: in some clusters, that takes
// the permission to set finalizers of Deployments.
func ownerReference(deployment *metav1.PartialObjectMetadata) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	owner.BlockOwnerDeletion = nil
	return owner
}

// reference is the object that an event of a Deployment regards.
func reference(deployment *metav1.PartialObjectMetadata) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment",
		Namespace: deployment.Namespace, Name: deployment.Name, UID: deployment.UID,
	}
}
