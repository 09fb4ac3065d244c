package main

import (
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "github.com/samplecrd/network-controller/example/portrule/v1"
)

// Controller makes the firewall of one node match the PortRules that concern the node. Each
// node has one, and none is a leader: no two of them have the same work.
//
// The queue holds one key, the name of the node, because the table of the node is replaced
// as a whole. A thousand events become one sync.
type Controller struct {
	node      string
	client    rest.Interface // of the API group of PortRules
	rules     cache.Store    // the cache of all PortRules
	own       cache.MutationCache
	nodes     cache.Store // the cache of this Node alone
	synced    []cache.DoneChecker
	queue     workqueue.TypedRateLimitingInterface[string]
	firewalls []firewall
}

// firewall is what enforces PortRules on the node.
type firewall interface {
	// Sync reads what is there, and changes it if it is not as desired.
	Sync(ctx context.Context, desired []access) error
	// Watch calls a function after a change that others may have made, until the context ends.
	Watch(ctx context.Context, changed func())
}

// NewController returns a Controller whose handlers wait for the informers' events.
func NewController(
	ctx context.Context, node string, client rest.Interface, rules, nodes cache.SharedIndexInformer, firewalls ...firewall,
) (*Controller, error) {
	c := &Controller{
		node: node, client: client, rules: rules.GetStore(), nodes: nodes.GetStore(), firewalls: firewalls,
		own: cache.NewIntegerResourceVersionMutationCache(klog.FromContext(ctx), rules.GetStore(), nil, time.Minute, false),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "Nodes"}),
	}
	ruleEvents := cache.TypedResourceEventHandlerFuncs[*v1.PortRule]{
		AddFunc: func(*v1.PortRule) { c.enqueue() },
		UpdateFunc: func(before, after *v1.PortRule) {
			// The agents of other nodes write this object, too.
			if before.UID != after.UID || before.Generation != after.Generation ||
				!reflect.DeepEqual(c.entry(before), c.entry(after)) {
				c.enqueue()
			}
		},
		DeleteFunc: func(cache.DeletedObject[*v1.PortRule]) { c.enqueue() },
	}
	ofRules, err := cache.NewTypedSharedIndexInformer[*v1.PortRule](rules).AddTypedEventHandler(ruleEvents)
	if err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	nodeEvents := cache.TypedResourceEventHandlerFuncs[*corev1.Node]{
		AddFunc: func(*corev1.Node) { c.enqueue() },
		UpdateFunc: func(before, after *corev1.Node) { // a kubelet updates it without end
			if !maps.Equal(before.Labels, after.Labels) {
				c.enqueue()
			}
		},
	}
	ofNode, err := cache.NewTypedSharedIndexInformer[*corev1.Node](nodes).AddTypedEventHandler(nodeEvents)
	if err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	c.synced = []cache.DoneChecker{ofRules.HasSyncedChecker(), ofNode.HasSyncedChecker()}
	return c, nil
}

func (c *Controller) enqueue() { c.queue.Add(c.node) }

// Run keeps the firewall as desired until the context ends. Rules stay when it ends, unless
// they are to be removed: a restart must not open a port.
func (c *Controller) Run(ctx context.Context, resyncPeriod time.Duration, removeRules bool) error {
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
		running.StartWithContext(ctx, func(ctx context.Context) { f.Watch(ctx, c.enqueue) })
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
		switch outcome := errors.Join(invalid[rule.Name], failed); {
		case selects(rule):
			errs = append(errs, c.report(ctx, rule, outcome))
		case outcome == nil && c.entry(rule) != nil:
			errs = append(errs, c.apply(ctx, rule)) // without an entry
		}
	}
	return errors.Join(errs...)
}

// report writes the outcome into the entry of this node, if it changes.
func (c *Controller) report(ctx context.Context, rule *v1.PortRule, outcome error) error {
	condition := metav1.Condition{
		Type: v1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "Applied",
		Message: "The firewall of the node contains the rule.", ObservedGeneration: rule.Generation,
	}
	if outcome != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", outcome.Error()
	}
	entry := v1.NodeStatus{Node: c.node}
	if written := c.entry(rule); written != nil {
		entry.Conditions = slices.Clone(written.Conditions)
	}
	if !apimeta.SetStatusCondition(&entry.Conditions, condition) {
		return nil
	}
	return c.apply(ctx, rule, entry)
}

// entry returns what the status of a rule contains about this node, or nil.
func (c *Controller) entry(rule *v1.PortRule) *v1.NodeStatus {
	i := slices.IndexFunc(rule.Status.Nodes, func(n v1.NodeStatus) bool { return n.Node == c.node })
	if i < 0 {
		return nil
	}
	return &rule.Status.Nodes[i]
}

// fieldManager is the name under which the agent of a node writes. What it applied before
// and does not apply again, the API server removes. Entries of others stay.
func fieldManager(node string) string { return "portrule-" + node }

// apply writes the entries of this node: one, or none.
func (c *Controller) apply(ctx context.Context, rule *v1.PortRule, entries ...v1.NodeStatus) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "PortRule",
		"metadata": map[string]any{"name": rule.Name, "uid": rule.UID},             // of no successor with this name
		"status":   map[string]any{"nodes": append([]v1.NodeStatus{}, entries...)}, // never null
	})
	if err != nil {
		return err
	}
	written := &v1.PortRule{}
	err = c.client.Patch(types.ApplyPatchType).Resource("ports").Name(rule.Name).SubResource("status").
		Param("fieldManager", fieldManager(c.node)).Param("force", "true").Body(body).Do(ctx).Into(written)
	if apierrors.IsNotFound(err) {
		return nil // deleted since
	}
	if err != nil {
		return fmt.Errorf("writing the status of PortRule %s: %w", rule.Name, err)
	}
	c.own.Mutation(written)
	return nil
}
