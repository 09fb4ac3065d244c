package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// TestCRDDeletion: whatever deletes the CustomResourceDefinition is denied, until the
// command in the message permits it.
func TestCRDDeletion(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	client := metadata.NewForConfigOrDie(own.RESTConfig()).Resource(definitions)
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}

	var message string
	(&harness{T: t}).eventually(func() error { // the API server enforces a new policy after a moment
		err := client.Delete(t.Context(), "networks.samplecrd.k8s.io", dryRun)
		if err == nil {
			return errors.New("the deletion is permitted")
		}
		message = err.Error()
		return nil
	})
	for _, part := range []string{"deletes every Network", "networks in Neutron", "set deletionPolicy: Retain on each Network first"} {
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
	own := ownCluster(t)
	client := metadata.NewForConfigOrDie(own.RESTConfig())
	for resource, name := range map[schema.GroupVersionResource]string{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}:                 "networks.samplecrd.k8s.io",
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}:       "samplecrd-crd-deletion",
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}: "samplecrd-crd-deletion",
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
