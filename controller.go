package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

// controllerName is how the controller signs what it writes: requests to
// Kubernetes and Neutron, the fields it owns in a status, and events.
const controllerName = "samplecrd-controller"

// maxInFlight is how long Neutron may still be at a request that we no longer
// wait for.
const maxInFlight = 30 * time.Second

// Controller keeps every Network object and its network in Neutron alike.
//
// This file follows a Network's key on its way: an event handler puts it into
// the queue, a worker takes it out, syncHandler carries out one plan, and
// handleErr says when to look again.
type Controller struct {
	client  clientset.Interface
	neutron *neutron.Cache
	events  events.EventRecorder
	options Options

	networks networkCaches
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	retry    retryTimes
	// leading is false as long as another process has the lead: what happens
	// then is seen by the caches, and is no work of ours.
	leading atomic.Bool
	// listed is whether Neutron was listed since: before, the mirror may not know
	// what a former leader has done.
	listed atomic.Bool

	deployments *deployments // nil where none can ask for a Network
	seen        seen
	inFlight    *inFlight
	orphans     orphans
	pulse       *pulse
	causes      causes
	background  sync.WaitGroup
}

// Options say how a Controller works.
type Options struct {
	// Cluster is part of the mark on everything that is made in Neutron. It tells
	// the objects of this Kubernetes cluster from those of others in the same
	// OpenStack project.
	Cluster string
	// ResyncPeriod is how long it takes at most until a change that somebody
	// makes in Neutron is noticed, as long as Neutron can list everything in a
	// tenth of it.
	ResyncPeriod time.Duration
	// AllowAdoption allows users to name networks that are there already.
	AllowAdoption bool
	// OrphanGracePeriod is after how long a network that is marked as this
	// cluster's and has no object is deleted; 0 for never.
	OrphanGracePeriod time.Duration
}

// NewController returns a Controller that watches through these informers, by
// namespace, or one for all of them. They must not have been started yet.
func NewController(
	ctx context.Context,
	client clientset.Interface,
	informers map[string]informers.TypedNetworkInformer,
	neutronClient neutron.Client,
	recorder events.EventRecorder,
	options Options,
) (*Controller, error) {
	logger := klog.FromContext(ctx)
	retry := defaultRetryTimes()
	c := &Controller{
		client:   client,
		neutron:  neutron.NewCache(neutronClient),
		events:   recorder,
		options:  options,
		networks: networkCaches{byNamespace[networkCache]{}},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			retry.backoff, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "Networks"}),
		retry:    retry,
		seen:     seen{networks: map[cache.ObjectName]sighting{}},
		inFlight: newInFlight(maxInFlight),
		orphans:  newOrphans(),
		pulse:    newPulse(),
	}

	for namespace, informer := range informers {
		in, err := newNetworkCache(logger, informer, c.handler)
		if err != nil {
			return nil, err
		}
		c.networks.byNamespace[namespace] = in
	}
	return c, nil
}

// handler puts the key of each Network that has changed into the queue.
func (c *Controller) handler(overlaid cache.MutationCache) networkHandler {
	return networkHandler{
		AddFunc: func(network *samplecrdv1.Network) {
			c.enqueueNetwork(cache.MetaObjectToName(network), "Network added")
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			overlaid.OnAddOrUpdate(after)
			switch {
			case worthASync(before, after):
				c.enqueueNetwork(cache.MetaObjectToName(after), "Network updated")
			case c.leading.Load() && !equality.Semantic.DeepEqual(before.Status, after.Status) && !c.seen.wrote(after):
				// Another controller may be at it: two that disagree must not go round in circles.
				c.queue.AddAfter(cache.MetaObjectToName(after), wait.Jitter(c.retry.otherStatus, 0.5))
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			c.enqueueNetwork(deleted.GetObjectName(), "Network deleted")
		},
	}
}

// worthASync reports whether an update asks for anything. A resync or a new list
// after a lost watch reports objects that have not changed at all; and most
// updates are our own finalizer and status coming back.
func worthASync(before, after *samplecrdv1.Network) bool {
	return before.UID != after.UID ||
		before.Generation != after.Generation || // the spec, or the wish to delete
		hasFinalizer(before) && !hasFinalizer(after) ||
		belongsOtherwise(before, after)
}

// hasFinalizer reports whether our finalizer holds a Network.
func hasFinalizer(network *samplecrdv1.Network) bool {
	return slices.Contains(network.Finalizers, samplecrdv1.Finalizer)
}

// enqueueNetwork asks for a sync of a Network, soon. It may be called any
// number of times: the queue holds a key once, and never gives it to two
// workers at a time. As long as another process has the lead, nothing is asked
// for: takeTheLead does so for all that there is. The cause is told in traces.
func (c *Controller) enqueueNetwork(key cache.ObjectName, cause string) {
	if c.leading.Load() {
		c.causes.note(key, cause)
		c.queue.Add(key)
	}
}

// WarmUp fills the caches, and keeps them so until the context ends: those of
// Kubernetes, and the mirror of Neutron. It returns false where the context ends
// first. It waits for Kubernetes, except for namespaces of which it is known that
// they may not be looked at, and not for a Neutron that is away.
func (c *Controller) WarmUp(ctx context.Context, forbidden ...string) bool {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the caches to be filled")
	if !cache.WaitFor(ctx, "", c.networks.synced(forbidden)...) {
		return false
	}
	logger.Info("Listing what Neutron has")
	pause := c.resync(ctx)
	c.background.Go(func() { c.resyncForEver(ctx, pause) })
	return ctx.Err() == nil
}

// Run works with that many workers until the context ends, and then lets them
// finish the request that they are in, for as long as grace; they begin no new
// one. It returns an error where workers had to be cut off. WarmUp comes before
// it; and only one process of a cluster is meant to run at a time.
func (c *Controller) Run(ctx context.Context, workers int, grace time.Duration) error {
	logger := klog.FromContext(ctx)

	// Requests in flight outlive ctx, and end with this one.
	requests, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()

	c.takeTheLead()
	logger.Info("Starting workers", "count", workers)
	for range workers {
		c.background.Go(func() { c.runWorker(requests) })
	}

	<-ctx.Done()
	logger.Info("Stopping: requests in flight may finish", "grace", grace)
	c.queue.ShutDown()
	deadline := time.AfterFunc(grace, cutOff)
	c.background.Wait()
	if !deadline.Stop() {
		return fmt.Errorf("stopping took longer than %v: requests to Neutron were cut off, and are looked up at the next start", grace)
	}
	logger.Info("Stopped: no request is in flight")
	return nil
}

// takeTheLead makes work of all that there is and of all that happens from now
// on. A process that had the lead before may have been at any of it.
func (c *Controller) takeTheLead() {
	c.leading.Store(true)
	metrics.CountNetworks(c.countNetworks)
	all := c.networks.list()
	c.inFlight.inherit(all)
	for _, network := range all {
		c.enqueueNetwork(cache.MetaObjectToName(network), "start")
	}
	c.enqueueDeployments()
}

// runWorker takes keys from the queue until it is shut down.
func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem waits for a key and syncs it. It returns false when the
// queue is shut down: keys left in it are found again at the next start.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown || c.queue.ShuttingDown() {
		return false
	}
	defer c.queue.Done(key)
	ctx, end := c.beginSync(ctx, key)
	err := c.syncHandler(ctx, key)
	c.tellForbidden(key, err)
	c.handleErr(ctx, key, err)
	end(err)
	return true
}

// tellForbidden tells in an event what only an administrator can change. A
// status cannot tell it: that may be what we may not write.
func (c *Controller) tellForbidden(key cache.ObjectName, err error) {
	if !apierrors.IsForbidden(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	if network, _ := c.networks.get(key); network != nil {
		c.event(network, report.Event{Type: corev1.EventTypeWarning, Reason: "Forbidden", Action: "Sync",
			Note: fmt.Sprintf("Kubernetes does not allow the controller what it has to do: %v. Whoever runs it has to look at its roles, or at an admission policy.", err)})
	}
}

// handleErr says when a key is to be synced again after a sync that came to
// this end. A change of the spec syncs it at once in any case.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	logger := klog.FromContext(ctx)
	pause, again := c.retry.after(err)
	switch {
	case !again:
		if err != nil {
			logger.Info("Sync failed, will wait for a change", "err", err)
		}
		c.queue.Forget(key)
	case pause == 0:
		logger.Info("Sync failed, will back off", "failures", c.queue.NumRequeues(key)+1, "err", err)
		c.queue.AddRateLimited(key)
	default:
		logger.Info("Sync failed, will wait", "pause", pause.Round(time.Second), "err", err)
		c.queue.Forget(key)
		c.queue.AddAfter(key, pause)
	}
}

// syncHandler makes Neutron have what one Network asks for, and says so in its
// status. It is never called twice at a time for one key.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	network, err := c.networks.get(key)
	if err != nil {
		return err
	}
	changed, err := c.followDeployment(ctx, key, network)
	if changed {
		return err // and what has changed brings the key again
	}
	syncErr := c.syncNetwork(ctx, key, network)
	if err != nil {
		return err // which is tried again soon, whatever became of the rest
	}
	return syncErr
}

// syncNetwork does so for the Network as it is, which is nil where it has gone.
func (c *Controller) syncNetwork(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network) error {
	if network == nil { // gone: our finalizer went after all else, or somebody took it
		c.seen.forget(key)
		return c.deleteOrphan(ctx, key)
	}
	c.orphans.written(key, network.Status)
	desired := c.desired(network)
	actual, outcome, done := c.planFromMirror(network, desired)
	if done = done && (c.listed.Load() || wasDone(network, desired, actual)); !done {
		actual, outcome = c.carryOut(ctx, network, desired)
	}
	if errors.Is(outcome, errStopping) || errors.Is(outcome, context.Canceled) {
		return nil
	}
	if err := c.writeStatus(ctx, network, desired, actual, outcome); err != nil {
		return err // the outcome comes again with the next try
	}
	settled := done || outcome == nil || isAllButAnExtension(outcome)
	c.seen.settle(network, settled)
	if settled {
		return nil // until something changes
	}
	return outcome
}

// desired returns what a Network asks for.
func (c *Controller) desired(network *samplecrdv1.Network) plan.Desired {
	desired := plan.DesiredFor(c.owner(network), network.Spec)
	desired.Absent = network.DeletionTimestamp != nil
	desired.Edited = network.Generation > 1
	if network.Spec.NetworkID != "" {
		desired.Obstacle = c.obstacleToAdoption(network)
	}
	policy, adopted := network.Spec.DeletionPolicy, desired.Adopted != ""
	switch {
	case policy == samplecrdv1.DeletionPolicyRetain || desired.Obstacle.Reason == plan.ReasonAdoptionNotAllowed:
		desired.Leave = plan.LeaveAll
	case adopted && (policy != samplecrdv1.DeletionPolicyDelete || desired.Obstacle.Reason != ""):
		desired.Leave = plan.LeaveNetwork
	}
	return desired
}

func (c *Controller) owner(network *samplecrdv1.Network) neutron.Owner {
	return neutron.Owner{Cluster: c.options.Cluster, Namespace: network.Namespace, Name: network.Name}
}

// maxSteps is more than any plan takes, unless Neutron keeps answering with
// something else than it was asked for.
const maxSteps = 60

// errStopping ends a sync between two steps when the controller stops.
var errStopping = errors.New("the controller is stopping")

// carryOut goes the way from the actual to the desired state, a step and so a
// request at a time. It returns what is known of the actual state at the end.
func (c *Controller) carryOut(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired) (plan.Actual, error) {
	actual := c.actualOf(network)
	found := "" // the network that was there, as long as none was looked for
	for range maxSteps {
		step := plan.Next(desired, actual)
		switch step := step.(type) {
		case plan.Nothing:
			return actual, nil
		case plan.Blocked:
			return actual, report.BlockedError{Blocked: step}
		case plan.RemoveFinalizer:
			if network.UID == "" { // there is no object: it was an orphan that went
				return actual, nil
			}
		}
		if c.queue.ShuttingDown() {
			return actual, errStopping
		}
		if err := c.mustBeCurrent(ctx, network, step); err != nil {
			return actual, err
		}
		if err := c.inFlight.mustWait(network, desired, step, found); err != nil {
			return actual, err
		}
		stepCtx, end := c.traceStep(ctx, network, step)
		after, err := c.apply(stepCtx, network, actual, step)
		end(err)
		if err != nil {
			c.inFlight.note(desired, step, err)
			return actual, err
		}
		c.tell(ctx, network, step)
		if actual = after; actual.Sees(network.Status.NetworkID) {
			found = network.Status.NetworkID
		}
	}
	return actual, report.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonNotConverging, Message: fmt.Sprintf(
		"gave up after %d steps: what Neutron answers is not what it was asked for. The log tells the steps.", maxSteps)}}
}

// actualOf returns what is known of the actual state without a look: what the
// object itself tells, and what this Neutron was able to do a moment ago.
func (c *Controller) actualOf(network *samplecrdv1.Network) plan.Actual {
	actual := plan.Actual{Finalizer: hasFinalizer(network), Record: report.RecordOf(network.Status)}
	if extensions, ok := c.neutron.KnownExtensions(); ok {
		actual = actual.WithExtensions(extensions)
	}
	return actual
}

// apply carries out one step: one request to Kubernetes or Neutron. It returns
// what is known of the actual state afterwards.
func (c *Controller) apply(ctx context.Context, network *samplecrdv1.Network, actual plan.Actual, step plan.Step) (plan.Actual, error) {
	switch step := step.(type) {
	case plan.AddFinalizer:
		return actual.WithFinalizer(true), c.setFinalizer(ctx, network, true)
	case plan.RemoveFinalizer:
		return actual.WithFinalizer(false), c.setFinalizer(ctx, network, false)

	case plan.FindNetwork:
		found, err := c.neutron.Networks(ctx, step.Filter)
		return actual.WithNetworks(step.Filter, found), err
	case plan.CreateNetwork:
		created, err := c.neutron.CreateNetwork(ctx, step.Network)
		if err == nil {
			c.orphans.made(cache.MetaObjectToName(network))
		}
		return actual.WithNewNetwork(step.Network, created), err
	case plan.UpdateNetwork:
		updated, err := c.neutron.UpdateNetwork(ctx, step.ID, step.Update)
		return actual.WithUpdatedNetwork(step.Update, updated), err
	case plan.RetainNetwork:
		updated, err := c.neutron.UpdateNetwork(ctx, step.ID, step.Update)
		return actual.WithNetwork(updated), err
	case plan.DeleteNetwork:
		return actual.WithoutNetwork(step.ID), c.neutron.DeleteNetwork(ctx, step.ID, step.Revision)
	case plan.NoteTags:
		return actual.WithNotedTags(step.Tags), c.noteTags(ctx, network, step.Tags)
	case plan.AddTag:
		return actual.WithTag(step.ID, step.Tag, true), c.neutron.AddNetworkTag(ctx, step.ID, step.Tag)
	case plan.RemoveTag:
		return actual.WithTag(step.ID, step.Tag, false), c.neutron.RemoveNetworkTag(ctx, step.ID, step.Tag)

	case plan.FindSubnets:
		found, err := c.neutron.Subnets(ctx, step.Filter)
		return actual.WithSubnets(step.Filter.NetworkID, found), err
	case plan.CreateSubnet:
		created, err := c.neutron.CreateSubnet(ctx, step.Subnet)
		return actual.WithSubnet(created), err
	case plan.UpdateSubnet:
		updated, err := c.neutron.UpdateSubnet(ctx, step.ID, step.Update)
		return actual.WithSubnet(updated), err
	case plan.DeleteSubnet:
		return actual.WithoutSubnet(step.ID), c.neutron.DeleteSubnet(ctx, step.ID, step.Revision)

	case plan.FindSubnetPool:
		found, err := c.neutron.SubnetPools(ctx, step.Filter)
		return actual.WithSubnetPools(found), err
	case plan.FindExtensions:
		found, err := c.neutron.Extensions(ctx)
		return actual.WithExtensions(found), err
	}
	panic(fmt.Sprintf("no such step: %T", step))
}

// mustBeCurrent returns an error where a step would take something away in
// Neutron and the object is no longer the one that we know: a cache may be
// behind, and the user may have changed the spec, or said Retain.
func (c *Controller) mustBeCurrent(ctx context.Context, network *samplecrdv1.Network, step plan.Step) error {
	switch step.(type) {
	case plan.DeleteNetwork, plan.DeleteSubnet:
	default:
		return nil
	}
	if network.UID == "" { // there is no object, which was looked at live
		return nil
	}
	c.pulse.beat(cache.MetaObjectToName(network))
	latest, err := c.client.SamplecrdV1().Networks(network.Namespace).Get(ctx, network.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("looking at the object before %q: %w", step, err)
	case latest.UID != network.UID || latest.Generation != network.Generation:
		return fmt.Errorf("before %q: %w", step, errOutdated)
	}
	return nil
}

// errOutdated ends a sync of an object that has changed since it was read. The
// change comes with an event of its own.
var errOutdated = errors.New("the object has changed meanwhile")

// setFinalizer sets or removes our finalizer, and leaves others as they are. It
// sends nothing but that: a client that sends the whole object drops fields
// that it does not know.
func (c *Controller) setFinalizer(ctx context.Context, network *samplecrdv1.Network, set bool) error {
	finalizers := slices.DeleteFunc(slices.Clone(network.Finalizers), func(f string) bool { return f == samplecrdv1.Finalizer })
	if set {
		finalizers = append(finalizers, samplecrdv1.Finalizer)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             network.UID,
		"resourceVersion": network.ResourceVersion, // refused where another has changed the list
		"finalizers":      finalizers,
	}})
	if err != nil {
		return fmt.Errorf("encoding finalizers: %w", err)
	}
	updated, err := c.client.SamplecrdV1().Networks(network.Namespace).
		Patch(ctx, network.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: controllerName})
	if err != nil {
		return fmt.Errorf("updating finalizers: %w", err)
	}
	c.networks.wrote(updated)
	return nil
}

// tell says what a step has done: changes in Neutron in the log and in an
// event, the rest to those who read the log closely.
func (c *Controller) tell(ctx context.Context, network *samplecrdv1.Network, step plan.Step) {
	logger := klog.FromContext(ctx)
	event, ok := report.EventOf(network, step)
	if !ok {
		if logger := logger.V(4); logger.Enabled() {
			logger.Info("Done", "step", step.String())
		}
		return
	}
	logger.Info("Done", "step", step.String(), "reason", event.Reason)
	if event.Reason == report.Drifted {
		metrics.DriftRepaired.Inc()
	}
	c.event(network, event)
}

// event tells of something in an event. Those that differ in nothing but their
// note are counted as one, with the note of the first; so the action, which
// nobody reads, tells them apart.
func (c *Controller) event(regarding runtime.Object, event report.Event) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(event.Note)) // never fails
	c.events.Eventf(regarding, nil, event.Type, event.Reason, fmt.Sprintf("%s-%08x", event.Action, sum.Sum32()), "%s", report.Clip(event.Note))
}

// writeStatus brings the status up to date with the end that a sync has come
// to, where it is not, and tells the user when something new stands in the way.
func (c *Controller) writeStatus(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome error) error {
	status, changed := report.Status(network, desired, actual, outcome, metav1.Now().Rfc3339Copy())
	if !changed {
		c.seen.willWrite(network, status)
		return nil
	}
	if written, err := c.applyStatus(ctx, network, status); !written || err != nil {
		return err
	}
	c.orphans.written(cache.MetaObjectToName(network), status)
	if c.seen.comes(network, status) {
		metrics.ObserveReady(time.Since(network.CreationTimestamp.Time))
	}
	if reason, message := report.NewProblem(network.Status, status); reason != "" {
		c.event(network, report.Event{Type: corev1.EventTypeWarning, Reason: reason, Action: "Sync", Note: message})
	}
	return nil
}

// noteTags notes in the status which tags we are about to put on the network.
func (c *Controller) noteTags(ctx context.Context, network *samplecrdv1.Network, tags []string) error {
	status := *network.Status.DeepCopy()
	status.Tags = tags
	written, err := c.applyStatus(ctx, network, status)
	if err == nil && !written {
		err = errGone
	}
	return err
}

// errGone ends a sync whose object has gone meanwhile: what comes of it is the
// next one's.
var errGone = errors.New("the object has gone")

// applyStatus writes a status. It returns false where nobody is left to be told.
func (c *Controller) applyStatus(ctx context.Context, network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) (written bool, err error) {
	latest, err := c.networks.get(cache.MetaObjectToName(network)) // the finalizer may be newer
	switch {
	case err != nil || latest == nil || latest.UID != network.UID:
		return false, err
	case !equality.Semantic.DeepEqual(latest.Status, network.Status) && !c.seen.wrote(latest):
		return false, fmt.Errorf("updating status: %w", errOutdated) // by another controller, perhaps, whose network is to stay
	}
	c.pulse.beat(cache.MetaObjectToName(network))
	c.seen.willWrite(network, status)
	updated, err := c.client.SamplecrdV1().Networks(network.Namespace).
		ApplyStatus(ctx, report.Apply(latest, status), metav1.ApplyOptions{FieldManager: controllerName, Force: true})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil && !report.SameRecord(updated.Status, status) { // somebody else has written there what only we should
		updated, err = c.client.SamplecrdV1().Networks(network.Namespace).
			Patch(ctx, network.Name, types.MergePatchType, report.Overwrite(updated, status), metav1.PatchOptions{FieldManager: controllerName}, "status")
	}
	if err != nil {
		return false, fmt.Errorf("updating status: %w", err)
	}
	c.networks.wrote(updated)
	return true, nil
}
