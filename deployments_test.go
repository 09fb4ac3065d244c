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
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// The tests of this file have Deployments with the garbage collector of Kubernetes, or with
// faults. What a user sees is in test/stories/deployments.txtar.

// newDeploymentHarness returns a harness whose controllers watch Deployments. The
// garbage collector is Kubernetes' own.
func newDeploymentHarness(t *testing.T) *harness {
	h := newHarness(t)
	h.flags("-deployment-networks=annotated")
	return h
}

// deploymentObjects returns the client for the Deployments of the test.
func (h *harness) deploymentObjects() typedappsv1.DeploymentInterface {
	return h.kube.AppsV1().Deployments(h.namespace)
}

// deploy creates a Deployment. It has no replicas.
func (h *harness) deploy(name string, annotations ...string) *appsv1.Deployment {
	h.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
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
	for _, annotation := range annotations {
		key, value, _ := strings.Cut(annotation, "=")
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, samplecrdv1.GroupName+"/"+key, value)
	}
	created, err := h.deploymentObjects().Create(h.Context(), deployment, metav1.CreateOptions{})
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
	merge, options := types.MergePatchType, metav1.PatchOptions{}
	if _, err := h.deploymentObjects().Patch(h.Context(), name, merge, patch, options); err != nil {
		h.Fatalf("annotating the Deployment: %v", err)
	}
}

// waitDeploymentEvent waits for an event about a Deployment.
func (h *harness) waitDeploymentEvent(deployment *appsv1.Deployment, typ, reason, note string) {
	h.Helper()
	h.eventually(func() error {
		selected := metav1.ListOptions{FieldSelector: "regarding.uid=" + string(deployment.UID)}
		all, err := h.kube.EventsV1().Events(h.namespace).List(h.Context(), selected)
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
func (h *harness) waitOwned(deployment *appsv1.Deployment, cidr string) {
	h.Helper()
	h.eventually(func() error {
		network, err := h.objects().Get(h.Context(), deployment.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !metav1.IsControlledBy(network, deployment) || network.Spec.CIDR != cidr || network.DeletionTimestamp != nil {
			return fmt.Errorf("the Network is owned by %v and has the CIDR %q", network.OwnerReferences, network.Spec.CIDR)
		}
		return nil
	})
}

// TestDeploymentDeleted: the garbage collector deletes the Network.
func TestDeploymentDeleted(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{"Background", "Foreground"} {
		t.Run(string(propagation), func(t *testing.T) {
			h := newDeploymentHarness(t)
			h.startController()
			h.deploy("web", "cidr=10.0.0.0/24")
			h.waitReady("web")
			options := metav1.DeleteOptions{PropagationPolicy: &propagation}
			h.want(h.deploymentObjects().Delete(t.Context(), "web", options))
			h.waitGone("web")
			h.want(h.hasCounts(0, 0))
		})
	}
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

// TestExcludedNamespaces: -exclude-deployment-namespaces ignores the Deployments of
// a namespace, and no others.
func TestExcludedNamespaces(t *testing.T) {
	h := newHarness(t)
	excluded := h.beside()
	excluded.deploy("web", "cidr=10.0.1.0/24")
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.startProgram("-workers=1", "-namespaces="+h.namespace+","+excluded.namespace,
		"-exclude-deployment-namespaces="+excluded.namespace)
	h.waitOwned(web, "10.0.0.0/24")
	excluded.annotate("web", "cidr=10.0.2.0/24")
	excluded.create("marker", "10.0.3.0/24", "")
	excluded.waitReady("marker")
	h.waitReady("web")
	if _, err := excluded.objects().Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment of an excluded namespace has a Network (%v)", err)
	}
}

// TestDeploymentNetworkUpdateIsAPatch: the controller sends only what it changes, so
// that fields which it does not know are kept, and only to the version that it read.
func TestDeploymentNetworkUpdateIsAPatch(t *testing.T) {
	h := newDeploymentHarness(t)
	sent := make(chan string, 100)
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if (r.Method == http.MethodPatch || r.Method == http.MethodPut) && strings.HasSuffix(r.URL.Path, "/networks/web") {
			body, _ := io.ReadAll(r.Body)
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			sent <- r.Method + " " + string(body)
		}
		return next.RoundTrip(r)
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

// TestDeploymentMutatingWebhook: a webhook changes the spec of a Deployment's
// Network. An event reports it, and the Network is reconciled as it is.
func TestDeploymentMutatingWebhook(t *testing.T) {
	h := newDeploymentHarness(t)
	change := strings.NewReplacer(
		`"spec":{"cidr":`, `"spec":{"mtu":1400,"cidr":`, `"spec":{"mtu":null}`, `"spec":{"mtu":1400}`)
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if (r.Method == http.MethodPost || r.Method == http.MethodPatch) && strings.Contains(r.URL.Path, "/networks") {
			body, _ := io.ReadAll(r.Body)
			text := change.Replace(string(body))
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
		return next.RoundTrip(r)
	}
	h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.waitDeploymentEvent(web, "Warning", "NetworkNotMade", "check for a mutating admission webhook")
	h.waitReady("web")
}
