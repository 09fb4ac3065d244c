package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
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
	neutron neutron.Client
	events  events.EventRecorder
	cluster string // part of the mark on everything we make in Neutron

	// networks is what the informer has seen, overlaid with what we have
	// written ourselves and not seen come back yet.
	networks cache.MutationCache
	synced   cache.DoneChecker
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	retry    retryTimes

	seen       seen
	unanswered unanswered
}

// NewController returns a Controller that watches through the informer, which
// must not have been started yet. The cluster tells the objects of this
// Kubernetes cluster from those of others in the same OpenStack project.
func NewController(
	ctx context.Context,
	client clientset.Interface,
	informer informers.TypedNetworkInformer,
	neutronClient neutron.Client,
	recorder events.EventRecorder,
	cluster string,
) (*Controller, error) {
	logger := klog.FromContext(ctx)
	retry := defaultRetryTimes()
	c := &Controller{
		client:  client,
		neutron: neutronClient,
		events:  recorder,
		cluster: cluster,
		networks: cache.NewIntegerResourceVersionMutationCacheWithOptions(
			logger, informer.Informer().GetStore(), cache.MutationCacheOptions{MaxCacheSize: 10_000}),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			retry.backoff, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "Networks"}),
		retry:      retry,
		seen:       seen{networks: map[cache.ObjectName]sighting{}},
		unanswered: unanswered{until: map[neutron.Owner]time.Time{}, wait: maxInFlight},
	}

	if err := informer.Informer().SetWatchErrorHandlerWithContext(logWatchError); err != nil {
		return nil, fmt.Errorf("setting the informer's error handler: %w", err)
	}
	registration, err := informer.TypedInformer().AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*samplecrdv1.Network]{
		AddFunc: func(network *samplecrdv1.Network) {
			c.enqueueNetwork(cache.MetaObjectToName(network))
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			c.networks.OnAddOrUpdate(after)
			if c.worthASync(before, after) {
				c.enqueueNetwork(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			c.enqueueNetwork(deleted.GetObjectName())
		},
	}, cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return nil, fmt.Errorf("adding the event handler: %w", err)
	}
	c.synced = registration.HasSyncedChecker()
	return c, nil
}

// worthASync tells whether an update asks for anything. A resync or a new list
// after a lost watch reports objects that have not changed at all; and most
// updates are our own finalizer and status coming back.
func (c *Controller) worthASync(before, after *samplecrdv1.Network) bool {
	return before.UID != after.UID ||
		before.Generation != after.Generation || // the spec, or the wish to delete
		hasFinalizer(before) && !hasFinalizer(after) ||
		!equality.Semantic.DeepEqual(before.Status, after.Status) && !c.seen.wrote(after)
}

// hasFinalizer tells whether our finalizer holds a Network.
func hasFinalizer(network *samplecrdv1.Network) bool {
	return slices.Contains(network.Finalizers, samplecrdv1.Finalizer)
}

// enqueueNetwork asks for a sync of a Network, soon. It may be called any
// number of times: the queue holds a key once, and never gives it to two
// workers at a time.
func (c *Controller) enqueueNetwork(key cache.ObjectName) {
	c.queue.Add(key)
}

// Run works with that many workers until the context ends, and then lets them
// finish the request that they are in, for as long as grace; they begin no new
// one. It returns an error where workers had to be cut off.
func (c *Controller) Run(ctx context.Context, workers int, grace time.Duration) error {
	logger := klog.FromContext(ctx)

	// Requests in flight outlive ctx, and end with this one.
	requests, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()

	logger.Info("Waiting for the cache to be filled")
	if !cache.WaitFor(ctx, "", c.synced) {
		c.queue.ShutDown()
		return nil // asked to stop before it began
	}
	logger.Info("Starting workers", "count", workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.runWorker(requests) })
	}

	<-ctx.Done()
	logger.Info("Stopping: requests in flight may finish", "grace", grace)
	c.queue.ShutDown()
	deadline := time.AfterFunc(grace, cutOff)
	running.Wait()
	if !deadline.Stop() {
		return fmt.Errorf("stopping took longer than %v: requests to Neutron were cut off, and are looked up at the next start", grace)
	}
	logger.Info("Stopped: no request is in flight")
	return nil
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
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("network", klog.KRef(key.Parts())))
	c.handleErr(ctx, key, c.syncHandler(ctx, key))
	return true
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
	network, err := c.network(key)
	switch {
	case err != nil:
		return err
	case network == nil: // gone: our finalizer went after all else
		c.seen.forget(key)
		return nil
	case c.seen.settled(network):
		return nil
	}
	desired := c.desired(network)
	actual, outcome := c.carryOut(ctx, network, desired)
	if errors.Is(outcome, errStopping) || errors.Is(outcome, context.Canceled) {
		return nil
	}
	if err := c.writeStatus(ctx, network, desired, actual, outcome); err != nil {
		return err // the outcome comes again with the next try
	}
	if outcome == nil {
		c.seen.settle(network)
	}
	return outcome
}

// network returns the object, or nil where it has gone.
func (c *Controller) network(key cache.ObjectName) (*samplecrdv1.Network, error) {
	object, exists, err := c.networks.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	return object.(*samplecrdv1.Network), nil
}

// desired returns what a Network asks for.
func (c *Controller) desired(network *samplecrdv1.Network) plan.Desired {
	owner := neutron.Owner{Cluster: c.cluster, Namespace: network.Namespace, Name: network.Name}
	if network.DeletionTimestamp != nil {
		return plan.WantAbsent(owner)
	}
	return plan.Want(owner, network.Spec.CIDR, network.Spec.Gateway)
}

// maxSteps is more than any plan takes, unless Neutron keeps answering with
// something else than it was asked for.
const maxSteps = 20

// errStopping ends a sync between two steps when the controller stops.
var errStopping = errors.New("the controller is stopping")

// carryOut goes the way from the actual to the desired state, a step and so a
// request at a time. It returns what is known of the actual state at the end.
func (c *Controller) carryOut(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired) (plan.Actual, error) {
	actual := plan.Actual{
		Finalizer: hasFinalizer(network),
		NetworkID: network.Status.NetworkID,
		SubnetID:  network.Status.SubnetID,
	}
	for range maxSteps {
		step := plan.Next(desired, actual)
		switch step := step.(type) {
		case plan.Nothing:
			return actual, nil
		case plan.Blocked:
			return actual, report.BlockedError{Blocked: step}
		}
		if c.queue.ShuttingDown() {
			return actual, errStopping
		}
		if err := c.unanswered.mustWait(desired.Owner, step); err != nil {
			return actual, err
		}
		after, err := c.apply(ctx, network, actual, step)
		if err != nil {
			c.unanswered.note(desired.Owner, step, err)
			return actual, err
		}
		c.tell(ctx, network, step)
		actual = after
	}
	return actual, report.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonNotConverging, Message: fmt.Sprintf(
		"gave up after %d steps: what Neutron answers is not what it was asked for. The log tells the steps.", maxSteps)}}
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
		return actual.WithNetwork(created), err
	case plan.DeleteNetwork:
		return actual.WithoutNetwork(), c.neutron.DeleteNetwork(ctx, step.ID, step.Revision)

	case plan.FindSubnets:
		found, err := c.neutron.Subnets(ctx, step.Filter)
		return actual.WithSubnets(found), err
	case plan.CreateSubnet:
		created, err := c.neutron.CreateSubnet(ctx, step.Subnet)
		return actual.WithSubnet(created), err
	case plan.UpdateSubnet:
		updated, err := c.neutron.UpdateSubnet(ctx, step.ID, step.Update)
		return actual.WithSubnet(updated), err
	case plan.DeleteSubnet:
		return actual.WithoutSubnet(step.ID), c.neutron.DeleteSubnet(ctx, step.ID, step.Revision)
	}
	panic(fmt.Sprintf("no such step: %T", step))
}

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
	c.networks.Mutation(updated)
	return nil
}

// tell says what a step has done: changes in Neutron in the log and in an
// event, the rest to those who read the log closely.
func (c *Controller) tell(ctx context.Context, network *samplecrdv1.Network, step plan.Step) {
	logger := klog.FromContext(ctx)
	reason := report.EventReason(step)
	if reason == "" {
		logger.V(4).Info("Done", "step", step)
		return
	}
	logger.Info("Done", "step", step)
	c.events.Eventf(network, nil, corev1.EventTypeNormal, reason, "Sync", "%s", step)
}

// writeStatus brings the status up to date with the end that a sync has come
// to, where it is not, and tells the user when something new stands in the way.
func (c *Controller) writeStatus(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome error) error {
	status, changed := report.Status(network, desired, actual, outcome, metav1.Now().Rfc3339Copy())
	c.seen.willWrite(network, status)
	if !changed {
		return nil
	}
	latest, err := c.network(cache.MetaObjectToName(network)) // the finalizer may be newer
	if err != nil || latest == nil || latest.UID != network.UID {
		return err // nobody is left to be told
	}
	updated, err := c.client.SamplecrdV1().Networks(network.Namespace).
		ApplyStatus(ctx, report.Apply(latest, status), metav1.ApplyOptions{FieldManager: controllerName, Force: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.networks.Mutation(updated)
	if reason, message := report.NewProblem(network.Status, status); reason != "" {
		c.events.Eventf(network, nil, corev1.EventTypeWarning, reason, "Sync", "%s", message)
	}
	return nil
}

// seen remembers, of each Network, what this process has done with it.
type seen struct {
	mu       sync.Mutex
	networks map[cache.ObjectName]sighting
}

type sighting struct {
	uid types.UID
	// settled is the generation whose spec Neutron was seen to have; 0 for none.
	settled int64
	// status is the last one that we wrote, or found to be right.
	status samplecrdv1.NetworkStatus
}

// settled tells whether there is nothing to do for a Network. So an event that
// asks for nothing costs no request, and after a start each is looked at once.
// One that lost our finalizer, or whose status somebody edited, is not settled.
func (s *seen) settled(network *samplecrdv1.Network) bool {
	return s.last(network).settled == network.Generation && hasFinalizer(network) && s.wrote(network)
}

// settle notes that Neutron has what a Network asks for.
func (s *seen) settle(network *samplecrdv1.Network) {
	s.change(network, func(sighting *sighting) { sighting.settled = network.Generation })
}

// willWrite notes the status that a Network is about to get, or has: before it
// is written, since it may come back before the answer does.
func (s *seen) willWrite(network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) {
	s.change(network, func(sighting *sighting) { sighting.status = status })
}

// wrote tells whether the status of a Network is our last word.
func (s *seen) wrote(network *samplecrdv1.Network) bool {
	last := s.last(network)
	return last.uid == network.UID && equality.Semantic.DeepEqual(last.status, network.Status)
}

// last returns what is remembered of a Network, or nothing where that was of
// another object of the same name.
func (s *seen) last(network *samplecrdv1.Network) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.networks[cache.MetaObjectToName(network)]
	if last.uid != network.UID {
		return sighting{}
	}
	return last
}

func (s *seen) forget(key cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.networks, key)
}

func (s *seen) change(network *samplecrdv1.Network, change func(*sighting)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := cache.MetaObjectToName(network)
	last := s.networks[key]
	if last.uid != network.UID {
		last = sighting{uid: network.UID}
	}
	change(&last)
	s.networks[key] = last
}

// unanswered remembers for which owners a request to create a network has gone
// out and no answer has come: Neutron may still be at it. For as long as a
// request may take, that there is no network does not mean that none comes, so
// none is created, and the object is held.
type unanswered struct {
	mu    sync.Mutex
	until map[neutron.Owner]time.Time
	wait  time.Duration
}

func (u *unanswered) note(owner neutron.Owner, step plan.Step, err error) {
	var failure *neutron.Error
	_, creates := step.(plan.CreateNetwork)
	if !creates || !errors.As(err, &failure) || failure.Type != "" {
		return // a type is Neutron's own answer; a proxy's says nothing of the request behind it
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.until[owner] = time.Now().Add(u.wait)
}

// mustWait returns an error where a step must not be taken yet.
func (u *unanswered) mustWait(owner neutron.Owner, step plan.Step) error {
	switch step.(type) {
	case plan.CreateNetwork, plan.RemoveFinalizer:
	default:
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	left := time.Until(u.until[owner])
	if left <= 0 {
		delete(u.until, owner)
		return nil
	}
	return &neutron.Error{
		Op: "create network", Kind: neutron.ErrUnavailable, RetryAfter: left,
		Message: fmt.Sprintf("an earlier request was not answered, and Neutron may still be at it; looking again within %v", u.wait),
	}
}

// retryTimes say how long to wait after a failure.
type retryTimes struct {
	// backoff is for failures that may pass any moment: it doubles.
	backoff workqueue.TypedRateLimiter[cache.ObjectName]
	// inUse is for what somebody may clear away in Neutron: ports, a second
	// network with our mark. A look costs one request or two.
	inUse time.Duration
	// refused is for what somebody has to change first.
	refused time.Duration
}

func defaultRetryTimes() retryTimes {
	return retryTimes{
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](200*time.Millisecond, 2*time.Minute),
		inUse:   20 * time.Second,
		refused: 5 * time.Minute,
	}
}

// after returns whether a sync with this outcome is to be repeated, and after
// which pause; 0 stands for the backoff. Pauses are spread, so that many
// Networks do not come back at once.
func (r retryTimes) after(err error) (pause time.Duration, again bool) {
	var blocked report.BlockedError
	var failure *neutron.Error
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &blocked) && blocked.Reason == plan.ReasonInvalidSpec:
		return 0, false // nothing but a new spec helps, and that is an event
	case errors.Is(err, neutron.ErrInUse), errors.As(err, &blocked) && blocked.Reason != plan.ReasonNotConverging:
		return wait.Jitter(r.inUse, 0.5), true
	case errors.Is(err, neutron.ErrRefused), errors.As(err, &blocked):
		return wait.Jitter(r.refused, 0.5), true
	case errors.As(err, &failure) && failure.RetryAfter > 0:
		return wait.Jitter(min(failure.RetryAfter, r.refused), 0.1), true
	}
	return 0, true
}
