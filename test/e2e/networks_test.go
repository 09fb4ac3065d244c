package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// apply applies a Network with kubectl.
func (c *cluster) apply(t *testing.T, namespace, name, cidr, gateway string) {
	t.Helper()
	c.kubectlReads(t, fmt.Sprintf(`{"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": %q}, "spec": {"cidr": %q, "gateway": %q}}`, name, cidr, gateway),
		"apply", "-n", namespace, "-f", "-")
}

// ready waits until a Network is ready with a gateway.
func (c *cluster) ready(t *testing.T, namespace, name, gateway string) (network *samplecrdv1.Network) {
	t.Helper()
	until(t, time.Minute, "the Network "+namespace+"/"+name+" is ready", func(ctx context.Context) (err error) {
		network, err = c.networks.SamplecrdV1().Networks(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		is := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
		if is == nil || is.Status != metav1.ConditionTrue || is.ObservedGeneration != network.Generation || network.Status.Gateway != gateway {
			return fmt.Errorf("generation %d, want gateway %s: %+v", network.Generation, gateway, network.Status)
		}
		return nil
	})
	return network
}

// gone deletes a Network, and waits until it does not exist.
func (c *cluster) gone(t *testing.T, namespace, name string) {
	t.Helper()
	c.kubectl(t, "delete", "network", "-n", namespace, name, "--timeout=60s")
}

// walkthrough creates, edits and deletes a Network as in the README.
func (c *cluster) walkthrough(t *testing.T, namespace string, o *cloud) {
	const name = "example-network"
	example, err := os.ReadFile("example/example-network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	c.kubectlReads(t, string(example), "apply", "-n", namespace, "-f", "-")
	first := c.ready(t, namespace, name, "192.168.0.1")
	c.timed(t, "kubectl apply of a Network until it is ready", time.Since(begun))
	if first.Status.CIDR != "192.168.0.0/16" {
		t.Errorf("the range is %s, want 192.168.0.0/16", first.Status.CIDR)
	}
	c.inNeutron(t, o, first, "192.168.0.1")

	edited := strings.NewReplacer("192.168.0.0/16", "192.168.1.0/16", "192.168.0.1", "192.168.1.1").Replace(string(example))
	c.kubectlReads(t, edited, "apply", "-n", namespace, "-f", "-")
	second := c.ready(t, namespace, name, "192.168.1.1")
	if first.Status.NetworkID != second.Status.NetworkID || first.Status.SubnetID != second.Status.SubnetID {
		t.Errorf("after the edit, it is another network or subnet: %+v, want %+v", second.Status, first.Status)
	}
	c.inNeutron(t, o, second, "192.168.1.1")

	c.gone(t, namespace, name)
	if o != nil {
		if left := o.mustContent(t); left["networks"][first.Status.NetworkID] != nil || left["subnets"][first.Status.SubnetID] != nil {
			t.Error("the network is still in Neutron")
		}
	}
}

// inNeutron checks the network and the subnet of a Network in Neutron. Without a
// cloud, Neutron is embedded in the controller and cannot be read.
func (c *cluster) inNeutron(t *testing.T, o *cloud, network *samplecrdv1.Network, gateway string) {
	t.Helper()
	if o == nil {
		return
	}
	has := o.mustContent(t)
	if got, _ := has["networks"][network.Status.NetworkID].(object); got["name"] != network.Namespace+"/"+network.Name {
		t.Errorf("Neutron has the network %v", got)
	}
	if got, _ := has["subnets"][network.Status.SubnetID].(object); got["cidr"] != "192.168.0.0/16" || got["gateway_ip"] != gateway {
		t.Errorf("Neutron has the subnet %v, want 192.168.0.0/16 with gateway %s", got, gateway)
	}
}

// deploymentGetsNetwork adds the annotations of a Network to a Deployment, changes
// and removes them. If collect is true, it also deletes a Deployment that has them.
func (c *cluster) deploymentGetsNetwork(t *testing.T, namespace string, collect bool) {
	const name = "web"
	annotate := func(annotations ...string) {
		c.kubectl(t, append([]string{"annotate", "--overwrite", "-n", namespace, "deployment", name}, annotations...)...)
	}
	noNetwork := func(limit time.Duration, want string) time.Duration {
		return until(t, limit, want, func(ctx context.Context) error {
			_, err := c.networks.SamplecrdV1().Networks(namespace).Get(ctx, name, metav1.GetOptions{})
			return isGone(err)
		})
	}
	c.kubectl(t, "apply", "-n", namespace, "-f", "example/deployment.yaml")
	c.ready(t, namespace, name, "10.40.0.1")
	annotate("samplecrd.k8s.io/gateway=10.40.0.2")
	c.ready(t, namespace, name, "10.40.0.2")
	annotate("samplecrd.k8s.io/gateway-", "samplecrd.k8s.io/cidr-")
	noNetwork(30*time.Second, "the Network is deleted with the annotation")
	if !collect {
		c.kubectl(t, "delete", "-n", namespace, "deployment", name)
		return
	}
	annotate("samplecrd.k8s.io/gateway=10.40.0.3", "samplecrd.k8s.io/cidr=10.40.0.0/24")
	c.ready(t, namespace, name, "10.40.0.3")
	c.kubectl(t, "delete", "-n", namespace, "deployment", name)
	// The garbage collector discovers a new CustomResourceDefinition after a while.
	c.timed(t, "a Network is deleted with its Deployment (garbage collection)", noNetwork(90*time.Second, "the Network is deleted with the Deployment"))
}

// drift is a change of a network that is made in Neutron, not in Kubernetes.
type drift struct {
	*cluster
	cloud   *cloud
	network *samplecrdv1.Network
	begun   time.Time
}

// begin sets the network of a Network down in Neutron.
func (d *drift) begin(t *testing.T) {
	if d.network == nil {
		d.apply(t, home, "drifting", "10.7.0.0/24", "10.7.0.1")
		d.network = d.ready(t, home, "drifting", "10.7.0.1")
	}
	if err := d.cloud.update(t.Context(), "network", d.network.Status.NetworkID, object{"admin_state_up": false}); err != nil {
		t.Fatalf("setting a network down: %v", err)
	}
	d.begun = time.Now()
}

// repaired waits until the network is up again.
func (d *drift) repaired(t *testing.T) {
	until(t, 45*time.Second, "the network is up again", func(ctx context.Context) error {
		all, err := d.cloud.content(ctx)
		if err != nil {
			return err
		}
		if network, _ := all["networks"][d.network.Status.NetworkID].(object); network["admin_state_up"] != true {
			return fmt.Errorf("after %v, Neutron has %v", time.Since(d.begun).Round(time.Second), network)
		}
		return nil
	})
}

// isRecordedOnce checks that the second of two equal events is omitted.
func (d *drift) isRecordedOnce(t *testing.T) {
	until(t, 10*time.Second, "one event for two equal differences", func(ctx context.Context) error {
		list, err := d.kube.EventsV1().Events(home).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var events []string
		drifted := 0
		for _, event := range list.Items {
			if event.Regarding.UID != d.network.UID {
				continue
			}
			if event.Reason == "Drifted" {
				drifted++
			}
			events = append(events, event.Reason+": "+event.Note)
		}
		if drifted != 1 {
			return fmt.Errorf("%d events are Drifted, want 1: %q", drifted, events)
		}
		return nil
	})
}

// leftAlone checks that the controller ignores a Network in a namespace that it does
// not watch, while another Network becomes ready.
func (c *cluster) leftAlone(t *testing.T, namespace string, o *cloud) {
	c.apply(t, namespace, "unseen", "10.6.0.0/24", "10.6.0.1")
	c.apply(t, "a", "seen", "10.6.0.0/24", "10.6.0.1")
	c.ready(t, "a", "seen", "10.6.0.1")
	network, err := c.networks.SamplecrdV1().Networks(namespace).Get(t.Context(), "unseen", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server itself sets a condition: Pending.
	if is := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); len(network.Finalizers) > 0 || is == nil || is.Reason != "Pending" || network.Status.NetworkID != "" {
		t.Errorf("the controller has changed it: %v %+v", network.Finalizers, network.Status)
	}
	if found := o.mustContent(t).named(namespace + "/unseen"); found != nil {
		t.Errorf("it is in Neutron: %v", found)
	}
	c.gone(t, namespace, "unseen")
}
