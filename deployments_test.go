package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/deployments"
)

// newDeploymentHarness returns a harness whose controllers watch Deployments. The
// garbage collector is Kubernetes' own.
func newDeploymentHarness(t *testing.T) *harness {
	h := newHarness(t)
	h.settings.deployments = deployments.Options{Which: deployments.Annotated}
	return h
}

// newDeployment returns a Deployment without replicas.
func newDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
}

// deploy creates a Deployment. It has no replicas.
func (h *harness) deploy(name string, annotations ...string) *appsv1.Deployment {
	h.Helper()
	deployment := newDeployment(name)
	for _, annotation := range annotations {
		key, value, _ := strings.Cut(annotation, "=")
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, samplecrdv1.GroupName+"/"+key, value)
	}
	created, err := h.kube.AppsV1().Deployments(h.namespace).Create(h.Context(), deployment, metav1.CreateOptions{})
	if err != nil {
		h.Fatalf("creating a Deployment: %v", err)
	}
	return created
}

// annotate changes annotations of a Deployment; an annotation without a value is
// removed.
func (h *harness) annotate(name string, annotations ...string) {
	h.Helper()
	change := map[string]any{}
	for _, annotation := range annotations {
		key, value, ok := strings.Cut(annotation, "=")
		change[samplecrdv1.GroupName+"/"+key] = value
		if !ok {
			change[samplecrdv1.GroupName+"/"+key] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": change}})
	if err != nil {
		h.Fatal(err)
	}
	if _, err := h.kube.AppsV1().Deployments(h.namespace).Patch(h.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		h.Fatalf("annotating the Deployment: %v", err)
	}
}

func (h *harness) deleteDeployment(name string, propagation metav1.DeletionPropagation) {
	h.Helper()
	err := h.kube.AppsV1().Deployments(h.namespace).Delete(h.Context(), name, metav1.DeleteOptions{PropagationPolicy: &propagation})
	if err != nil {
		h.Fatalf("deleting the Deployment: %v", err)
	}
}

// waitDeploymentEvent waits for an event about a Deployment.
func (h *harness) waitDeploymentEvent(deployment *appsv1.Deployment, typ, reason, note string) {
	h.Helper()
	h.eventually(func() error {
		all, err := h.kube.EventsV1().Events(h.namespace).List(h.Context(), metav1.ListOptions{FieldSelector: "regarding.uid=" + string(deployment.UID)})
		if err != nil {
			return err
		}
		var found []string
		for _, event := range all.Items {
			found = append(found, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Note))
			if event.Type == typ && event.Reason == reason && strings.Contains(event.Note, note) && event.Regarding.Kind == "Deployment" {
				return nil
			}
		}
		return fmt.Errorf("the Deployment has the events %q, want %s %s: … %q …", found, typ, reason, note)
	})
}

// waitOwned waits until a Network is owned by a Deployment, and has a CIDR.
func (h *harness) waitOwned(deployment *appsv1.Deployment, cidr string) *samplecrdv1.Network {
	h.Helper()
	var network *samplecrdv1.Network
	h.eventually(func() error {
		var err error
		if network, err = h.client.SamplecrdV1().Networks(h.namespace).Get(h.Context(), deployment.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !metav1.IsControlledBy(network, deployment) || network.Spec.CIDR != cidr || network.DeletionTimestamp != nil {
			return fmt.Errorf("the Network is owned by %v and has the CIDR %q", network.OwnerReferences, network.Spec.CIDR)
		}
		return nil
	})
	return network
}

// TestDeploymentNetwork creates, changes and removes the annotations of a
// Deployment; its Network follows.
func TestDeploymentNetwork(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	web := h.deploy("web", "cidr=192.168.0.0/16", "gateway=192.168.0.1")
	network := h.waitOwned(web, "192.168.0.0/16")
	if network.Labels["app.kubernetes.io/managed-by"] != controllerName || network.Labels[samplecrdv1.LabelDeployment] != "web" {
		t.Errorf("the labels are %v", network.Labels)
	}
	h.waitReady("web")
	h.wantNeutron("web", "192.168.0.0/16", "192.168.0.1")
	h.waitDeploymentEvent(web, "Normal", "NetworkCreated", "Created the Network web: 192.168.0.0/16, gateway 192.168.0.1.")

	h.annotate("web", "cidr=192.168.1.0/16", "gateway=192.168.1.1")
	h.waitOwned(web, "192.168.1.0/16")
	h.waitReady("web")
	h.wantNeutron("web", "192.168.0.0/16", "192.168.1.1")
	h.waitDeploymentEvent(web, "Normal", "NetworkUpdated", "192.168.0.0/16, gateway 192.168.0.1 → 192.168.1.0/16, gateway 192.168.1.1")

	h.annotate("web", "cidr", "gateway")
	h.waitGone("web")
	h.wantCounts(0, 0)
	h.waitDeploymentEvent(web, "Normal", "NetworkDeleted", "the Deployment no longer requests it")
}

// TestDeploymentDeleted: the garbage collector deletes the Network.
func TestDeploymentDeleted(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(propagation), func(t *testing.T) {
			h := newDeploymentHarness(t)
			h.startController()
			h.deploy("web", "cidr=10.0.0.0/24")
			h.waitReady("web")
			h.deleteDeployment("web", propagation)
			h.waitGone("web")
			h.wantCounts(0, 0)
		})
	}
}

// TestDeploymentDeletedWithCascadeOrphan: --cascade=orphan keeps the Network. The
// next Deployment with the name owns it, with its Neutron network.
func TestDeploymentDeletedWithCascadeOrphan(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	before := h.waitReady("web")
	h.deleteDeployment("web", metav1.DeletePropagationOrphan)
	h.eventually(func() error {
		_, err := h.kube.AppsV1().Deployments(h.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if network := h.get("web"); len(network.OwnerReferences) > 0 || !apierrors.IsNotFound(err) {
			return fmt.Errorf("the owners are %v, the Deployment: %w", network.OwnerReferences, err)
		}
		return nil
	})
	again := h.deploy("web", "cidr=10.0.0.0/24", "gateway=10.0.0.9")
	h.waitOwned(again, "10.0.0.0/24")
	h.waitReady("web")
	h.wantNeutron("web", "10.0.0.0/24", "10.0.0.9")
	if after := h.get("web"); after.UID != before.UID || after.Status.NetworkID != before.Status.NetworkID {
		t.Errorf("the Network was %s with %s, and is %s with %s", before.UID, before.Status.NetworkID, after.UID, after.Status.NetworkID)
	}
}

// TestDeploymentRecreated: a Deployment is deleted and created again before the
// garbage collector deletes its Network.
func TestDeploymentRecreated(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	first := h.waitReady("web")
	h.deleteDeployment("web", metav1.DeletePropagationBackground)
	again := h.deploy("web", "cidr=10.0.1.0/24")
	second := h.waitOwned(again, "10.0.1.0/24")
	h.waitReady("web")
	h.wantNeutron("web", "10.0.1.0/24", "10.0.1.1")
	h.wantCounts(1, 1)
	if first.UID == second.UID {
		t.Error("the Network of the first Deployment was kept")
	}
}

// TestDeploymentNetworkEdited: changes that users make to a Deployment's Network
// are reverted, and the Network is created again after a user deletes it.
func TestDeploymentNetworkEdited(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.waitReady("web")
	for _, patch := range []string{
		`{"spec":{"gateway":"10.0.0.77"}}`,
		`{"spec":{"dnsNameservers":["9.9.9.9"]}}`,
		`{"spec":{"cidr":"10.9.0.0/24"}}`,
		`{"metadata":{"labels":null}}`,
		`{"metadata":{"labels":{"samplecrd.k8s.io/source":"me"}}}`,
	} {
		h.patch("web", patch)
		h.eventually(func() error {
			network := h.get("web")
			if got := network.Spec; got.CIDR != "10.0.0.0/24" || got.Gateway != "" || got.DNSNameservers != nil || network.Labels[samplecrdv1.LabelSource] != "annotation" {
				return fmt.Errorf("after %s: %+v, %v", patch, got, network.Labels)
			}
			return h.hasReady("web")
		})
	}
	h.waitEvent("web", "UpdatedForDeployment", "Changed the spec to what the Deployment web requests: 10.9.0.0/24 → 10.0.0.0/24.")
	before := h.get("web")
	h.delete("web")
	h.eventually(func() error {
		if network := h.waitOwned(web, "10.0.0.0/24"); network.UID == before.UID {
			return fmt.Errorf("the Network is still %s", network.UID)
		}
		return nil
	})
	h.waitReady("web")
	h.wantNeutron("web", "10.0.0.0/24", "10.0.0.1")
	h.wantCounts(1, 1)
}

// TestDeploymentAndUnrelatedNetwork: a Network that was not created for a
// Deployment is not changed, and an event reports it.
func TestDeploymentAndUnrelatedNetwork(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	h.create("web", "10.7.0.0/24", "")
	before := h.waitReady("web")
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.waitDeploymentEvent(web, "Warning", "NetworkNotMade", "was not created for this Deployment and is left unchanged")
	h.annotate("web", "cidr")
	h.deploy("marker", "cidr=10.0.1.0/24")
	h.waitReady("marker")
	if after := h.get("web"); after.Generation != before.Generation || len(after.OwnerReferences) > 0 || len(after.Labels) > 0 {
		t.Errorf("the Network was %+v, and is %+v", before, after)
	}
	h.annotate("web", "cidr=10.0.0.0/24")
	h.delete("web") // so that the Deployment's Network can be created
	h.waitOwned(web, "10.0.0.0/24")
	h.waitReady("web")
	h.wantNeutron("web", "10.0.0.0/24", "10.0.0.1")
}

// TestInvalidAnnotation: an event reports an invalid annotation, and nothing else
// happens until the annotation is corrected.
func TestInvalidAnnotation(t *testing.T) {
	h := newDeploymentHarness(t)
	stop := h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/33")
	h.waitDeploymentEvent(web, "Warning", "NetworkNotMade", `samplecrd.k8s.io/cidr "10.0.0.0/33" is not a range`)
	h.annotate("web", "cidr=10.0.0.0/24")
	h.waitReady("web")
	// An existing Network is not changed when the annotation becomes invalid.
	h.annotate("web", "gateway=10.0.9.9")
	h.waitDeploymentEvent(web, "Warning", "NetworkNotMade", "samplecrd.k8s.io/gateway 10.0.9.9 is not inside samplecrd.k8s.io/cidr")
	h.wantNeutron("web", "10.0.0.0/24", "10.0.0.1")
	stop()
	h.forgetRequests()
	h.startController()
	h.deploy("marker", "cidr=10.0.1.0/24")
	h.waitReady("marker")
	h.wantNeutron("web", "10.0.0.0/24", "10.0.0.1")
	h.wantNoWritesTo("/web")
}

// TestDeploymentsChangedWhileStopped: a controller that starts applies the changes
// since the last one stopped.
func TestDeploymentsChangedWhileStopped(t *testing.T) {
	h := newDeploymentHarness(t)
	stop := h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	h.deploy("api", "cidr=10.0.1.0/24")
	h.waitReady("web")
	h.waitReady("api")
	stop()
	h.annotate("web", "cidr")
	h.annotate("api", "gateway=10.0.1.9")
	late := h.deploy("late", "cidr=10.0.2.0/24")
	h.startController()
	h.waitGone("web")
	h.waitOwned(late, "10.0.2.0/24")
	h.waitReady("late")
	h.waitReady("api")
	h.wantNeutron("api", "10.0.1.0/24", "10.0.1.9")
	h.wantCounts(2, 2)
}

// TestAllDeployments: with -deployment-networks=all, each Deployment gets a
// Network from the subnet pool unless an annotation declines it. A change of the
// flags deletes no Network.
func TestAllDeployments(t *testing.T) {
	h := newDeploymentHarness(t)
	h.settings.deployments = deployments.Options{Which: deployments.All, DefaultSubnetPool: "campus"}
	h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.77.0.0/16"],"default_prefixlen":24}}`)
	stop := h.startController()
	h.deploy("web")
	h.deploy("declines", "network=none")
	h.deploy("own", "cidr=10.0.0.0/24")
	network := h.waitReady("web")
	if !strings.HasPrefix(network.Status.CIDR, "10.77.") || !strings.HasPrefix(network.Status.Gateway, "10.77.") || network.Status.SubnetPool == nil || network.Status.SubnetPool.Name != "campus" {
		t.Errorf("the status is %+v", network.Status)
	}
	h.waitReady("own")
	h.wantCounts(2, 2)
	stop()

	h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"other","prefixes":["10.88.0.0/16"],"default_prefixlen":24}}`)
	h.settings.deployments.DefaultSubnetPool = "other"
	stop = h.startController()
	h.deploy("late")
	if late := h.waitReady("late"); !strings.HasPrefix(late.Status.CIDR, "10.88.") {
		t.Errorf("the status is %+v", late.Status)
	}
	if after := h.get("web"); after.Status.SubnetID != network.Status.SubnetID {
		t.Errorf("the other default subnet pool replaced the subnet %s by %s", network.Status.SubnetID, after.Status.SubnetID)
	}
	h.deleteDeployment("late", metav1.DeletePropagationBackground)
	h.waitGone("late")
	stop()

	h.settings.deployments = deployments.Options{Which: deployments.Annotated}
	stop = h.startController()
	h.deploy("marker", "cidr=10.0.1.0/24")
	h.waitReady("marker")
	h.wantCounts(3, 3)
	h.annotate("web", "network=none")
	h.waitGone("web")
	stop()

	h.settings.deployments.ExcludedNamespaces = []string{"other", h.namespace}
	h.startController()
	h.annotate("own", "cidr")
	h.deploy("later", "cidr=10.0.2.0/24")
	h.create("by-hand", "10.0.3.0/24", "")
	h.waitReady("by-hand")
	h.wantCounts(3, 3) // own, marker, by-hand
}

// TestDeploymentNetworkRetained: the controller does not revert the deletion
// policy that a user sets, and applies it.
func TestDeploymentNetworkRetained(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	h.waitReady("web")
	h.patch("web", `{"spec":{"deletionPolicy":"Retain"}}`)
	h.annotate("web", "gateway=10.0.0.9")
	h.eventually(func() error { return h.hasGateway("web", "10.0.0.9") })
	h.deleteDeployment("web", metav1.DeletePropagationBackground)
	h.waitGone("web")
	h.wantCounts(1, 1)
}

func (h *harness) hasGateway(name, gateway string) error {
	if got := h.get(name).Status.Gateway; got != gateway {
		return fmt.Errorf("the gateway is %s, want %s", got, gateway)
	}
	return h.hasReady(name)
}

// TestDeploymentsForbidden: without permission to watch Deployments, Networks are
// reconciled.
func TestDeploymentsForbidden(t *testing.T) {
	h := newDeploymentHarness(t)
	h.failRequests(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/deployments") })
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
}

// TestDeploymentNetworkUpdateFails: while the Network of a Deployment cannot be
// updated, its existing spec is reconciled.
func TestDeploymentNetworkUpdateFails(t *testing.T) {
	h := newDeploymentHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.failRequests(func(r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/networks/web") {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return bytes.Contains(body, []byte(`"spec"`))
	})
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	network := h.waitReady("web")
	h.annotate("web", "gateway=10.0.0.9")
	h.do(http.MethodDelete, "/v2.0/subnets/"+network.Status.SubnetID, "", nil)
	h.eventually(func() error { return h.hasCounts(1, 1) })
}

// TestDeploymentMutatingWebhook: a webhook changes the spec of a Deployment's
// Network. An event reports it, and the Network is reconciled as it is.
func TestDeploymentMutatingWebhook(t *testing.T) {
	h := newDeploymentHarness(t)
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if (r.Method == http.MethodPost || r.Method == http.MethodPatch) && strings.Contains(r.URL.Path, "/networks") {
				body, _ := io.ReadAll(r.Body)
				text := strings.NewReplacer(`"spec":{"cidr":`, `"spec":{"mtu":1400,"cidr":`, `"spec":{"mtu":null}`, `"spec":{"mtu":1400}`).Replace(string(body))
				r = r.Clone(r.Context())
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.waitDeploymentEvent(web, "Warning", "NetworkNotMade", "check for a mutating admission webhook")
	h.waitReady("web")
}

// TestDeploymentsInTwoNamespaces: two Deployments with the same name have separate
// Networks.
func TestDeploymentsInTwoNamespaces(t *testing.T) {
	h := newDeploymentHarness(t)
	other := h.beside()
	h.startController()
	other.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	other.deploy("web", "cidr=10.0.0.0/24")
	h.waitReady("web")
	other.waitReady("web")
	h.wantCounts(2, 2)
	h.deleteDeployment("web", metav1.DeletePropagationBackground)
	h.waitGone("web")
	if network := other.get("web"); network.DeletionTimestamp != nil {
		t.Error("the other namespace's Network is being deleted, too")
	}
	h.wantCounts(1, 1)
}

// TestExcludedNamespaces: -exclude-deployment-namespaces ignores the Deployments of
// a namespace, and no others.
func TestExcludedNamespaces(t *testing.T) {
	h := newHarness(t)
	excluded := h.beside()
	excluded.deploy("web", "cidr=10.0.1.0/24")
	web := h.deploy("web", "cidr=10.0.0.0/24")
	startProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster, "-workers=1",
		"-namespaces="+h.namespace+","+excluded.namespace, "-exclude-deployment-namespaces="+excluded.namespace)
	h.waitOwned(web, "10.0.0.0/24")
	excluded.annotate("web", "cidr=10.0.2.0/24")
	excluded.create("marker", "10.0.3.0/24", "")
	excluded.waitReady("marker")
	h.waitReady("web")
	if _, err := h.client.SamplecrdV1().Networks(excluded.namespace).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment of an excluded namespace has a Network (%v)", err)
	}
}

// TestDeploymentNetworkUpdateIsAPatch: the controller sends only what it changes, so
// that fields which it does not know are kept, and only to the version that it read.
func TestDeploymentNetworkUpdateIsAPatch(t *testing.T) {
	h := newDeploymentHarness(t)
	sent := make(chan string, 100)
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if (r.Method == http.MethodPatch || r.Method == http.MethodPut) && strings.HasSuffix(r.URL.Path, "/networks/web") {
				body, _ := io.ReadAll(r.Body)
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(bytes.NewReader(body))
				sent <- r.Method + " " + string(body)
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/24")
	network := h.waitReady("web")
	h.patch("web", `{"metadata":{"labels":{"mine":"yes"},"annotations":{"mine":"yes"}},"spec":{"mtu":1400,"deletionPolicy":"Retain"}}`)
	h.eventually(func() error {
		if after := h.get("web"); after.Spec.MTU != nil {
			return fmt.Errorf("the MTU is %d", *after.Spec.MTU)
		}
		return h.hasReady("web")
	})
	if after := h.get("web"); after.Labels["mine"] != "yes" || after.Annotations["mine"] != "yes" || after.Spec.DeletionPolicy != samplecrdv1.DeletionPolicyRetain {
		t.Errorf("the Network is %+v", after)
	}
	h.waitDeploymentEvent(web, "Normal", "NetworkUpdated", "Updated the Network web: removed mtu.")
	var updates []string
	for len(sent) > 0 {
		if update := <-sent; !strings.Contains(update, "finalizers") {
			updates = append(updates, update)
		}
	}
	want := regexp.MustCompile(`^PATCH {"metadata":{"resourceVersion":"[0-9]+","uid":"` + string(network.UID) + `"},"spec":{"mtu":null}}$`)
	if len(updates) == 0 || slices.ContainsFunc(updates, func(update string) bool { return !want.MatchString(update) }) {
		t.Errorf("the requests are %q, want only %s", updates, want)
	}
}
