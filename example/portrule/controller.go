package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "github.com/samplecrd/network-controller/example/portrule/apis/firewalld/v1"
	applyv1 "github.com/samplecrd/network-controller/example/portrule/client/applyconfiguration/firewalld/v1"
	clientv1 "github.com/samplecrd/network-controller/example/portrule/client/clientset/versioned/typed/firewalld/v1"
)

// Controller makes the firewall of one node match the PortRules that concern the node. Each
// node has one, and none is a leader: no two of them have the same work.
//
// The queue holds one key, the name of the node, because the table of the node is replaced
// as a whole. A thousand events become one sync.
type Controller struct {
	node      string
	client    clientv1.PortRuleInterface
	rules     cache.Store         // the cache of all PortRules
	own       cache.MutationCache // the same, with what this agent has written
	nodes     cache.Store         // the cache of this Node alone
	synced    []cache.DoneChecker
	queue     workqueue.TypedRateLimitingInterface[string]
	firewalls []firewall
}

// firewall is what enforces PortRules on the node.
type firewall interface {
	// Sync reads what is there, and changes it if it is not as desired.
	Sync(ctx context.Context, desired []access) error
	// Watch calls a function after a change that others may have made, until the context or
	// the connection ends.
	Watch(ctx context.Context, changed func()) error
}

// NewController returns a Controller whose handlers wait for the informers' events.
func NewController(
	ctx context.Context, node string, client clientv1.PortRuleInterface, rules, nodes cache.SharedIndexInformer,
	firewalls ...firewall,
) (*Controller, error) {
	c := &Controller{
		node: node, client: client, rules: rules.GetStore(), nodes: nodes.GetStore(), firewalls: firewalls,
		own: cache.NewIntegerResourceVersionMutationCache(klog.FromContext(ctx), rules.GetStore(), nil, time.Minute, false),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "Nodes"}),
	}
	return c, errors.Join(
		addHandlers(c, rules, func(before, after *v1.PortRule) bool { // the agents of other nodes write it, too
			return before.UID != after.UID || before.Generation != after.Generation ||
				!reflect.DeepEqual(c.conditions(before), c.conditions(after))
		}),
		addHandlers(c, nodes, func(before, after *corev1.Node) bool { // a kubelet updates it without end
			return !maps.Equal(before.Labels, after.Labels)
		}))
}

// addHandlers adds the key after each event of an informer. Most updates do not matter.
func addHandlers[T cache.Object](
	c *Controller, informer cache.SharedIndexInformer, matters func(before, after T) bool,
) error {
	handlers := cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc: func(T) { c.enqueue() },
		UpdateFunc: func(before, after T) {
			if matters(before, after) {
				c.enqueue()
			}
		},
		DeleteFunc: func(cache.DeletedObject[T]) { c.enqueue() },
	}
	registration, err := cache.NewTypedSharedIndexInformer[T](informer).AddTypedEventHandler(handlers)
	if err != nil {
		return fmt.Errorf("adding event handlers: %w", err)
	}
	c.synced = append(c.synced, registration.HasSyncedChecker())
	return nil
}

func (c *Controller) enqueue() { c.queue.Add(c.node) }

// Run keeps the firewall as desired until the context ends. Rules stay when it ends, unless
// they are to be removed: a restart must not open a port.
func (c *Controller) Run(ctx context.Context, removeRules bool) error {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the informers' caches to sync")
	// A list that is not complete would remove rules.
	if !cache.WaitFor(ctx, "", c.synced...) {
		return nil
	}
	logger.Info("Starting the worker", "node", c.node)
	var running wait.Group
	running.StartWithContext(context.WithoutCancel(ctx), c.runWorker) // it finishes what it has begun
	for _, f := range c.firewalls {
		running.StartWithContext(ctx, func(ctx context.Context) { wait.UntilWithContext(ctx, c.watcher(f), time.Second) })
	}
	wait.UntilWithContext(ctx, func(context.Context) { c.enqueue() }, resyncPeriod)
	c.queue.ShutDown()
	running.Wait()
	if removeRules {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		logger.Info("Removing the rules of this node")
		return c.sync(ctx, func(*v1.PortRule) bool { return false })
	}
	logger.Info("Stopped; the rules stay")
	return nil
}

// watcher returns a function that watches a firewall as long as that is possible.
func (c *Controller) watcher(f firewall) func(context.Context) {
	return func(ctx context.Context) {
		if err := f.Watch(ctx, c.enqueue); err != nil {
			klog.FromContext(ctx).Error(err, "Watching a firewall again")
		}
	}
}

func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem syncs the node. It returns false when the queue is shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncHandler(ctx, key); err != nil {
		klog.FromContext(ctx).Error(err, "Sync failed; retrying with backoff", "node", key)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// syncHandler makes the firewall of the node as desired. If it is, that costs no request and
// no write: what is actual is on this machine, and is read in each sync.
func (c *Controller) syncHandler(ctx context.Context, key string) error {
	node, exists, err := c.nodes.GetByKey(key)
	if err != nil {
		return err
	}
	if !exists { // without its labels, nobody knows what is desired: keep what is there
		klog.FromContext(ctx).Info("The Node does not exist; the firewall stays as it is", "node", key)
		return nil
	}
	return c.sync(ctx, func(rule *v1.PortRule) bool { return concerns(rule, node.(*corev1.Node).Labels) })
}

// sync applies the rules that a function selects, and reports the outcome.
func (c *Controller) sync(ctx context.Context, selects func(*v1.PortRule) bool) error {
	var rules []*v1.PortRule
	var desired []access
	invalid := map[string]error{}
	for _, key := range slices.Sorted(slices.Values(c.rules.ListKeys())) {
		cached, exists, err := c.own.GetByKey(key) // with the status that this agent wrote last
		if err != nil || !exists {
			continue // deleted since: its key is in the queue
		}
		rule := cached.(*v1.PortRule)
		rules = append(rules, rule)
		if !selects(rule) {
			continue
		}
		if a, err := accessOf(rule); err != nil {
			invalid[key] = err
		} else {
			desired = append(desired, a)
		}
	}
	var failed error
	for _, f := range c.firewalls {
		failed = errors.Join(failed, f.Sync(ctx, desired))
	}
	errs := []error{failed}
	for _, rule := range rules {
		errs = append(errs, c.report(ctx, rule, selects(rule), errors.Join(invalid[rule.Name], failed)))
	}
	return errors.Join(errs...)
}

// report writes the outcome into the entry of this node, if it changes. A rule that does
// not concern the node has no entry, once it is removed.
func (c *Controller) report(ctx context.Context, rule *v1.PortRule, concerned bool, outcome error) error {
	conditions := slices.Clone(c.conditions(rule))
	if !concerned {
		if outcome != nil || conditions == nil {
			return nil //nolint:nilerr // the rules that concern the node report it
		}
		return c.apply(ctx, rule, nil)
	}
	condition := metav1.Condition{
		Type: v1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "Applied",
		Message: "The firewall of the node contains the rule.", ObservedGeneration: rule.Generation,
	}
	if outcome != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", outcome.Error()
	}
	if !apimeta.SetStatusCondition(&conditions, condition) {
		return nil
	}
	condition = conditions[0] // with the time of its last transition
	entry := applyv1.NodeStatus().WithNode(c.node).WithConditions(metav1ac.Condition().
		WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).WithMessage(condition.Message).
		WithObservedGeneration(condition.ObservedGeneration).WithLastTransitionTime(condition.LastTransitionTime))
	return c.apply(ctx, rule, applyv1.PortRuleStatus().WithNodes(entry))
}

// conditions returns what the status of a rule contains about this node.
func (c *Controller) conditions(rule *v1.PortRule) []metav1.Condition {
	for _, entry := range rule.Status.Nodes {
		if entry.Node == c.node {
			return entry.Conditions
		}
	}
	return nil
}

// fieldManager is the name under which the agent of a node writes. What it applied before
// and does not apply again, the API server removes. Entries of others stay.
func fieldManager(node string) string { return "portrule-" + node }

// apply writes the status of this node, or none. The UID keeps it from writing to another
// object of the same name.
func (c *Controller) apply(
	ctx context.Context, rule *v1.PortRule, status *applyv1.PortRuleStatusApplyConfiguration,
) error {
	object := applyv1.PortRule(rule.Name).WithUID(rule.UID)
	object.Status = status
	written, err := c.client.ApplyStatus(ctx, object, metav1.ApplyOptions{FieldManager: fieldManager(c.node), Force: true})
	if apierrors.IsNotFound(err) {
		return nil // deleted since
	}
	if err != nil {
		return fmt.Errorf("writing the status of PortRule %s: %w", rule.Name, err)
	}
	c.own.Mutation(written)
	return nil
}
