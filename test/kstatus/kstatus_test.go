// Package kstatus checks the statuses of a Network with the library of kstatus. Flux
// and other tools derive from it whether an object is in progress, failed or current.
// The package is a module of its own, because the library is heavy.
package kstatus

import (
	"os"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

var (
	now     = metav1.Now().Rfc3339Copy()
	owner   = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	desired = plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"})
	failed  = func(class error) error {
		return &status.StepError{Step: plan.DeleteNetwork{ID: "net-1"}, Err: &neutron.Error{Class: class, Message: "no"}}
	}
	blocked = func(reason plan.Reason) error {
		return plan.Blocked{Reason: reason, Message: "act"}
	}
)

// reasons are those for which a plan is blocked.
var reasons = []plan.Reason{
	plan.ReasonInvalidSpec, plan.ReasonAmbiguous, plan.ReasonNotOurs, plan.ReasonNotFound, plan.ReasonAdoptionNotAllowed,
	plan.ReasonExtensionMissing, plan.ReasonSubnetPoolMismatch, plan.ReasonInUse, plan.ReasonNotConverging,
	plan.ReasonOtherCloud, plan.ReasonOtherCluster, plan.ReasonDrifted,
}

// state is a state of a Network, and what kstatus makes of it.
type state struct {
	name    string
	network *samplecrdv1.Network
	want    kstatus.Status
	reason  string // that kstatus reports; empty for any
}

// after returns the Network after a sync with an outcome.
func after(network *samplecrdv1.Network, outcome error) *samplecrdv1.Network {
	network = network.DeepCopy()
	network.Status, _ = status.For(network, status.Found{Desired: desired, Actual: plan.Actual{}, Outcome: outcome}, now)
	return network
}

func edited(network *samplecrdv1.Network) *samplecrdv1.Network {
	network = network.DeepCopy()
	network.Generation++
	return network
}

func deleted(network *samplecrdv1.Network) *samplecrdv1.Network {
	network = edited(network)
	network.DeletionTimestamp = &now
	return network
}

var loginRejected = &neutron.Error{
	Op: "login", Class: neutron.ErrUnavailable, Status: 401, Keystone: "https://keystone.example/v3",
}

var withoutCloud = &neutron.Error{Op: "login", Class: neutron.ErrUnavailable, Cause: neutron.ErrNoCloud}

func states(t *testing.T) []state {
	fresh := newNetwork(t)
	ready := after(fresh, nil)
	all := []state{
		{"new", fresh, kstatus.InProgressStatus, ""},
		{"new, and Neutron is unavailable", after(fresh, failed(neutron.ErrUnavailable)), kstatus.InProgressStatus, "NeutronUnavailable"},
		{"new, and the login is rejected", after(fresh, loginRejected), kstatus.FailedStatus, "LoginRejected"},
		{"new, and without a cloud", after(fresh, withoutCloud), kstatus.FailedStatus, "NoCloud"},
		{"new, and rejected", after(fresh, failed(neutron.ErrRefused)), kstatus.FailedStatus, "Refused"},
		{"ready", ready, kstatus.CurrentStatus, ""},
		{"edited, and not seen yet", edited(ready), kstatus.InProgressStatus, ""},
		{"edited, and done", after(edited(ready), nil), kstatus.CurrentStatus, ""},
		{"edited, and in use", after(edited(ready), failed(neutron.ErrInUse)), kstatus.FailedStatus, "InUse"},
		{"edited, and Neutron is unavailable", after(edited(ready), failed(neutron.ErrUnavailable)), kstatus.InProgressStatus, "NeutronUnavailable"},
		{"in use, and edited again", edited(after(edited(ready), failed(neutron.ErrInUse))), kstatus.InProgressStatus, ""},
		{"paused", after(ready, blocked(plan.ReasonPaused)), kstatus.InProgressStatus, ""},
		{"paused when it was in use", after(after(edited(ready), failed(neutron.ErrInUse)), blocked(plan.ReasonPaused)), kstatus.InProgressStatus, ""},
		{"paused, and no longer", after(after(ready, blocked(plan.ReasonPaused)), nil), kstatus.CurrentStatus, ""},
		{"recovered", after(after(ready, failed(neutron.ErrRefused)), nil), kstatus.CurrentStatus, ""},
		{"deleted, and not seen yet", deleted(ready), kstatus.TerminatingStatus, ""},
		{"deletion blocked", after(deleted(ready), failed(neutron.ErrInUse)), kstatus.TerminatingStatus, ""},
	}
	for _, reason := range reasons {
		all = append(all, state{"blocked: " + string(reason), after(ready, blocked(reason)), kstatus.FailedStatus, string(reason)})
	}
	return all
}

// newNetwork returns a Network with the status that the CustomResourceDefinition sets.
func newNetwork(t *testing.T) *samplecrdv1.Network {
	t.Helper()
	text, err := os.ReadFile("../../crd/network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("the CustomResourceDefinition has the versions %v: %v", versions, err)
	}
	given, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "default")
	if err != nil || !found {
		t.Fatalf("the status has no default: %v", err)
	}
	network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", Generation: 1}}
	network.APIVersion, network.Kind = samplecrdv1.SchemeGroupVersion.String(), "Network"
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &network.Status); err != nil {
		t.Fatal(err)
	}
	return network
}

// TestStates: each state of a Network is in progress, failed, current or terminating.
func TestStates(t *testing.T) {
	for _, state := range states(t) {
		t.Run(state.name, func(t *testing.T) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(state.network)
			if err != nil {
				t.Fatal(err)
			}
			got, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != state.want {
				t.Errorf("kstatus computes %s (%s), want %s, of the status %+v", got.Status, got.Message, state.want, state.network.Status)
			}
			if ready := state.network.Status.Conditions[0]; state.reason != "" && got.Message != ready.Message || state.reason != "" && ready.Reason != state.reason {
				t.Errorf("kstatus reports %q; the condition is %+v, want the reason %s", got.Message, ready, state.reason)
			}
		})
	}
}

// TestAbnormalConditions: a condition Reconciling or Stalled is True or absent, never
// both present, and has the observed generation.
func TestAbnormalConditions(t *testing.T) {
	for _, state := range states(t) {
		var kinds []string
		for _, condition := range state.network.Status.Conditions {
			if condition.Type != samplecrdv1.ConditionReconciling && condition.Type != samplecrdv1.ConditionStalled {
				continue
			}
			kinds = append(kinds, condition.Type)
			if condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != state.network.Status.ObservedGeneration {
				t.Errorf("%s: the condition is %+v", state.name, condition)
			}
		}
		if len(kinds) > 1 || len(kinds) > 0 && state.want == kstatus.CurrentStatus {
			t.Errorf("%s: the conditions are %v", state.name, kinds)
		}
	}
}
