package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/kube"
)

const crdName = "networks.samplecrd.k8s.io"

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// TestCRDDeletion: whatever deletes the CustomResourceDefinition is denied, until the
// command in the message permits it.
func TestCRDDeletion(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	client := metadata.NewForConfigOrDie(own.RESTConfig()).Resource(definitions)
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}

	var message string
	(&harness{T: t}).eventually(func() error { // the API server enforces a new policy after a moment
		err := client.Delete(t.Context(), crdName, dryRun)
		if err == nil {
			return errors.New("the deletion is permitted")
		}
		message = err.Error()
		return nil
	})
	for _, part := range []string{"every Network", "networks in Neutron", "set deletionPolicy: Retain on each Network"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message is %q, want %q in it", message, part)
		}
	}
	const denied = "deleting this CustomResourceDefinition deletes every Network"
	err := client.DeleteCollection(t.Context(), dryRun, metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), denied) {
		t.Errorf("deleting all CustomResourceDefinitions: %v, want %q", err, denied)
	}
	output, err := own.Kubectl(t.Context(), "delete", "-f", "crd/", "--dry-run=server")
	if err == nil || !strings.Contains(fmt.Sprint(string(output), err), denied) {
		t.Errorf("kubectl delete -f crd/: %v, want %q\n%s", err, denied, output)
	}

	kubectl(t, own, "apply", "-f", "test/bench/crd")
	kubectl(t, own, "delete", "-f", "test/bench/crd") // other CustomResourceDefinitions

	command := regexp.MustCompile(`run kubectl (annotate crd .*)$`).FindStringSubmatch(message)
	if command == nil {
		t.Fatalf("the message is %q, want a command at its end", message)
	}
	kubectl(t, own, strings.Fields(command[1])...)
	kubectl(t, own, "delete", "-f", "crd/")
	kubectl(t, own, "apply", "-f", "crd/")
}

// TestCRDIsNotPruned: Flux and Argo CD do not delete what is in crd/, when it is no
// longer among what they apply, or when they delete the rest.
func TestCRDIsNotPruned(t *testing.T) {
	t.Parallel()
	client := metadata.NewForConfigOrDie(cluster.RESTConfig())
	const policy = "samplecrd-crd-deletion"
	policies := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	for resource, name := range map[schema.GroupVersionResource]string{
		definitions: crdName,
		policies.WithResource("validatingadmissionpolicies"):       policy,
		policies.WithResource("validatingadmissionpolicybindings"): policy,
	} {
		object, err := client.Resource(resource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{
			"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
			"kustomize.toolkit.fluxcd.io/prune": "disabled",
		} {
			if got := object.Annotations[key]; got != want {
				t.Errorf("%s has %s=%q, want %q", name, key, got, want)
			}
		}
	}
}

// TestCRDGuard: without the policy, the CustomResourceDefinition is deleted with a
// Network that has a finalizer. The controller notices, also that it is permitted.
func TestCRDGuard(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	h := &harness{T: t}
	guard := kube.NewCRDGuard(metadata.NewForConfigOrDie(own.RESTConfig()), crdName, samplecrdv1.AnnotationAllowDeletion)
	want := func(when string, want bool) {
		t.Helper()
		if got, err := guard.BeingDeleted(t.Context()); err != nil || got != want {
			t.Errorf("%s, BeingDeleted() = %v, %v, want %v", when, got, err, want)
		}
	}
	kubectl(t, own, "apply", "-f", "example/example-network.yaml")
	setFinalizers := func(finalizers string) {
		t.Helper()
		patch := `{"metadata":{"finalizers":` + finalizers + `}}`
		kubectl(t, own, "patch", "network", "example-network", "--type=merge", "-p", patch)
	}
	setFinalizers(`["` + samplecrdv1.Finalizer + `"]`)
	want("before", false)
	kubectl(t, own, "delete", "-f", "crd/protection.yaml")
	h.eventually(func() error { // the API server forgets a policy after a moment
		output, err := own.Kubectl(t.Context(), "delete", "crd", crdName, "--wait=false")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		return nil
	})
	want("while it is being deleted", true)
	kubectl(t, own, "annotate", "crd", crdName, samplecrdv1.AnnotationAllowDeletion+"=true")
	want("once it is permitted", false)
	setFinalizers("null")
	kubectl(t, own, "wait", "--for=delete", "crd/"+crdName, "--timeout=60s")
	want("afterwards", true)
}

// TestRightsForCRD: each overlay permits the controller to read this
// CustomResourceDefinition, and nothing else of any.
func TestRightsForCRD(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	reviews := kubernetes.NewForConfigOrDie(own.RESTConfig()).AuthorizationV1().SubjectAccessReviews()
	may := func(verb, name string) bool {
		t.Helper()
		of := authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:samplecrd-system:" + controllerName,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: definitions.Group, Resource: definitions.Resource, Name: name,
			},
		}
		review, err := reviews.Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: of}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	for _, overlay := range []string{"namespaces", "openstack", "embedded"} { // the first one has the fewest rights
		kubectl(t, own, "apply", "-k", "deploy/overlays/"+overlay)
		(&harness{T: t}).eventually(func() error {
			if !may("get", crdName) {
				return errors.New("the controller may not read it")
			}
			return nil
		})
		for _, verb := range []string{"list", "watch", "create", "update", "patch", "delete"} {
			if may(verb, crdName) {
				t.Errorf("with the overlay %s, the controller may %s it", overlay, verb)
			}
		}
		if may("get", "others.example.org") {
			t.Errorf("with the overlay %s, the controller may read others", overlay)
		}
	}
}

// TestCRDInstalledAgain: a controller whose CustomResourceDefinition is deleted logs once
// what to do, and continues when it is installed again.
func TestCRDInstalledAgain(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	p := startProgram(t, "-kubeconfig="+own.Kubeconfig())
	p.waitFor(t, "Starting workers")
	kubectl(t, own, "annotate", "crd", crdName, samplecrdv1.AnnotationAllowDeletion+"=true")
	kubectl(t, own, "delete", "-f", "crd/")
	const missing = "is not installed: run kubectl apply -f crd/"
	p.waitFor(t, missing)
	kubectl(t, own, "apply", "-f", "crd/")
	kubectl(t, own, "wait", "--for=condition=Established", "crd/"+crdName)
	kubectl(t, own, "apply", "-f", "example/example-network.yaml")
	kubectl(t, own, "wait", "--for=condition=Ready", "network/example-network", "--timeout=90s")
	if n := strings.Count(p.log.String(), missing); n != 1 {
		t.Errorf("it is logged %d times, want once:\n%s", n, &p.log)
	}
}
