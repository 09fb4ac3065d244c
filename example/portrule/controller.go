package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "github.com/samplecrd/network-controller/example/portrule/apis/firewalld/v1"
	applyv1 "github.com/samplecrd/network-controller/example/portrule/client/applyconfiguration/firewalld/v1"
	clientset "github.com/samplecrd/network-controller/example/portrule/client/clientset/versioned"
	informersv1 "github.com/samplecrd/network-controller/example/portrule/client/informers/externalversions/firewalld/v1"
	"github.com/samplecrd/network-controller/pkg/glass"
)

// Controller makes the firewall of one node match the PortRules that concern the node. Each
// node has one, and none is a leader: no two of them have the same work.
//
// The queue holds one key, the name of the node, because the table of the node is replaced
// as a whole. A thousand events become one sync.
type Controller struct {
	options
	client clientset.Interface
	rules  cache.SharedIndexInformer // of all PortRules
	own    cache.MutationCache       // its cache, with what this agent has written
	nodes  cache.SharedIndexInformer // of this Node alone
	queue  workqueue.TypedRateLimitingInterface[string]
	shown  *glass.Controller // shows the queue on the debug page
}

// NewController returns a Controller with its informers, which Run runs.
func NewController(ctx context.Context, config *rest.Config, o options) (*Controller, error) {
	config.QPS, config.UserAgent = -1, "portrule" // the API server has its own limits
	client, err := clientset.NewForConfig(config)
	kube, failed := kubernetes.NewForConfig(config)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	rules := informersv1.NewPortRuleInformer(client, 0, cache.Indexers{})
	nodes := coreinformers.NewFilteredNodeInformer(kube, 0, cache.Indexers{}, func(list *metav1.ListOptions) {
		list.FieldSelector = "metadata.name=" + o.node
	})
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Minute)
	named := workqueue.TypedRateLimitingQueueConfig[string]{Name: "Nodes"}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(backoff, named)
	shown := o.page.Controller(glass.Config{Name: named.Name, Resource: "nodes"})
	c := &Controller{
		options: o, client: client, rules: rules, nodes: nodes, queue: glass.Queue(shown, queue, backoff), shown: shown,
		own: cache.NewIntegerResourceVersionMutationCache(klog.FromContext(ctx), rules.GetStore(), nil, time.Minute, false),
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.enqueue() },
		UpdateFunc: func(before, after any) {
			if !reflect.DeepEqual(c.relevant(before), c.relevant(after)) {
				c.enqueue()
			}
		},
		DeleteFunc: func(any) { c.enqueue() },
	}
	_, err = o.page.Informer("ports", rules).AddEventHandler(handler)
	_, failed = o.page.Informer("nodes", nodes).AddEventHandler(handler)
	return c, errors.Join(err, failed)
}

func (c *Controller) enqueue() { c.queue.Add(c.node) }

// relevant returns what matters of an object. Most updates do not: a kubelet updates its
// Node without end, and the agents of other nodes write the status of a PortRule, too.
func (c *Controller) relevant(object any) any {
	if node, ok := object.(*corev1.Node); ok {
		return node.Labels
	}
	rule := object.(*v1.PortRule)
	return []any{rule.UID, rule.Generation, c.conditions(rule)}
}

// Run keeps the firewall as desired until the context ends. Rules stay when it ends, unless
// they are to be removed: a restart must not open a port.
func (c *Controller) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	var running wait.Group
	running.StartWithContext(ctx, c.rules.RunWithContext)
	running.StartWithContext(ctx, c.nodes.RunWithContext)
	logger.Info("Waiting for the informers' caches to sync")
	// A list that is not complete would remove rules.
	if !cache.WaitFor(ctx, "", c.rules.HasSyncedChecker(), c.nodes.HasSyncedChecker()) {
		return nil
	}
	logger.Info("Starting the worker", "node", c.node)
	running.StartWithContext(context.WithoutCancel(ctx), c.runWorker) // it finishes what it has begun
	running.StartWithContext(ctx, func(ctx context.Context) { wait.UntilWithContext(ctx, c.watchFirewalls, time.Second) })
	wait.UntilWithContext(ctx, func(context.Context) { c.enqueue() }, resyncPeriod)
	c.queue.ShutDown()
	running.Wait()
	if !c.removeRules {
		return nil
	}
	logger.Info("Removing the rules of this node")
	removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return c.sync(removing, func(*v1.PortRule) bool { return false })
}

// watchFirewalls notices changes of others, as long as that is possible.
func (c *Controller) watchFirewalls(ctx context.Context) {
	if err := c.watch(ctx, c.enqueue); err != nil {
		klog.FromContext(ctx).Error(err, "Watching the firewalls again")
	}
}

// runWorker syncs the node until the queue is shut down.
func (c *Controller) runWorker(ctx context.Context) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		syncing, end := c.shown.Sync(ctx, key)
		err := c.syncHandler(syncing, key)
		if end(err); err != nil {
			klog.FromContext(ctx).Error(err, "Sync failed; retrying with backoff", "node", key)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// syncHandler makes the firewall of the node as desired. If it is, that costs no request and
// no write: what is actual is on this machine, and is read in each sync.
func (c *Controller) syncHandler(ctx context.Context, key string) error {
	node, exists, err := c.nodes.GetStore().GetByKey(key)
	if err != nil || !exists { // without its labels, nobody knows what is desired: keep what is there
		klog.FromContext(ctx).Info("The Node does not exist; the firewall stays as it is", "node", key)
		return err
	}
	return c.sync(ctx, func(rule *v1.PortRule) bool {
		selector := labels.SelectorFromSet(rule.Spec.NodeSelector)
		return rule.DeletionTimestamp.IsZero() && selector.Matches(labels.Set(node.(*corev1.Node).Labels))
	})
}

// sync applies the rules that a function selects, and reports the outcome.
func (c *Controller) sync(ctx context.Context, selects func(*v1.PortRule) bool) error {
	var rules []*v1.PortRule
	var desired []access
	invalid := map[string]error{}
	for _, key := range slices.Sorted(slices.Values(c.rules.GetStore().ListKeys())) {
		cached, exists, err := c.own.GetByKey(key) // with the status that this agent wrote last
		if err != nil || !exists {
			continue // deleted since: its key is in the queue
		}
		rule := cached.(*v1.PortRule)
		rules = append(rules, rule)
		if selects(rule) {
			all, err := accessesOf(rule)
			desired, invalid[key] = append(desired, all...), err
		}
	}
	var failed error
	for _, apply := range c.firewalls {
		failed = errors.Join(failed, apply(ctx, desired))
	}
	errs := []error{failed}
	for _, rule := range rules {
		errs = append(errs, c.report(ctx, rule, selects(rule), errors.Join(invalid[rule.Name], failed)))
	}
	return errors.Join(errs...)
}

// report writes the outcome into the entry of this node, if it changes. A rule that does not
// concern the node has no entry, once it is removed. The UID keeps it from writing to another
// object of the same name.
func (c *Controller) report(ctx context.Context, rule *v1.PortRule, concerned bool, outcome error) error {
	object, conditions := applyv1.PortRule(rule.Name).WithUID(rule.UID), slices.Clone(c.conditions(rule))
	if concerned {
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
		object.WithStatus(applyv1.PortRuleStatus().WithNodes(applyv1.NodeStatus().WithNode(c.node).WithConditions(
			metav1ac.Condition().WithType(condition.Type).WithStatus(condition.Status).
				WithReason(condition.Reason).WithMessage(condition.Message).
				WithObservedGeneration(condition.ObservedGeneration).WithLastTransitionTime(condition.LastTransitionTime))))
	} else if outcome != nil || conditions == nil {
		return nil //nolint:nilerr // the rules that concern the node report it
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager(c.node), Force: true}
	written, err := c.client.FirewalldV1().PortRules().ApplyStatus(ctx, object, options)
	if apierrors.IsNotFound(err) {
		return nil // deleted since
	}
	if err != nil {
		return fmt.Errorf("writing the status of PortRule %s: %w", rule.Name, err)
	}
	c.own.Mutation(written)
	return nil
}

// conditions returns what the status of a rule contains about this node.
func (c *Controller) conditions(rule *v1.PortRule) []metav1.Condition {
	isOwn := func(entry v1.NodeStatus) bool { return entry.Node == c.node }
	if i := slices.IndexFunc(rule.Status.Nodes, isOwn); i >= 0 {
		return rule.Status.Nodes[i].Conditions
	}
	return nil
}

// fieldManager is the name under which the agent of a node writes. What it applied before
// and does not apply again, the API server removes. Entries of others stay.
func fieldManager(node string) string { return "portrule-" + node }
