package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leader returns the holder of the Lease. It fails if there is none, or if it is not
// in one of the pods.
func (c *cluster) leader(ctx context.Context) (identity string, err error) {
	lease, err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, controller, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("the Lease has no holder")
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		if pod.Name == podOf(*lease.Spec.HolderIdentity) {
			return *lease.Spec.HolderIdentity, nil
		}
	}
	return "", fmt.Errorf("the Lease is held by %s, which is not one of the pods", *lease.Spec.HolderIdentity)
}

// podOf returns the pod of an identity.
func podOf(identity string) string {
	name, _, _ := strings.Cut(identity, "_")
	return name
}

// mustLead waits until there is a leader, and returns it and its pod.
func (c *cluster) mustLead(t *testing.T) (identity string, pod *corev1.Pod) {
	t.Helper()
	until(t, 30*time.Second, "there is a leader", func(ctx context.Context) (err error) {
		if identity, err = c.leader(ctx); err == nil {
			pod, err = c.kube.CoreV1().Pods(system).Get(ctx, podOf(identity), metav1.GetOptions{})
		}
		return err
	})
	return identity, pod
}

// anotherLeads waits until another process leads than before.
func (c *cluster) anotherLeads(t *testing.T, before string, limit time.Duration) (identity string) {
	t.Helper()
	until(t, limit, "another process leads than "+before, func(ctx context.Context) (err error) {
		if identity, err = c.leader(ctx); err == nil && identity == before {
			err = errors.New("it still has the Lease")
		}
		return err
	})
	return identity
}

// oneLeads checks that both replicas are ready, and that the Service and the
// PodDisruptionBudget select both.
func (c *cluster) oneLeads(t *testing.T) {
	c.available(t, 2, "")
	first, _ := c.mustLead(t)
	t.Logf("%s leads", first)
	until(t, 30*time.Second, "the Service and the PodDisruptionBudget select both pods", func(ctx context.Context) error {
		budget, err := c.kube.PolicyV1().PodDisruptionBudgets(system).Get(ctx, controller, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if budget.Status.CurrentHealthy != 2 || budget.Status.DisruptionsAllowed != 1 {
			return fmt.Errorf("the PodDisruptionBudget: %+v", budget.Status)
		}
		slices, err := c.kube.DiscoveryV1().EndpointSlices(system).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + controller + "-metrics"})
		if err != nil {
			return err
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != 2 {
			return fmt.Errorf("the Service has %d endpoints that are ready, want 2", ready)
		}
		return nil
	})
	if still, err := c.leader(t.Context()); err != nil || still != first {
		t.Errorf("%s leads (%v), want that %s still leads", still, err, first)
	}
}

// meanwhile is a Network that is created while something else happens.
type meanwhile struct {
	*cluster
	name string
}

func (m meanwhile) apply(t *testing.T) {
	t.Helper()
	m.cluster.apply(t, home, m.name, "10.4.0.0/24", "10.4.0.1")
}

func (m meanwhile) ready(t *testing.T) {
	t.Helper()
	m.cluster.ready(t, home, m.name, "10.4.0.1")
}

// mustSurvive runs something that must not touch the networks in Neutron. Afterwards
// the controller must create and change Networks as before. The Networks stay until
// the end of the test, because a new leader delays deletions for a while.
func (c *cluster) mustSurvive(t *testing.T, o *cloud, what string, run func(meanwhile)) {
	t.Helper()
	first := "before-" + what
	c.apply(t, home, first, "10.5.0.0/24", "10.5.0.1")
	c.ready(t, home, first, "10.5.0.1")
	before := o.mustContent(t)
	another := meanwhile{c, "while-" + what}
	run(another)
	another.ready(t)
	o.wantUntouched(t, before)
	c.apply(t, home, first, "10.5.0.0/24", "10.5.0.2")
	c.ready(t, home, first, "10.5.0.2")
}

// leaderDeleted deletes the pod of the leader, which then shuts down.
func (c *cluster) leaderDeleted(t *testing.T, o *cloud) {
	c.mustSurvive(t, o, "deleted", func(another meanwhile) {
		leader, pod := c.mustLead(t)
		begun := time.Now()
		if err := c.kube.CoreV1().Pods(system).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.anotherLeads(t, leader, 10*time.Second)
		c.timed(t, "kubectl delete pod of the leader, until another one leads", time.Since(begun))
		another.apply(t)
	})
	c.available(t, 2, "")
}

// leaderKilled kills the process of the leader.
func (c *cluster) leaderKilled(t *testing.T, o *cloud) {
	c.needsNode(t, "a process is killed with -9")
	c.mustSurvive(t, o, "killed", func(another meanwhile) {
		leader, pod := c.mustLead(t)
		begun := c.node.killController(t, string(pod.UID))
		another.apply(t)
		next := c.anotherLeads(t, leader, 30*time.Second)
		c.timed(t, "kill -9 of the leader, until another one leads", time.Since(begun))
		another.ready(t)
		c.timed(t, "kill -9 of the leader, until a Network that was created meanwhile is ready", time.Since(begun))
		t.Logf("%s led, and then %s", leader, next)
	})
	c.available(t, 2, "")
}

// withoutStreams makes the controller list objects before it watches them, as it does
// if an API server cannot stream lists in a watch. Only then does it use its right to
// list.
func (c *cluster) withoutStreams(t *testing.T, o *cloud) {
	c.mustSurvive(t, o, "lists", func(another meanwhile) {
		c.kubectl(t, "set", "env", "-n", system, "deployment/"+controller, "KUBE_FEATURE_WatchListClient=false")
		c.available(t, 2, "")
		another.apply(t)
	})
}

// apiServerKilled kills kube-apiserver, which is started again a moment later. The
// replicas keep running.
func (c *cluster) apiServerKilled(t *testing.T, o *cloud) {
	c.needsNode(t, "kube-apiserver is killed with -9")
	c.mustSurvive(t, o, "api-server", func(another meanwhile) {
		before := restarts(c.mustPods(t))
		begun := time.Now()
		started := c.node.kill(t, "kube-apiserver")
		until(t, 30*time.Second, "kube-apiserver is started again", started)
		until(t, 30*time.Second, "kube-apiserver answers", func(ctx context.Context) error {
			_, err := c.kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err
		})
		c.unready = append(c.unready, period{begun, time.Now()})
		another.apply(t)
		another.ready(t)
		c.timed(t, "kill -9 of kube-apiserver, until a Network that was created after it is ready", time.Since(begun))
		c.available(t, 2, "")
		if after := restarts(c.mustPods(t)); after != before {
			t.Errorf("the controller's containers were restarted %d times meanwhile", after-before)
		}
	})
}

func restarts(pods []corev1.Pod) (sum int32) {
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			sum += status.RestartCount
		}
	}
	return sum
}

// nodeKilled kills all processes of the node, like a power failure.
func (c *cluster) nodeKilled(t *testing.T, o *cloud) {
	c.needsNode(t, "kubelet, containerd and all containers are killed with -9")
	c.mustSurvive(t, o, "node", func(another meanwhile) {
		before := map[string]bool{}
		for _, pod := range c.mustPods(t) {
			before[pod.Status.ContainerStatuses[0].ContainerID] = true
		}
		begun := time.Now()
		kubelet := c.node.kill(t, "kubelet")
		containerd := c.node.kill(t, "containerd")
		if count := c.node.killContainers(t); count < 4 {
			t.Errorf("%d processes of containers were killed, want at least two for each of two pods", count)
		}
		until(t, 30*time.Second, "kubelet is started again", kubelet)
		until(t, 30*time.Second, "containerd is started again", containerd)
		another.apply(t)
		until(t, 2*time.Minute, "both pods run new containers", func(ctx context.Context) error {
			pods, err := c.pods(ctx)
			if err != nil {
				return err
			}
			for _, pod := range pods {
				if status := pod.Status.ContainerStatuses[0]; !status.Ready || before[status.ContainerID] {
					return fmt.Errorf("%s: %+v", pod.Name, status.State)
				}
			}
			return nil
		})
		c.available(t, 2, "")
		c.timed(t, "kill -9 of kubelet, containerd and all containers, until both replicas are available", time.Since(begun))
		another.ready(t)
		c.timed(t, "kill -9 of kubelet, containerd and all containers, until a Network that was created meanwhile is ready", time.Since(begun))
	})
}
